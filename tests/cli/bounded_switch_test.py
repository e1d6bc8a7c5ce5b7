#!/usr/bin/env python3
"""Three jobs that may lose a part, through one shaped port of a switch that drops by worth.

The jobs' ranks 0 are at a leaf and their ranks 1 at the switch above it, so all contributions of
the ranks 0 share the leaf's way up. What is lost there is unimportant, in the class of the tensor,
and each job keeps to its bound; `gradwire bench` checks every sum, and what is missing of each.
"""
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from ports import free_port  # noqa: E402

JOBS = 3
BOUND = 0.45
DEADLINE_S = 60
BY_WORTH = "{kind: dlcp, thresholds: [64KB], capacity: 4MiB}"
BY_SIZE = "{kind: pfabric, capacity: 64KiB}"
CLASS = 6  # of the first of one layer


class BoundedSwitchTest(unittest.TestCase):
    def start(self, *arguments, **more):
        process = subprocess.Popen([BINARY, *arguments], text=True, **more)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def switch(self, name, port, rate, above=None):
        path = os.path.join(self.folder, f"{name}.yaml")
        with open(path, "w", encoding="utf-8") as file:
            lines = [f"listen: 127.0.0.1:{port}", f"rate: {rate}", f"queue: {self.queue}"]
            print(*lines, *([f"switch: 127.0.0.1:{above}"] if above else []), sep="\n", file=file)
        self.start("switch", "--config", path, stderr=subprocess.DEVNULL)
        return path

    def status(self, path):
        return json.loads(subprocess.run([BINARY, "switch", "--status", "--config", path],
                                         capture_output=True, text=True, check=True).stdout)

    def await_neighbour(self, path):
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            try:
                if self.status(path)["neighbours"]:
                    return
            except subprocess.CalledProcessError:
                pass  # it does not listen yet
            time.sleep(0.05)
        self.fail(f"nobody attached to {path}")

    def bench(self, job, rank, join, switch, *more):
        return self.start(
            "bench", "--via", "ring", "--job", f"job{job}", "--world", "2", "--rank", str(rank),
            "--join", f"127.0.0.1:{join}", "--switch", f"127.0.0.1:{switch}", "--rate", "100Mbps",
            "--size", "400KB", "--iters", "8", "--bound", str(BOUND), "--bound-pull", str(BOUND),
            "--importance", "means", "--json", *more, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run_jobs(self, *more, queue=BY_WORTH):
        """The jobs side by side: the results of their ranks 0, and what the leaf's queue has lost."""
        self.queue = queue
        with tempfile.TemporaryDirectory() as self.folder:
            top, leaf, *joins = (free_port() for _ in range(2 + JOBS))
            above = self.switch("top", top, "1Gbps")
            below = self.switch("leaf", leaf, "100Mbps", top)
            self.await_neighbour(above)
            ranks = [self.bench(job, rank, joins[job], top if rank else leaf, *more)
                     for job in range(JOBS) for rank in (0, 1)]
            results = []
            for number, rank in enumerate(ranks):
                out, errors = rank.communicate(timeout=DEADLINE_S)
                self.assertEqual(rank.returncode, 0, errors)
                if number % 2 == 0:
                    results.append(json.loads(out))
            return results, self.status(below)["queues"]["losses"]

    def test_unimportant_packets_are_lost_first(self):
        results, losses = self.run_jobs()
        for result in results:
            self.assertGreater(result["missing"]["contributions"], 0)
        self.assertGreater(losses["unimportant"][CLASS], 0)
        self.assertEqual(losses["drops"], losses["unimportant"])
        self.assertEqual(sum(losses["drops"]), losses["drops"][CLASS])

    def test_messages_fall_in_class_as_they_age(self):
        """By PIAS, whose kernel module's preset lets them fall once, after 100 KiB."""
        _, losses = self.run_jobs("--urgency", "pias:kernel", "--size", "1MB")
        drops = losses["drops"]
        self.assertGreater(drops[CLASS - 1], 0)
        self.assertEqual(sum(drops), drops[CLASS] + drops[CLASS - 1])

    def test_pfabric_takes_no_notice_of_worth(self):
        """But of what is left of a message: important packets are lost as well, and bounds kept."""
        results, losses = self.run_jobs("--iters", "3", queue=BY_SIZE)
        for result in results:
            self.assertGreater(result["missing"]["contributions"], 0)
        self.assertGreater(losses["drops"][CLASS], losses["unimportant"][CLASS])


BINARY = os.path.abspath(sys.argv.pop(1))
unittest.main()
