#!/usr/bin/env python3
"""The command line of `gradwire sim`, as scripts see it: exit statuses, one line per error, JSON,
files. Called with the path of the program."""
import csv
import json
import os
import resource
import subprocess
import sys
import unittest

from command_case import WAIT_S, CommandCase

PROGRAM = os.path.abspath(sys.argv.pop(1))

# 16 hosts; 8 flows; a few thousand packets.
SCENARIO = """\
topology: {kind: fat-tree, tiers: 3, k: 4}
workload:
  kind: incast
  degree: 8
  size: 256KiB
"""

KEYS = {
    "scenario", "params", "seed", "flows", "completed", "sim_us", "fct_us", "completion_us",
    "data_packets", "hops", "marks", "trims", "drops", "retransmits", "events", "trace_hash",
    "jobs", "host", "control_drops", "losses", "pauses", "paused_us",
}  # fmt: skip
TIMES = {"min", "mean", "p50", "p99", "max"}
HOST_KEYS = {"threads", "wall_s", "hops_per_s", "peak_rss_mb"}


class CommandTest(CommandCase):
    def setUp(self):
        super().setUp()
        self.scenario = self.file("small.yaml", SCENARIO)

    def gradwire(self, *words, status=0):
        return self.call(PROGRAM, *words, status=status)

    def sim(self, *words, status=0):
        return self.gradwire("sim", self.scenario, *words, status=status)

    def json(self, *words, status=0):
        done = self.sim("--json", *words, status=status)
        self.assertEqual(done.stderr == "", status == 0)
        return json.loads(done.stdout)

    def assert_one_line(self, text, *parts):
        self.assertTrue(text.endswith("\n") and text.count("\n") == 1, text)
        self.assertTrue(text.startswith("gradwire: "), text)
        for part in parts:
            self.assertIn(part, text)

    # Bad usage and bad input: status 2, one line, nothing on standard output.

    def refuse(self, words, *parts):
        done = self.gradwire(*words, status=2)
        self.assertEqual(done.stdout, "")
        self.assert_one_line(done.stderr, *parts)

    def refuse_scenario(self, text, line, *parts):
        bad = self.file("bad.yaml", text)
        self.refuse(["sim", bad], f"{bad}:{line}: ", *parts)

    def test_scenario_errors__name_file_line_and_key(self):
        self.refuse_scenario(SCENARIO + "speed: 3\n", 6, "speed")
        self.refuse_scenario(SCENARIO.replace("size:", "sizes:"), 5, "sizes", "size")
        self.refuse_scenario(SCENARIO.replace("256KiB", "256KX"), 5, "size", "256KX")
        self.refuse_scenario(SCENARIO.replace("k: 4", "k: 5"), 1, "topology.k: ", "must be even")
        self.refuse_scenario(SCENARIO.replace("degree: 8", "degree: 16"), 4, "degree")
        self.refuse_scenario(SCENARIO.replace("incast", "outcast"), 3, "outcast")
        self.refuse_scenario(SCENARIO + "cc: [smartt\n", 6)
        self.refuse_scenario(SCENARIO + "lb: nothing\n", 6, "nothing")
        self.refuse_scenario(SCENARIO + "metrics: {pcap: [host0, host1]}\n", 6, "host0", "host1")
        matrix = self.file("bad.cm", "Connections 1\n0->99 id 1 start 0 size 5\n")
        self.refuse_scenario(
            f"topology: {{kind: star}}\nworkload: {{kind: matrix, file: {matrix}}}\n",
            2, f"{matrix}:2: ", "99",
        )  # fmt: skip

    def test_keys_that_are_unknown__bring_to_mind_short_keys_and_variants(self):
        words = "aliases: {spread: workload.size}\nvariants: {scale: {small: {}}}\n"
        scenario = self.file("words.yaml", SCENARIO + words)
        self.refuse(["sim", scenario, "--set", "sprade=1MB"], "the nearest known are: spread,")
        self.refuse(["sim", scenario, "--set", "scael=small"], "the nearest known are: scale,")
        # In a file they mean nothing.
        bad = self.file("bad.yaml", SCENARIO + words + "sprade: 1MB\n")
        self.assertNotIn("spread", self.gradwire("sim", bad, status=2).stderr)

    def test_overrides__are_named_in_errors(self):
        name = self.scenario
        self.refuse(["sim", name, "--set", "workload.sizes=1"], "--set workload.sizes=1", "sizes")
        self.refuse(["sim", name, "--set", "workload.size=1X"], "--set workload.size=1X", "1X")
        self.refuse(["sim", name, "--set", "topology.k=7"], "topology.k=7", "even")
        self.refuse(["sim", name, "--set", "host.mtu=0"], "mtu")
        self.refuse(["sim", name, "--set", "cc=dlcp", "--set", "cc.delta=-1"],
                    "--set cc.delta=-1: value out of range", "0, or at least 1/65536")

    def test_sums_that_cannot_be_checked__are_refused(self):
        name = self.file("sums.yaml", "topology: {kind: star, hosts: 20}\n"
                         "workload: {kind: allreduce, via: ina, workers: 17, size: 10KB, bound: 10%}\n")
        self.refuse(["sim", name, "--set", "host.payload=yes"], "bound", "host.payload", "17")
        self.gradwire("sim", name)

    def test_points_of_a_sweep__are_checked_before_the_first_runs(self):
        out = self.path("out")
        for sweep, part in [
            ("{workload.degree: [4, 8, -8]}", "workload.degree=-8"),
            ("{cc: [smartt, bogus]}", "cc=bogus"),
            ("{host.train: [1, 9999]}", "host.train"),  # the simulator finds this one
        ]:
            for words in (["--out", out], ["--set", "table=[fct_us.p99]"], ["--describe"]):
                self.refuse(["sim", self.scenario, "--set", "sweep=" + sweep, *words], part)
                self.assertFalse(os.path.exists(out))

    def test_files_that_are_missing__are_named(self):
        self.refuse(["sim", self.path("none.yaml")], "none.yaml", "No such file")
        missing = "topology: {kind: star}\nworkload: {kind: matrix, file: none.cm}\n"
        self.refuse_scenario(missing, 2, "none.cm", "No such file")
        self.refuse(["sim", self.scenario, "--pcap", "/nowhere/x.pcap"], "/nowhere/x.pcap")

    def test_commands__that_are_unknown_or_absent(self):
        self.refuse(["simulate"], "unknown command 'simulate'")
        self.refuse([], "no command given")
        self.refuse(["sim"], "no scenario given")
        self.refuse(["sim", "--list", "tests"], "--list tests", "cc, lb, loss")
        self.refuse(["version", "please"], "please")

    def test_flags__that_are_wrong(self):
        for words, part in [
            (["--fast"], "--fast"),
            (["--seed", "x"], "--seed=x"),
            (["--seed", "-1"], "--seed=-1"),
            (["--seeds", "0"], "--seeds=0"),
            (["--threads", "0"], "--threads=0"),
            (["--set", "workload.size"], "workload.size"),
            (["another.yaml"], "another.yaml"),
            (["--out"], "--out"),
        ]:
            done = self.sim(*words, status=2)
            self.assertEqual(done.stdout, "")
            lines = done.stderr.splitlines()
            self.assertIn(part, lines[0])
            self.assertEqual(len(lines), 1, done.stderr)

    def test_options__that_no_command_has_cost_one_line(self):
        for command in ("allreduce", "bench", "check", "model", "server", "sim", "switch", "version"):
            done = self.gradwire(command, "--no-such-option", status=2)
            self.assertEqual(done.stdout, "")
            self.assertIn("--no-such-option", done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    # What works.

    def test_help_and_version__succeed(self):
        for words in (["help"], ["--help"], ["version"], ["--version"], ["sim", "--help"]):
            done = self.gradwire(*words)
            self.assertEqual(done.stderr, "")
            self.assertIn("gradwire", done.stdout)
        self.assertIn("gradwire sim scenarios/", self.gradwire("sim", "--help").stdout)
        self.assertIn("gradwire version --json", self.gradwire("version", "--help").stdout)
        self.assertIn("version", json.loads(self.gradwire("version", "--json").stdout))

    def test_text__says_what_happened(self):
        done = self.sim()
        self.assertEqual(done.stderr, "")  # no progress bar where nobody looks
        self.assertIn("8 of 8 completed", done.stdout)
        self.assertIn("completion time (us)", done.stdout)

    def test_json__has_all_keys(self):
        result = self.json("--seed", "7")
        self.assertEqual(KEYS - set(result), set())
        self.assertEqual(TIMES - set(result["fct_us"]), set())
        self.assertEqual(set(result["host"]), HOST_KEYS)
        self.assertEqual(result["scenario"], "small")
        self.assertEqual(result["params"], {"seed": "7"})
        self.assertEqual(result["seed"], 7)
        self.assertEqual((result["flows"], result["completed"]), (8, 8))
        self.assertEqual(result["data_packets"], 8 * 64 + result["retransmits"])
        self.assertRegex(result["trace_hash"], "^[0-9a-f]{16}$")
        times = result["fct_us"]
        self.assertTrue(0 < times["min"] <= times["p50"] <= times["p99"] <= times["max"])
        self.assertTrue(times["min"] <= times["mean"] <= times["max"])
        self.assertTrue(times["max"] <= result["completion_us"] <= result["sim_us"])

    def test_json__is_the_same_for_the_same_seed(self):
        first, again, threads = self.json(), self.json(), self.json("--threads", "3", "--wire")
        for result in (first, again, threads):
            del result["host"]
        self.assertEqual(first, again)
        self.assertEqual(first, threads)
        self.assertNotEqual(first["trace_hash"], self.json("--seed", "2")["trace_hash"])

    def test_json__is_an_array_for_seeds_and_sweeps(self):
        results = self.json("--seeds", "3", "--seed", "5")
        self.assertEqual([result["seed"] for result in results], [5, 6, 7])
        self.assertEqual(len({result["trace_hash"] for result in results}), 3)
        self.scenario = self.file(
            "sweep.yaml", SCENARIO + "sweep: {workload.degree: [2, 4], lb: [reps, ecmp]}\n"
        )
        results = self.json("--set", "workload.size=64KiB")
        params = [result["params"] for result in results]
        self.assertEqual(len(params), 4)
        self.assertEqual(len({json.dumps(each, sort_keys=True) for each in params}), 4)
        for result in results:
            self.assertEqual(result["params"]["workload.size"], "64KiB")
            self.assertEqual(result["flows"], int(result["params"]["workload.degree"]))
        # A key that is set is not swept.
        self.assertEqual(len(self.json("--set", "lb=spray")), 2)

    def test_table__has_a_row_per_point_with_means_over_seeds(self):
        text = SCENARIO + "sweep: {workload.degree: [2, 4], lb: [reps, ecmp]}\n"
        self.scenario = self.file("sweep.yaml", text)
        results = self.json("--seeds", "3")
        self.scenario = self.file("table.yaml", text + "table: [fct_us.max, data_packets]\n")
        rows = [line.split() for line in self.sim("--seeds", "3").stdout.splitlines()]
        self.assertEqual(rows[0], ["workload.degree", "lb", "fct_us.max", "data_packets"])
        expected = [["2", "reps"], ["2", "ecmp"], ["4", "reps"], ["4", "ecmp"]]
        self.assertEqual([row[:2] for row in rows[1:]], expected)
        for i, row in enumerate(rows[1:]):
            runs = results[3 * i : 3 * i + 3]
            for value, mean in (
                (row[2], sum(run["fct_us"]["max"] for run in runs) / 3),
                (row[3], sum(run["data_packets"] for run in runs) / 3),
            ):
                self.assertAlmostEqual(float(value) / mean, 1, places=3)
        self.assertEqual(json.loads(self.sim("--json").stdout)[0]["params"]["lb"], "reps")

    def test_table__spreads_a_series_over_rows(self):
        text = SCENARIO + "metrics: {sample: 2us}\ntable: [cwnd_kib.at_us, cwnd_kib.max, flows]\n"
        self.scenario = self.file("series.yaml", text)
        rows = [line.split() for line in self.sim().stdout.splitlines()[1:]]
        series = self.json()["cwnd_kib"]
        self.assertGreater(len(rows), 5)
        self.assertEqual([float(row[0]) for row in rows], series["at_us"])
        self.assertEqual({row[2] for row in rows}, {"8"})

    def test_table__with_a_column_that_is_unknown_is_refused(self):
        self.scenario = self.file("bad.yaml", SCENARIO + "table: [fct_us.best]\n")
        self.refuse(["sim", self.scenario], "table", "fct_us.best")

    def test_json__measures_goodput_by_size_and_rtts(self):
        self.scenario = self.file(
            "mixed.yaml",
            "topology: {kind: star, hosts: 4}\nhost: {jitter: 0}\nmetrics: {rtt: yes}\n"
            "workload: {kind: permutation, size: 64KiB, long_count: 1, long_size: 1MiB}\n",
        )
        result = self.json()
        sizes = result["sizes"]
        counts = [(each["bytes"], each["flows"]) for each in sizes]
        self.assertEqual(counts, [(1 << 16, 3), (1 << 20, 1)])
        fastest, slowest = (result["goodput_gbps"][part] for part in ("max", "min"))
        self.assertAlmostEqual(fastest, (8 << 20) / 1e3 / sizes[1]["fct_us"]["max"])
        self.assertAlmostEqual(slowest, (8 << 16) / 1e3 / sizes[0]["fct_us"]["max"])
        # The base RTT to one bin of 1/64; an ACK may wait for a packet of data at both ports.
        for rtt_us in result["rtt_us"].values():
            self.assertTrue(3.284 <= rtt_us <= (3.284 + 2 * 0.0416) * 65 / 64, rtt_us)
        times = result["fct_us"]
        self.assertAlmostEqual(times["spread"], times["max"] - times["min"])

    def test_json__knows_the_longest_rtt_however_long(self):
        self.scenario = self.file(
            "queue.yaml",
            "topology: {kind: star, hosts: 9}\nhost: {jitter: 0}\nmetrics: {rtt: yes}\n"
            "queue: {capacity: 64MiB}\ncc: {kind: fixed, window: 4MiB}\n"
            "workload: {kind: incast, degree: 8, size: 4MiB}\n",
        )
        result = self.json()
        longest = result["rtt_us"]["max"]
        # Above what bins can tell, 64 base RTTs of 3.284 us; no packet takes longer than its flow.
        self.assertTrue(64 * 3.4 < longest < result["fct_us"]["max"], longest)

    def test_json__has_the_completion_of_each_collective(self):
        self.scenario = self.file(
            "jobs.yaml",
            "topology: {kind: star, hosts: 16}\nworkload:\n"
            "  - {kind: allreduce, via: ring, workers: 4, jobs: 2, size: 1MB}\n"
            "  - {kind: allreduce, via: halving-doubling, workers: 8, size: 1MB, start: 5us}\n"
            "  - {kind: all-to-all, hosts: 4, size: 64KiB, window: 1}\n",
        )
        result = self.json("--out", self.path("out"))
        each = result["collectives"]
        expected = [("ring", 24), ("ring", 24), ("halving-doubling", 48), ("all-to-all", 12)]
        self.assertEqual([(one["kind"], one["flows"]) for one in each], expected)
        flows = self.read_csv("flows.csv")
        for one in each:
            part, flows = flows[: one["flows"]], flows[one["flows"] :]
            start = min(float(flow["start_us"]) for flow in part)
            end = max(float(flow["end_us"]) for flow in part)
            self.assertAlmostEqual(one["completion_us"], end - start, places=5)
        late = self.json("--set", "time_limit=10us", status=1)["collectives"]
        self.assertEqual({one["completion_us"] for one in late}, {0})

    def test_json__has_one_rate_of_an_all_reduce(self):
        self.scenario = self.file(
            "reduce.yaml",
            "topology: {kind: star, hosts: 6}\n"
            "workload: {kind: allreduce, via: ps, workers: 4, size: 1MB, iterations: 3}\n",
        )
        job = self.json()["jobs"][0]
        self.assertAlmostEqual(job["samples_per_s"] * job["iteration_us"], 1e6, places=3)
        # The first iteration is left out: rates over the whole run are others.
        self.assertGreater(job["samples_per_s"], 1.01 * job["algbw_gbps"] * 1e9 / 8e6)

    def test_text__of_a_job_says_what_its_way_has(self):
        self.file("own.csv", "layer,kind,weights,biases,macs\nonly,fc,100000,0,1\n")
        self.scenario = self.file(
            "job.yaml",
            "topology: {kind: star, hosts: 6}\nqueue: {kind: red, capacity: 4MiB}\nloss: timeout\n"
            "workload: {kind: training, model: own.csv, device: none, workers: 2, iterations: 1}\n",
        )
        done = self.sim("--set", "workload.via=ina").stdout
        self.assertIn("completed 1 iteration in", done)
        self.assertIn("100.0 % added up in switches, 1.00 packets per fragment", done)
        self.assertIn("packets      0 data of flows, ", done)
        done = self.sim("--set", "workload.via=ps", "--set", "workload.iterations=2").stdout
        self.assertIn("completed 2 iterations in", done)
        self.assertNotIn("fragment", done)

    def test_unfinished_flows__are_a_failure_that_names_them(self):
        done = self.sim("--set", "time_limit=5us", status=1)
        self.assertIn("0 of 8 completed", done.stdout)
        self.assertEqual(done.stdout.count("UNFINISHED"), 8)
        self.assert_one_line(done.stderr, self.scenario, "unfinished")
        done = self.sim("--json", "--set", "time_limit=5us", status=1)
        self.assertEqual(json.loads(done.stdout)["completed"], 0)
        failing = "faults=[{at: 0, link: [host0, tor0], down: yes}]"
        done = self.sim("--set", "host.stall=50us", "--set", failing, status=1)
        self.assertEqual(done.stdout.count("FAILED"), 8)

    def test_list__prints_every_registry(self):
        for kind, name in {
            "cc": "smartt", "lb": "reps", "loss": "trim", "grant": "eqds", "qdisc": "red", "topo": "fat-tree",
            "workload": "permutation", "coll": "ring", "cost": "host", "schedule": "wfbp",
        }.items():  # fmt: skip
            unknown = self.gradwire("sim", "--list", "tests", status=2)
            self.assertRegex(unknown.stderr, rf"one of: .*\b{kind}\b")
            self.assertRegex(self.gradwire("sim", "--help").stdout, rf"list one of: [a-z,\s]*\b{kind}\b")
            done = self.gradwire("sim", "--list", kind)
            self.assertEqual(done.stderr, "")
            self.assertIn(f"{name}: ", done.stdout)
            entries = json.loads(self.gradwire("sim", "--list", kind, "--json").stdout)
            self.assertIn(name, [entry["name"] for entry in entries])
            for entry in entries:
                self.assertTrue(entry["summary"])
                for parameter in entry["params"]:
                    self.assertTrue(parameter["name"] and parameter["type"] and parameter["help"])

    def test_describe__loads_again_as_the_same_scenario(self):
        settings = ["--set", "cc.md=3", "--set", "host.ack_every=4", "--set", "metrics.sample=2us"]
        settings += ["--set", "metrics.pcap=[tor1, agg0]"]
        done = self.sim("--describe", *settings)
        expected = self.json(*settings)["trace_hash"]
        self.scenario = self.file("described.yaml", done.stdout)
        self.assertEqual(self.json()["trace_hash"], expected)
        self.assertEqual(self.sim("--describe").stdout, done.stdout)
        self.assertIn("pcap: [tor1, agg0, 0]", done.stdout)

    def test_json__that_cannot_be_is_a_failure(self):
        name = os.fsencode(self.path("odd")) + b"\xff.yaml"
        os.rename(self.scenario, name)
        done = self.gradwire("sim", name, "--json", status=1)
        self.assert_one_line(done.stderr, "no JSON")

    def test_names_of_files__are_cut_between_characters(self):
        scenario = self.file("x" + 40 * "\u00e4" + ".yaml", SCENARIO)
        found = json.loads(self.gradwire("sim", scenario, "--json").stdout)
        self.assertEqual(found["scenario"], "x" + 31 * "\u00e4")
        scenario = self.file(40 * "\u00e4" + ".yaml", SCENARIO)
        found = json.loads(self.gradwire("sim", scenario, "--json").stdout)
        self.assertEqual(found["scenario"], 31 * "\u00e4")

    @unittest.skipIf(os.environ.get("GRADWIRE_TEST_BRIEF"), "a sanitizer maps more itself")
    def test_memory_that_is_short__is_a_failure(self):
        limit = 40 << 20
        done = subprocess.run(
            [PROGRAM, "sim", self.scenario], capture_output=True, text=True, check=False, timeout=WAIT_S,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        )  # fmt: skip
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assert_one_line(done.stderr, "memory")

    # Files.

    def read_csv(self, *names):
        with open(os.path.join(self.path("out"), *names), encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def read_result(self, *names):
        with open(os.path.join(self.path("out"), *names), encoding="utf-8") as file:
            return json.load(file)

    def test_out__writes_flows_and_result(self):
        printed = self.json("--out", self.path("out"))
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["flows.csv", "result.json"])
        flows = self.read_csv("flows.csv")
        self.assertEqual(
            list(flows[0]),
            ["id", "src", "dst", "bytes", "start_us", "end_us", "fct_us", "retransmits", "outcome"],
        )
        self.assertEqual(len(flows), 8)
        self.assertEqual({flow["dst"] for flow in flows}, {"0"})
        self.assertEqual({flow["bytes"] for flow in flows}, {str(256 << 10)})
        self.assertEqual({flow["outcome"] for flow in flows}, {"done"})
        self.assertEqual(sum(int(flow["retransmits"]) for flow in flows), printed["retransmits"])
        self.assertAlmostEqual(
            max(float(flow["fct_us"]) for flow in flows), printed["fct_us"]["max"], places=5
        )
        self.assertEqual(self.read_result("result.json"), printed)

    def test_out__writes_series_when_asked(self):
        self.sim("--out", self.path("out"), "--set", "metrics.sample=2us")
        series = self.read_csv("series.csv")
        self.assertEqual(list(series[0]), ["time_us", "series", "subject", "port", "value"])
        self.assertEqual({row["series"] for row in series}, {"cwnd", "rate", "queue"})
        for row in series:
            self.assertEqual(float(row["time_us"]) % 2, 0)
            self.assertGreaterEqual(int(row["value"]), 0)
            self.assertEqual(row["port"] != "", row["series"] == "queue")
        self.assertIn("tor0", {row["subject"] for row in series if row["series"] == "queue"})

    def test_out__has_a_folder_per_run(self):
        self.sim("--out", self.path("out"), "--seeds", "3")
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["000", "001", "002"])
        for index in range(3):
            self.assertEqual(self.read_result(f"{index:03}", "result.json")["seed"], 1 + index)
            self.assertEqual(len(self.read_csv(f"{index:03}", "flows.csv")), 8)

    def test_out__leaves_out_what_did_not_happen(self):
        self.sim("--out", self.path("out"), "--set", "time_limit=5us", status=1)
        for flow in self.read_csv("flows.csv"):
            self.assertEqual((flow["end_us"], flow["fct_us"]), ("", ""))
            self.assertEqual(flow["outcome"], "unfinished")

    def test_out__that_cannot_be_written_is_refused(self):
        self.refuse(["sim", self.scenario, "--json", "--out", "/nowhere/at/all"], "/nowhere/at/all")
        self.refuse(["sim", self.scenario, "--out", self.scenario], "Not a directory")

    def test_standard_output__that_cannot_be_written_is_a_failure(self):
        for words in (["sim", self.scenario], ["sim", self.scenario, "--json"], ["model"],
                      ["sim", "--help"], ["version"]):  # fmt: skip
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([PROGRAM, *words], stdout=full, stderr=subprocess.PIPE,
                                      text=True, stdin=subprocess.DEVNULL, check=False)  # fmt: skip
            self.assertEqual(done.returncode, 1, words)
            self.assert_one_line(done.stderr, "cannot write standard output")

    def test_pcap__writes_the_link_of_the_scenario(self):
        sizes = []
        for link in ("[tor0, host0]", "[tor0, host1]"):  # host 0 receives; host 1 may be idle
            self.sim("--pcap", self.path("x.pcap"), "--set", f"metrics.pcap={link}")
            with open(self.path("x.pcap"), "rb") as file:
                data = file.read()
            self.assertEqual(int.from_bytes(data[:4], sys.byteorder), 0xA1B23C4D)
            sizes.append(len(data))
        self.assertGreater(sizes[0], 100 * 8 * 64)
        self.assertLess(sizes[1], sizes[0] / 4)


if __name__ == "__main__":
    unittest.main()
