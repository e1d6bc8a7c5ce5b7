"""The TCP part of compare-ns3: do the same flows fill the same queue in the same way?

DCTCP and NewReno with ECN, each with cuts at once (ns-3: TcpClassicRecovery) and in proportion to
what arrives (TcpPrrRecovery, ns-3's default), over two networks of 10 Gb/s and 15 us per link whose
queue of 260 packets marks above 65: four pairs of hosts on a dumbbell, 10 MB each, and eight
senders of 2 MB to one receiver. An ACK per packet, smallest timeout 10 ms, no probes, no jitter.

A draw gives every flow a start within the first 40 us, before any data could meet a handshake. The
queue is sampled every 15 us and averaged from 10 to 90 % of the time until the first flow has
ended; amplitude is the distance from its 5th to its 95th percentile. A row compares medians over
the draws, and says whether the mean queue is within 15 %, the mean completion time within 10 % and
the marks within 20 %.

Completion is counted at the sender here and at the receiver there, which is half a round trip less,
and from the first data, since the handshake is not modelled.
"""
import csv
import json
import os
import random
import subprocess
import tempfile

from measure import ROOT, die, median, table

SOURCE = os.path.join(ROOT, "bench", "ns3", "tcp_peer.cc")
PEER = os.path.join(ROOT, "build", "bench", "ns3-tcp-peer")
MODULES = ["applications", "internet", "point-to-point", "traffic-control", "network", "core"]
WIRE = 1514
MARK, CAPACITY = 65, 260
SAMPLE_US = 15
START_PS = 40_000_000
LIMIT_MS = 200
PAIRS, SENDERS = 4, 8

NETWORKS = {
    "dumbbell": {
        "flows": [(i, PAIRS + i, 10_000_000) for i in range(PAIRS)],
        "peer": ["--topology=dumbbell", f"--pairs={PAIRS}"],
        "ours": f"kind: dumbbell, hosts: {PAIRS}",
        "queue": ("sw0", PAIRS),  # its port to the other switch
    },
    "incast": {
        "flows": [(i, 0, 2_000_000) for i in range(1, SENDERS + 1)],
        "peer": ["--topology=star", f"--pairs={SENDERS}"],
        "ours": f"kind: star, hosts: {SENDERS + 1}",
        "queue": ("sw0", 0),
    },
}
TRANSPORTS = {"DCTCP": ("dctcp", "TcpDctcp"), "NewReno": ("newreno", "TcpLinuxReno")}
REDUCTIONS = {"at once": ("no", "TcpClassicRecovery"), "PRR": ("yes", "TcpPrrRecovery")}
LIMITS = {"queue": 0.15, "fct": 0.10, "marks": 0.20}

SCENARIO = f"""
topology: {{%s, rate: 10Gbps, latency: 15us, switch_latency: 0}}
workload: {{kind: matrix, file: %s}}
cc: {{kind: %s, prr: %s}}
lb: ecmp
loss: {{kind: sack, preset: dlcp}}
queue: {{kind: red, capacity: {CAPACITY * WIRE}B, mark: enqueue, kmin: {MARK / CAPACITY}, kmax: {MARK / CAPACITY}}}
host: {{mtu: 1460, header: 54, jitter: 0}}
time_limit: {LIMIT_MS}ms
metrics: {{sample: {SAMPLE_US}us, series: [queue]}}
"""


