#!/usr/bin/env python3
"""`gradwire sim --timeline` and the series of jobs: what they say must agree with the result of the
same run. Called with the path of the program."""
import collections
import csv
import json
import os
import sys
import unittest

from command_case import CommandCase

PROGRAM = os.path.abspath(sys.argv.pop(1))
DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs")

MODEL = """\
layer,kind,weights,biases,macs
front,fc,16384,64,1000000
middle "2",fc,81920,0,2000000
activation,other,0,0,500000
back,fc,524288,0,1000000
"""
LAYERS, TENSORS, BYTES = 4, 4, 4 * (16384 + 64 + 81920 + 524288)

WORKERS, ITERATIONS, WARMUP = 4, 5, 1

# 1 ms of computation in each iteration; the second job is another model of the project.
SCENARIO = """\
topology: {kind: star, hosts: 24, rate: 100Gbps, latency: 1us}
workload:
  - {kind: training, workers: 4, iterations: 5, model: MODEL, images_per_s: 32000, jitter: 20%}
  - {kind: training, workers: 2, iterations: 1, model: alexnet, images_per_s: 100000}
host: {mtu: 1408, header: 64}
queue: {kind: red, capacity: 4MiB}
loss: timeout
time_limit: 10s
"""
CLOSE = 1e-5  # us: times are written to the picosecond


