#!/usr/bin/env python3
"""The command line of `gradwire thresholds`: what it finds is what a scenario takes, and one line
for what is wrong. Called with the path of the program."""
import json
import os
import sys
import unittest

from command_case import CommandCase

PROGRAM = os.path.abspath(sys.argv.pop(1))
LAYERS = "layer,kind,weights,biases,macs\n"
COSTS = "queue,gradients,loss,rounds\n"
PORT = ["resnet50", "--arrival", "95Gbps", "--buffer", "64KB", "--trial", "100000"]
SCENARIO = """
topology: {kind: star, hosts: 2, rate: 10Gbps, latency: 1us}
workload: {kind: permutation, size: 100KB}
queue: {kind: dlcp, capacity: 64KB, thresholds: %s, limits: %s}
"""


class ThresholdsTest(CommandCase):
    found = None  # for PORT, by several tests

    def default(self):
        if not ThresholdsTest.found:
            ThresholdsTest.found = json.loads(self.find(*PORT, "--json").stdout)
        return ThresholdsTest.found

    def find(self, *words, status=0):
        done = self.call(PROGRAM, "thresholds", *words, status=status)
        self.assertEqual(done.stderr == "", status == 0)
        return done

    def refuse(self, line, *words):
        done = self.find(*words, status=2)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("gradwire: " + line), done.stderr)

    def test_json__keeps_to_the_buffer(self):
        found = self.default()
        self.assertEqual([row["queue"] for row in found["queues"]], [1, 2, 3, 4, 5, 6, 7])
        self.assertAlmostEqual(sum(row["load"] for row in found["queues"]), 0.95, places=5)
        self.assertLessEqual(sum(found["limits"]) + 7 * 1500, 64000)
        self.assertAlmostEqual(sum(row["cost"] for row in found["queues"]), found["cost"], places=4)
        for row, small, all_ in zip(found["queues"], found["thresholds"], found["limits"]):
            self.assertEqual((row["threshold"], row["limit"]), (small, all_))
            self.assertLessEqual(small, all_)
            self.assertLessEqual(row["large_loss"], row["small_loss"] + 1e-9)

    def test_text__has_what_a_scenario_takes(self):
        text = self.find(*PORT).stdout
        lists = [line.split(": ")[1] for line in text.splitlines() if ": [" in line]
        self.assertEqual(len(lists), 2)
        scenario = self.file("port.yaml", SCENARIO % tuple(lists))
        self.call(PROGRAM, "sim", scenario)
        self.assertIn("The nearest sequence", text)
        self.assertIn("  threshold: ", text)
        self.assertIn("  step: ", text)

    def test_costs__are_those_of_the_file(self):
        even = self.file("even.csv", COSTS + "# all alike\n1,small,1%,1\n1,large,0.01,1\n")
        found = json.loads(self.find(*PORT, "--costs", even, "--json").stdout)
        for row in found["queues"]:
            lost = row["small_loss"] + row["large_loss"]
            self.assertAlmostEqual(row["cost"], lost / 0.01, delta=1e-3 * row["cost"] + 1e-9)
        self.file("even.csv", COSTS + "1,small,1e-2,1e+0\n1,large,1E-02,1.0\n")
        self.assertEqual(json.loads(self.find(*PORT, "--costs", even, "--json").stdout), found)
        # Then nothing is gained by telling small from large.
        default = self.default()
        self.assertLess(sum(found["limits"]) - sum(found["thresholds"]),
                        sum(default["limits"]) - sum(default["thresholds"]))

    def test_formula__of_the_paper_is_another(self):
        paper = json.loads(self.find(*PORT, "--formula", "paper", "--json").stdout)
        self.assertNotEqual(self.default()["thresholds"], paper["thresholds"])

    def test_trial__replaces_what_is_frequent(self):
        words = ["resnet50", "--queues", "1", "--arrival", "200Gbps", "--buffer", "12KB"]
        formula, tried, paper = (json.loads(self.find(*words, *more, "--json").stdout) for more in (
            ("--trial", "0"), ("--trial", "100000"), ("--formula", "paper")))
        self.assertEqual(formula["limits"], tried["limits"])
        for found, by_trial in ((formula, False), (tried, True), (paper, False)):
            self.assertIs(found["queues"][0]["small_tried"], by_trial)
        self.assertNotEqual(formula["queues"][0]["small_loss"], tried["queues"][0]["small_loss"])
        note = "* as tried out"
        self.assertNotIn(note, self.find(*words, "--trial", "0").stdout)
        self.assertIn(note, self.find(*words, "--trial", "100000").stdout)

    def test_simulate__sees_what_is_expected(self):
        words = ["resnet50", "--arrival", "120Gbps", "--buffer", "32KB", "--queues", "1"]
        words += ["--trial", "1000000", "--simulate", "100000"]
        row = json.loads(self.find(*words, "--json").stdout)["queues"][0]
        for kind in ("small", "large"):
            seen = row[kind + "_seen"]
            self.assertAlmostEqual(seen["loss"], seen["lost"] / seen["arrived"], delta=1e-5)
            self.assertAlmostEqual(seen["loss"], row[kind + "_loss"],
                                   delta=4 * seen["error"] + 0.1 * seen["loss"])
            self.assertNotEqual(row[kind + "_paper"], row[kind + "_loss"])
        self.assertIn("Seen, with twice the standard deviation:", self.find(*words).stdout)

    def test_queues__may_be_fewer(self):
        found = json.loads(self.find(*PORT, "--queues", "6", "--small", "30%", "--json").stdout)
        self.assertEqual(len(found["limits"]), 6)

    def test_errors__are_one_line(self):
        self.refuse("thresholds: of which model?", "--arrival", "1Gbps")
        self.refuse("thresholds: missing: --arrival=RATE", "resnet50")
        self.refuse("thresholds: unknown model: resnet51", "resnet51", "--arrival", "1Gbps")
        self.refuse("thresholds: 'vgg16': one model", "resnet50", "vgg16")
        self.refuse("--arrival=fast: expected a rate", "--arrival", "fast")
        self.refuse("--service=5: expected a rate", "--service", "5")
        self.refuse("--buffer=3GiB: expected a size up to 2 GiB", "--buffer", "3GiB")
        self.refuse("--packet=1: expected a size from 64 B", "--packet", "1")
        self.refuse("--queues=8: expected a whole number", "--queues", "8")
        self.refuse("--simulate=0: expected a whole number from 1", "--simulate", "0")
        self.refuse("--trial=some: expected a whole number", "--trial", "some")
        self.refuse("--small=2: expected a part", "--small", "2")
        for part in ("0", "1", "100%"):
            self.refuse(f"--small={part}: expected a part between 0 and 1", "--small", part)
        self.refuse("--formula=ours: expected joint or paper", "--formula", "ours")
        self.refuse("thresholds: the buffer must hold", *PORT[:3], "--buffer", "10KB")
        self.refuse("thresholds: queue 7 is starved: those before it take 13", *PORT[:1],
                    "--arrival", "285Gbps")

    def test_tables__errors_name_file_and_line(self):
        def costs(line, text):
            bad = self.file("bad.csv", text)
            self.refuse(f"thresholds: {bad}{line}", *PORT, "--costs", bad)

        self.refuse("thresholds: /no/such.csv: No such file", *PORT, "--costs", "/no/such.csv")
        layers = self.file("layers.csv", LAYERS + "one,fc,ten,2,1\n")
        self.refuse(f"thresholds: {layers}:2: weights must be", layers, "--arrival", "1Gbps")
        costs(": the file is empty; the first line", "")
        costs(":1: the first line must be", "queue,loss\n")
        costs(":2: has 3 columns instead of 4", COSTS + "1,small,1%\n")
        costs(":2: queue must be from 1 to 7, not '8'", COSTS + "8,small,1%,1\n")
        costs(":2: gradients must be small or large, not 'big'", COSTS + "1,big,1%,1\n")
        costs(":2: loss must be from 1e-09 to 1", COSTS + "1,small,0,1\n")
        costs(":2: rounds must be a number", COSTS + "1,small,1%,-1\n")
        for loss in ("1e-10", "1e", "1e5", "101%", "1%%", "0x1p-4", "nan", "inf", "-1e-3", "+1", "e-5", "", "."):
            costs(f":2: loss must be from 1e-09 to 1, or as a percentage, not '{loss}'",
                  COSTS + f"1,small,{loss},1\n")
        for rounds in ("1e7", "1%", "1e400", "0x1", "nan", "1 2"):
            costs(f":2: rounds must be a number from 0 to 1000000, not '{rounds}'",
                  COSTS + f"1,small,1%,{rounds}\n")
        costs(":3: loss must be above that", COSTS + "1,small,2%,1\n1,small,1%,2\n")
        costs(":3: rounds must not be below", COSTS + "1,small,1%,2\n1,small,2%,1\n")
        costs(": queue 1 has no point of large", COSTS + "1,small,1%,1\n")
        costs(":1: no text: there is a NUL byte", "\0" + COSTS)
        costs(":3: no text: there is a NUL byte", COSTS + "1,small,1%,1\n\0\n")
        costs(":2: no text: there is a NUL byte", COSTS + "1,small,1%,1\0,2\n")
        costs(":2: the line is longer", COSTS + "1" * 600 + "\n")

    def test_help__has_an_example(self):
        self.assertIn("gradwire thresholds resnet50 --arrival", self.find("--help").stdout)


if __name__ == "__main__":
    unittest.main()
