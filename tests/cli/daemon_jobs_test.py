#!/usr/bin/env python3
"""What becomes of jobs when their daemon has been stopped for a while, or has served another job of
the same name before. Called with the path of the program."""
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from ports import free_port  # noqa: E402

PROGRAM = os.path.abspath(sys.argv.pop(1))
PATIENCE_S = 60
SILENCE_S = 2  # after so long without a word a neighbour is given up
SUMS = ["--workers", "2", "--size", "100KB"]


class DaemonJobsTest(unittest.TestCase):
    def start(self, kind):
        """Starts a daemon; where it listens."""
        folder = tempfile.TemporaryDirectory(prefix="gradwire_daemon_")
        self.addCleanup(folder.cleanup)
        at = f"127.0.0.1:{free_port()}"
        config, self.log = (os.path.join(folder.name, name) for name in ("config", "log"))
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"listen: {at}\nstatus: {folder.name}/status\n")
        with open(self.log, "w", encoding="utf-8") as log:
            self.daemon = subprocess.Popen([PROGRAM, kind, "--config", config], stderr=log)
        self.addCleanup(self.daemon.wait)
        self.addCleanup(self.daemon.kill)
        self.await_log("listening at")
        return at

    def await_log(self, text):
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.read_log():
            self.assertLess(time.monotonic(), deadline, self.read_log())
            time.sleep(0.02)

    def read_log(self):
        with open(self.log, encoding="utf-8") as file:
            return file.read()

    def bench(self, *words):
        return subprocess.Popen([PROGRAM, "bench", *SUMS, *words], stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)

    def await_end(self, job, status=0):
        _, complaints = job.communicate(timeout=PATIENCE_S)
        self.assertEqual(job.returncode, status, complaints)

    def stop_and_go_on(self, kind, option):
        """A job lives through that its daemon does not run for longer than neighbours are waited for."""
        job = self.bench(option, self.start(kind), "--iters", "30", "--pause", "100ms")
        self.await_log(": up")
        time.sleep(0.5)  # it has begun
        self.daemon.send_signal(signal.SIGSTOP)
        time.sleep(SILENCE_S + 0.5)
        self.daemon.send_signal(signal.SIGCONT)
        self.await_end(job)
        self.assertNotIn("taken", self.read_log())

    def test_a_server_that_was_stopped_keeps_its_jobs(self):
        self.stop_and_go_on("server", "--server")

    def test_a_switch_that_was_stopped_keeps_its_jobs(self):
        self.stop_and_go_on("switch", "--switch")

    def test_a_name_is_free_when_its_job_is_over(self):
        """Also if rank 0, the server, was killed; a switch would wait for its job for 10 s."""
        switch = self.start("switch")
        for _ in range(2):
            self.await_end(self.bench("--switch", switch, "--iters", "2", "--deadline", "5s"))
        before = self.read_log().count(": up")
        job = self.bench("--switch", switch, "--iters", "100000")
        while self.read_log().count(": up") == before:
            time.sleep(0.02)
        with open(f"/proc/{job.pid}/task/{job.pid}/children", encoding="ascii") as file:
            ranks = [int(pid) for pid in file.read().split()]
        for rank in ranks:
            os.kill(rank, signal.SIGKILL)
        self.await_end(job, status=1)
        self.await_end(self.bench("--switch", switch, "--iters", "2", "--deadline", "5s"))


if __name__ == "__main__":
    unittest.main()