class TimelineTest(CommandCase):
    def setUp(self):
        super().setUp()
        own = self.file("own.csv", MODEL.replace('"', "'"))
        self.scenario = self.file("jobs.yaml", SCENARIO.replace("MODEL", own))

    def sim(self, *words, status=0):
        return self.call(PROGRAM, "sim", self.scenario, "--json", *words, status=status)

    def run_with(self, *words):
        """The result of a run, and its events by phase."""
        done = self.sim("--timeline", self.path("timeline.json"), *words)
        with open(self.path("timeline.json"), encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        by_phase = collections.defaultdict(list)
        for event in events:
            by_phase[event["ph"]].append(event)
        return json.loads(done.stdout), by_phase

    def test_names_that_json_does_not_have__are_a_failure(self):
        own = self.file("own.csv", MODEL.encode().replace(b"front", b"fr\xffnt"))
        self.scenario = self.file("odd.yaml", SCENARIO.replace("MODEL", own))
        done = self.sim("--timeline", self.path("timeline.json"), status=1)
        self.assertIn("timeline.json: a name is not UTF-8", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def check_computation(self, spans):
        """One worker of the first job: its layers do not overlap, and are all there."""
        spans = sorted(spans, key=lambda span: span["ts"])
        for before, after in zip(spans, spans[1:]):
            self.assertLessEqual(before["ts"] + before["dur"], after["ts"] + CLOSE)
        self.assertEqual(len(spans), 2 * LAYERS * ITERATIONS)
        for number in range(ITERATIONS):
            own = spans[2 * LAYERS * number : 2 * LAYERS * (number + 1)]
            self.assertTrue(all(span["args"]["iteration"] == number for span in own))
            self.assertEqual([span["cat"] for span in own], ["forward"] * 4 + ["backward"] * 4)
            names = [span["name"] for span in own]
            self.assertEqual(names[:LAYERS], ["front", "middle '2'", "activation", "back"])
            self.assertEqual(names[LAYERS:], names[LAYERS - 1 :: -1])
            # 32 samples at 32000 per second, and up to 20 % more.
            computed = sum(span["dur"] for span in own)
            self.assertTrue(1000 - CLOSE <= computed <= 1200 + CLOSE, computed)

    @staticmethod
    def bursts_of(events, rank):
        """Those of a worker of the first job; two without a pause between them are one."""
        edges = [sorted(e["ts"] for e in events[phase] if (e["pid"], e["tid"]) == (0, rank)
                        and e["cat"] == "burst") for phase in "be"]  # fmt: skip
        bursts = []
        for start, stop in zip(*edges, strict=True):
            if bursts and start - bursts[-1][1] < CLOSE:
                start = bursts.pop()[0]
            bursts.append((start, stop))
        return bursts

    def test_computation_agrees_with_the_result(self):
        for via in ["ina", "ring", "ps"]:
            result, events = self.run_with("--set", f"workload.0.via={via}")
            job = result["jobs"][0]
            workers = collections.defaultdict(list)
            for span in events["X"]:
                workers[span["pid"], span["tid"]].append(span)
            self.assertEqual(len(workers), WORKERS + 2)
            rates, stalls, moving, counts = [], [], [], []
            for rank in range(WORKERS):
                spans = workers[0, rank]
                self.check_computation(spans)
                starts = sorted(s["ts"] for s in spans if s["name"] == "front"
                                and s["cat"] == "forward")  # fmt: skip
                computed = sum(s["dur"] for s in spans if WARMUP <= s["args"]["iteration"])
                # The last iteration ends when another one could begin.
                ends = [e["ts"] for e in events["e"]
                        if (e["pid"], e["tid"], e["name"]) == (0, rank, "front")]  # fmt: skip
                time = (max(ends) - starts[WARMUP]) / (ITERATIONS - WARMUP)
                rates.append(1 / time)
                stalls.append(1 - computed / (ITERATIONS - WARMUP) / time)
                begin, end, bursts = starts[WARMUP], max(ends), self.bursts_of(events, rank)
                inside = sum(max(0, min(e, end) - max(b, begin)) for b, e in bursts)
                moving.append(inside / (ITERATIONS - WARMUP) / time)
                begun = sum(begin + CLOSE < b < end - CLOSE for b, _ in bursts)
                counts.append(begun / (ITERATIONS - WARMUP))
            # The job's rate is that of all workers, and its stall the mean of their shares.
            iteration = WORKERS / sum(rates)
            self.assertAlmostEqual(job["iteration_us"], iteration, delta=CLOSE)
            self.assertAlmostEqual(job["stall_us"], sum(stalls) / WORKERS * iteration, delta=CLOSE)
            self.assertAlmostEqual(job["moving_us"], sum(moving) / WORKERS * iteration, delta=CLOSE)
            self.assertEqual(job["bursts"], sum(counts) / WORKERS)

    def test_pieces_and_bursts(self):
        for via in ["ina", "hd", "ps"]:
            _, events = self.run_with("--set", f"workload.0.via={via}")
            open_at = {}
            sizes = collections.Counter()
            moved = collections.defaultdict(list)
            bursts = collections.defaultdict(list)
            both = sorted(events["b"] + events["e"], key=lambda e: (e["ts"], e["ph"] == "b"))
            self.assertEqual(len(events["b"]), len(events["e"]))
            for event in both:
                worker, key = (event["pid"], event["tid"]), (event["cat"], event["id"])
                if event["ph"] == "b":
                    self.assertNotIn(key, open_at)  # rows do not overlap
                    open_at[key] = event["ts"]
                    continue
                span = (open_at.pop(key), event["ts"])
                (moved if event["cat"] == "piece" else bursts)[worker].append(span)
            self.assertFalse(open_at)
            for event in events["b"]:
                self.assertEqual("args" in event, event["cat"] == "piece")
                if event["cat"] == "piece":
                    sizes[event["pid"], event["tid"]] += event["args"]["bytes"]
            for rank in range(WORKERS):
                self.assertEqual(sizes[0, rank], BYTES * ITERATIONS)
                self.assertEqual(len(moved[0, rank]), TENSORS * ITERATIONS)
                # Every piece is within a burst, and bursts are no longer than their pieces.
                for begin, end in moved[0, rank]:
                    self.assertTrue(any(b <= begin and end <= e for b, e in bursts[0, rank]))
                self.assertLessEqual(sum(e - b for b, e in bursts[0, rank]),
                                     sum(e - b for b, e in moved[0, rank]) + CLOSE)  # fmt: skip

    def test_names_and_errors(self):
        _, events = self.run_with()
        names = {(e["name"], e["pid"], e["tid"]): e["args"]["name"] for e in events["M"]}
        self.assertEqual(names["process_name", 1, 0], "job 1: alexnet via ina")
        self.assertEqual(names["thread_name", 0, 3].split(" (")[0], "worker 3")
        done = self.sim("--timeline", self.path("nowhere/t.json"), status=2)
        self.assertIn("nowhere/t.json: No such file", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)
        done = self.sim("--timeline", self.path("t.json"), "--seeds", "2", status=2)
        self.assertIn("--timeline: needs a single run", done.stderr)

    def test_an_old_file__is_replaced_by_a_run_and_kept_by_an_error(self):
        self.run_with()
        with open(self.path("timeline.json"), encoding="utf-8") as file:
            old = file.read()
        self.sim("--timeline", self.path("timeline.json"), "--set", "host.mtu=0", status=2)
        with open(self.path("timeline.json"), encoding="utf-8") as file:
            self.assertEqual(file.read(), old)
        self.run_with("--seed", "2")  # one JSON value, not two
        self.sim("--timeline", self.path("new.json"), "--set", "host.mtu=0", status=2)
        self.assertFalse(os.path.exists(self.path("new.json")))

    def test_the_timeline_changes_nothing(self):
        result, _ = self.run_with()
        plain = json.loads(self.sim().stdout)
        self.assertEqual(result["trace_hash"], plain["trace_hash"])

    def test_series_add_up(self):
        words = ["--set", "metrics.sample=100us", "--set",
                 "metrics.series=[goodput, switch_sums, server_sums, collisions]"]  # fmt: skip
        for via in ["ina", "ps", "switchml", "ring"]:
            done = self.sim("--set", f"workload.0.via={via}", *words, "--out", self.path(via))
            with open(self.path(f"{via}/series.csv"), encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            total = collections.Counter()
            for row in rows:
                total[row["series"], row["subject"]] += int(row["value"])
            # bit/s over intervals of 100 us; the last of them may be missing.
            back = total["goodput", "0"] * 100e-6 / 8
            self.assertTrue(0.75 * BYTES * ITERATIONS < back < 1.01 * BYTES * ITERATIONS, back)
            sums = total["switch_sums", "0"], total["server_sums", "0"]
            if via in ["ina", "switchml"]:
                self.assertGreater(sums[0], 0.75 * BYTES * ITERATIONS / 1408)
                self.assertGreater(sums[0], 20 * sums[1])
            elif via == "ps":
                self.assertEqual(sums, (0, TENSORS * ITERATIONS))
            else:
                self.assertEqual(sums, (0, 0))
            series = json.loads(done.stdout)["series"]
            self.assertEqual(sum(series["collisions"]["sw0"]), total["collisions", "sw0"])
            self.assertEqual(len(series["collisions"]["sw0"]), len(series["at_us"]))
            self.assertGreater(len(series["at_us"]), 10)

    def test_every_key_of_the_result_is_in_the_manual(self):
        series = "[cwnd, rate, goodput, switch_sums, server_sums, collisions]"
        done = self.sim("--set", "metrics={sample: 100us, rtt: yes, series: %s}" % series)
        text = ""
        for page in ("simulator.md", "training.md"):
            with open(os.path.join(DOCS, page), encoding="utf-8") as file:
                text += file.read()
        result = json.loads(done.stdout)
        keys = set(result) | set(result["host"]) | set(result["jobs"][0])
        keys |= set(result["jobs"][0]["series"]) | set(result["series"])
        self.assertGreater(len(keys), 55)
        self.assertEqual([key for key in sorted(keys) if f"`{key}`" not in text], [])


if __name__ == "__main__":
    unittest.main()
