#!/usr/bin/env python3
"""The experiments on a task of a test's own, small enough for seconds; and the example."""

import csv
import itertools
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from groups import WAIT_S
from ports import free_port

ROOT = Path(__file__).resolve().parent.parent.parent
TASK = f"{Path(__file__).parent / 'profile_test.py'}:task"


def run(*words):
    command = [sys.executable, "-W", "ignore", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


class ExperimentsTest(unittest.TestCase):
    def rows(self, name, *words, suffix=""):
        """What an experiment writes."""
        with tempfile.TemporaryDirectory() as folder:
            words = ["--no-plot", "--seeds", "1", "--out", folder, *words]
            ended = run(ROOT / "experiments" / name, *words)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            with open(Path(folder) / f"{name}{suffix}.csv", encoding="utf-8") as file:
                return list(csv.DictReader(file))

    def test_bounds__cost_epochs(self):
        rows = self.rows("bounds", "--tasks", TASK, "--rates", "0.2,0.999")
        epochs = [float(row["epochs"]) for row in rows]
        self.assertEqual([float(row["loss"]) for row in rows], [0, 0.2, 0.999])
        self.assertLess(epochs[0], 3)
        self.assertLess(epochs[0], epochs[2])

    def test_groups__write_curves_for_thresholds(self):
        words = ["--task", TASK, "--rates", "0.5,1"]
        rows = self.rows("groups", *words, suffix="-costs")
        self.assertEqual(list(rows[0]), ["queue", "gradients", "loss", "rounds"])
        self.assertEqual({row["queue"] for row in rows}, {"1", "4", "7"})
        self.assertEqual({row["loss"] for row in rows}, {"50%", "100%"})
        for half, whole in itertools.pairwise(rows):
            if half["loss"] == "50%":
                self.assertLessEqual(float(half["rounds"]), float(whole["rounds"]))

    def test_replicas__stay_equal_by_our_rule_alone(self):
        rows = self.rows("pull", "--task", TASK, "--epochs", "1")
        ours = [float(row["distance"]) for row in rows if row["rule"] == "agree"]
        theirs = {row["loss"]: float(row["distance"]) for row in rows if row["rule"] == "keep"}
        self.assertEqual(ours, [0] * 4)
        self.assertEqual(theirs["0.0"], 0)
        self.assertGreater(theirs["0.1"], 0)

    def test_numbers__count_what_overflows(self):
        words = ["--tasks", TASK, "--rounds", "1"]
        rows = self.rows("numbers", *words, suffix="-overflow")
        self.assertEqual(len(rows), 2 * 4)
        for row in rows:
            self.assertLessEqual(int(row["needless"]), int(row["cautious"]))
            self.assertLessEqual(int(row["cautious"]), int(row["packets"]))

    def test_wrong_words__are_named(self):
        for words, wrong in (
            (["bounds", "--tasks", "resnet/nothing"], "resnet/nothing"),
            (["bounds", "--rates", "none"], "none"),
            (["groups", "--task", "nowhere.py:task"], "nowhere.py"),
            (["pull", "--epochs", "0"], "--epochs"),
            (["numbers", "--seeds", "0"], "--seeds"),
            (["times", "--ways", "pigeons"], "pigeons"),
        ):
            ended = run(ROOT / "experiments" / words[0], "--no-plot", *words[1:])
            self.assertEqual(ended.returncode, 2, ended)
            self.assertIn(wrong, ended.stderr)
            self.assertNotIn("Traceback", ended.stderr)

    def test_python_without_packages__is_told_what_it_needs(self):
        ended = run("-S", ROOT / "experiments" / "bounds")
        self.assertEqual(ended.returncode, 2, ended)
        self.assertIn("docs/convergence.md", ended.stderr)
        self.assertNotIn("Traceback", ended.stderr)


class ExampleTest(unittest.TestCase):
    def test_example__learns(self):
        """As torchrun starts it, which of PyTorch 1.13 does not run on Debian's Python."""
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
        command = [sys.executable, "-W", "ignore", ROOT / "examples" / "train.py"]
        ranks = []
        for rank in ("0", "1"):
            own = {**os.environ, **place, "RANK": rank, "LOCAL_WORLD_SIZE": "2"}
            ranks.append(subprocess.Popen(command, env=own, stdout=subprocess.PIPE, text=True))
            self.addCleanup(ranks[-1].stdout.close)
            self.addCleanup(ranks[-1].kill)
        said = ranks[0].communicate(timeout=WAIT_S)[0]
        self.assertEqual([rank.wait(WAIT_S) for rank in ranks], [0, 0])
        self.assertEqual(said.count("\nstep "), 2, said)  # and one in the first line
        right = float(said.split("not seen before ")[1].split("%")[0])
        self.assertGreater(right, 80)


if __name__ == "__main__":
    unittest.main()