def summary(fct_us, marks, drops, samples):
    end = int(min(fct_us) / SAMPLE_US)
    middle = sorted(samples[end // 10 : end * 9 // 10])
    if not middle:
        die("no samples of the queue")
    return {
        "queue": sum(middle) / len(middle),
        "amplitude": middle[len(middle) * 95 // 100] - middle[len(middle) * 5 // 100],
        "fct": sum(fct_us) / len(fct_us),
        "last": max(fct_us),
        "marks": marks,
        "drops": drops,
    }


def run_ours(binary, network, flows, transport, prr, folder):
    matrix = os.path.join(folder, "flows.cm")
    hosts = max(max(src, dst) for src, dst, _, _ in flows) + 1
    with open(matrix, "w", encoding="utf-8") as file:
        print(f"Nodes {hosts}\nConnections {len(flows)}", file=file)
        for number, (src, dst, start, size) in enumerate(flows, 1):
            print(f"{src}->{dst} id {number} start {start} size {size}", file=file)
    scenario = os.path.join(folder, "tcp.yaml")
    with open(scenario, "w", encoding="utf-8") as file:
        file.write(SCENARIO % (NETWORKS[network]["ours"], matrix, transport, prr))
    out = os.path.join(folder, "out")
    result = subprocess.run(
        [binary, "sim", scenario, "--json", "--out", out], capture_output=True, text=True
    )
    if result.returncode != 0:
        die(f"{scenario}: {result.stderr or result.stdout}")
    totals = json.loads(result.stdout)
    with open(os.path.join(out, "flows.csv"), encoding="utf-8") as file:
        fct_us = [float(row["fct_us"]) for row in csv.DictReader(file)]
    subject, port = NETWORKS[network]["queue"]
    with open(os.path.join(out, "series.csv"), encoding="utf-8") as file:
        samples = [
            float(row["value"]) / WIRE
            for row in csv.DictReader(file)
            if row["series"] == "queue" and row["subject"] == subject and row["port"] == str(port)
        ]
    return summary(fct_us, totals["marks"], totals["drops"], samples)


def run_peer(network, flows, transport, recovery, folder):
    listing, queue = os.path.join(folder, "flows.txt"), os.path.join(folder, "queue.txt")
    with open(listing, "w", encoding="utf-8") as file:
        for src, dst, start, size in flows:
            print(src, dst, start, size, file=file)
    command = [PEER, f"--flows={listing}", f"--queue={queue}", f"--transport={transport}"]
    command += NETWORKS[network]["peer"]
    command += [f"--mark={MARK}", f"--capacity={CAPACITY}", f"--limit={LIMIT_MS}"]
    command += [f"--sample={SAMPLE_US}", f"--ns3::TcpL4Protocol::RecoveryType=ns3::{recovery}"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        die(f"exit status {result.returncode}: {' '.join(command)}\n{result.stderr}")
    totals = json.loads(result.stdout)
    if totals["completed"] != len(flows):
        die(f"{totals['completed']} of {len(flows)} flows completed: {' '.join(command)}")
    with open(queue, encoding="utf-8") as file:
        samples = [float(line) for line in file]
    return summary(totals["fct_us"], totals["marks"], totals["drops"], samples)


def row(name, ours, peer):
    middle = lambda runs, key: median(run[key] for run in runs)
    cells, verdict = [name], []
    for key, digits in [("queue", 1), ("amplitude", 1), ("fct", 0), ("last", 0), ("marks", 0), ("drops", 0)]:
        a, b = middle(ours, key), middle(peer, key)
        cells.append(f"{a:.{digits}f} / {b:.{digits}f}")
        if key in LIMITS:
            off = a / b - 1 if b else 0.0
            verdict.append(f"{key} {off:+.0%} {'yes' if abs(off) <= LIMITS[key] else 'NO'}")
    return cells + [", ".join(verdict)]


def compare(binary, repetitions, build):
    """`build` compiles a peer: (source, program, modules)."""
    build(SOURCE, PEER, [f"ns3-{module}" for module in MODULES])
    rng = random.Random(1)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for network, facts in NETWORKS.items():
            draws = [
                [(src, dst, rng.randrange(START_PS), size) for src, dst, size in facts["flows"]]
                for _ in range(repetitions)
            ]
            for name, (ours, peer) in TRANSPORTS.items():
                for reduction, (prr, recovery) in REDUCTIONS.items():
                    mine = [run_ours(binary, network, d, ours, prr, folder) for d in draws]
                    theirs = [run_peer(network, d, peer, recovery, folder) for d in draws]
                    rows.append(row(f"{network}, {name}, {reduction}", mine, theirs))
    print(f"\nTCP, gradwire / ns-3, medians over {repetitions} draws of the starts:")
    header = ["", "mean queue", "amplitude", "mean fct us", "last fct us", "marks", "drops"]
    table(header + ["within 15 %, 10 %, 20 %"], rows)
