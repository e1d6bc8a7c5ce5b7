#!/usr/bin/env python3
"""Jobs whose ranks are processes: around a ring, through a switch, and when somebody goes away.
Called with the path of the program."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np
from ports import free_port
from ranks import WAIT_S, ProcessCase

import gradwire

EXAMPLE = os.path.join(os.path.dirname(__file__), "../../examples/average.py")
LONG_MS = 600_000  # a deadline that no test reaches


def sum_some(job, pipe):
    numbers = np.full(10_000, job.rank, "f4")
    job.allreduce(numbers)
    return numbers.min(), numbers.max(), job.stats()


def wait_for_the_other(job, pipe):
    """Says that it begins, and waits for what never comes."""
    pipe.send("waiting")
    job.receive(bytearray(1), 1 - job.rank)


def compute(job, pipe):
    pipe.send("waiting")
    while True:
        time.sleep(WAIT_S)


def fork(job, pipe):
    child = os.fork()
    if child == 0:
        refused = 0
        for call in (job.barrier, lambda: job.fragments(b"data")):
            try:
                call()
            except gradwire.ForkedError:
                refused += 1
        job.close()
        os._exit(5 + refused)
    _, status = os.waitpid(child, 0)
    job.barrier()
    return os.waitstatus_to_exitcode(status)


class ProcessesTest(ProcessCase):
    def assert_sums(self, world, **options):
        ends = self.run_ranks(world, sum_some, **options)
        for low, high, _ in ends:
            self.assertEqual((low, high), (sum(range(world)),) * 2)
        return [stats for _, _, stats in ends]

    def test_ring__sums(self):
        for stats in self.assert_sums(4, via="ring"):
            self.assertGreater(stats["datagrams_sent"], 0)
            self.assertEqual(stats["server_results"], 0)

    def test_switch__sums(self):
        port = free_port()
        with tempfile.TemporaryDirectory(prefix="gradwire_python_") as folder:
            config = os.path.join(folder, "switch.yaml")
            with open(config, "w", encoding="utf-8") as file:
                print(f"listen: 127.0.0.1:{port}\naggregators: 64\njobs: 2\nports: 8", file=file)
            switch = subprocess.Popen(
                [PROGRAM, "switch", "--config", config], stderr=subprocess.DEVNULL
            )
            try:
                stats = self.assert_sums(2, switch=f"127.0.0.1:{port}", via="ina")
            finally:
                switch.kill()
                switch.wait()
        self.assertGreater(stats[0]["switch_results"], 0)

    def test_dead_rank__is_named(self):
        processes, pipes = self.start(2, wait_for_the_other, deadline_ms=LONG_MS)
        for pipe in pipes:
            self.assertEqual(self.receive(pipe), "waiting")
        processes[1].kill()
        error = self.receive(pipes[0])
        self.assertIsInstance(error, gradwire.PeerError)
        self.assertIsInstance(error, ConnectionError)
        self.assertRegex(str(error), "^rank 0: .*rank 1")

    def test_interrupt__ends_a_call_and_what_computes(self):
        for body in (wait_for_the_other, compute):
            processes, pipes = self.start(2, body, deadline_ms=LONG_MS)
            for pipe in pipes:
                self.assertEqual(self.receive(pipe), "waiting")
            os.kill(processes[0].pid, signal.SIGINT)
            self.assertIsInstance(self.receive(pipes[0]), KeyboardInterrupt)
            processes[0].join(WAIT_S)
            self.assertIsNotNone(processes[0].exitcode)

    def test_interrupt__ends_the_wait_for_others(self):
        code = f"""if True:
            import threading, os, signal, gradwire
            thread = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
            try:
                thread.start()
                gradwire.Job(world=2, join="127.0.0.1:{free_port()}", deadline_ms={LONG_MS})
            except KeyboardInterrupt:
                print("interrupted")
        """
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=WAIT_S, check=True
        )
        self.assertEqual((done.stdout, done.stderr), ("interrupted\n", ""))

    def test_fork__leaves_the_job_to_its_parent(self):
        self.assertEqual(self.run_ranks(2, fork), [7, 7])

    def test_example__averages(self):
        environment = {**os.environ, "GRADWIRE_JOIN": f"127.0.0.1:{free_port()}", "WORLD_SIZE": "2"}
        ranks = [
            subprocess.Popen(
                [sys.executable, EXAMPLE], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True, env={**environment, "RANK": str(rank)},
            )
            for rank in range(2)
        ]  # fmt: skip
        for rank, process in enumerate(ranks):
            self.addCleanup(process.kill)
            said = f"rank {rank} of 2: every average is 1.5\n"
            self.assertEqual(process.communicate(timeout=WAIT_S), (said, ""))


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
