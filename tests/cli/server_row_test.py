#!/usr/bin/env python3
"""A server that listens at several ports is as many processes, which share the sums of a job."""
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from ports import free_row  # noqa: E402

PROGRAM = os.path.abspath(sys.argv.pop(1))
COUNT = 3  # ports of the row
PATIENCE_S = 60


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class ServerRowTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.first = free_row(COUNT)
        self.row = f"127.0.0.1:{self.first}-{self.first + COUNT - 1}"
        self.config = os.path.join(self.folder.name, "server.yaml")
        self.log = os.path.join(self.folder.name, "log")
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder.name, "TMPDIR": self.folder.name}
        self.server = None

    def tearDown(self):
        if self.server:
            self.server.kill()
            self.server.wait()
        self.folder.cleanup()

    def configure(self, text):
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(text)

    def read_log(self):
        with open(self.log, encoding="utf-8") as file:
            return file.read()

    def begin(self, *more, prepare=None):
        """Starts the server, and does not wait for it."""
        self.configure("\n".join([f"listen: {self.row}", *more, ""]))
        with open(self.log, "w", encoding="utf-8") as log:
            self.server = subprocess.Popen([PROGRAM, "server", "--config", self.config], stderr=log,
                                           env=self.environment, preexec_fn=prepare)

    def start(self, *more, prepare=None):
        """Starts the server; its processes, by port."""
        self.begin(*more, prepare=prepare)
        deadline = time.monotonic() + PATIENCE_S
        while self.read_log().count("listening at") < COUNT:
            self.assertLess(time.monotonic(), deadline, self.read_log())
            time.sleep(0.02)
        children = f"/proc/{self.server.pid}/task/{self.server.pid}/children"
        with open(children, encoding="ascii") as file:
            found = [int(pid) for pid in file.read().split()]
        self.assertEqual(len(found), COUNT)
        return found

    def ask(self):
        """The status of each."""
        result = subprocess.run([PROGRAM, "server", "--config", self.config, "--status", "--json"],
                                capture_output=True, text=True, check=True, env=self.environment)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def refuses(self, kind, text, *words):
        self.configure(text)
        result = subprocess.run([PROGRAM, kind, "--config", self.config], capture_output=True,
                                text=True, check=False, timeout=PATIENCE_S)
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)

    def test_they_share_the_sums_of_a_job(self):
        self.start()
        ranks = [subprocess.Popen(
            [PROGRAM, "bench", "--rank", str(rank), "--world", "3", "--server", self.row, "--json",
             "--size", "4MB", "--iters", "100"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True) for rank in range(3)]  # fmt: skip
        for rank in ranks:
            out, errors = rank.communicate(timeout=PATIENCE_S)
            self.assertEqual(rank.returncode, 0, errors)
            result = json.loads(out) if out else None
            if result:
                self.assertLessEqual(result["max_abs_error"], result["exact_bound"])
        all_status = self.ask()
        self.assertEqual([one["listen"] for one in all_status],
                         [f"127.0.0.1:{self.first + i}" for i in range(COUNT)])
        results = [one["totals"]["results"] for one in all_status]
        self.assertGreater(min(results), max(results) / 2)
        self.assertGreater(min(results), 3 * 4000000 // (4 * 352) // COUNT // 2)
        self.assertEqual(self.read_log().count("results are multicast to"), COUNT)
        self.server.terminate()
        self.assertEqual(self.server.wait(PATIENCE_S), 0, self.read_log())
        for i in range(COUNT):
            self.assertRegex(self.read_log(), rf"server:{self.first + i}: SIGTERM")

    def shares(self, threads):
        """Of the sums of a job with so many threads, what each server adds up."""
        before = self.ask()
        subprocess.run([PROGRAM, "bench", "--workers", "2", "--threads", str(threads), "--server", self.row,
                        "--size", "6MB", "--iters", "9"], check=True, timeout=PATIENCE_S, capture_output=True)
        results = [one["totals"]["results"] - old["totals"]["results"]
                   for one, old in zip(self.ask(), before)]
        return [result / sum(results) for result in results]

    def test_threads_have_servers_of_their_own(self):
        self.start()
        # The second thread has the second server alone, and half of the sums; a fourth has the first.
        for threads, expected in ((2, (1 / 4, 1 / 2, 1 / 4)), (4, (1 / 2, 1 / 4, 1 / 4))):
            for share, one in zip(self.shares(threads), expected):
                self.assertAlmostEqual(share, one, delta=0.01)

    def test_one_that_ends_ends_all(self):
        found = self.start()
        os.kill(found[1], signal.SIGKILL)
        self.assertEqual(self.server.wait(PATIENCE_S), 1)
        self.assertIn(f"the server at 127.0.0.1:{self.first + 1} has ended (by signal 9), so the "
                      f"others of {self.row} end", self.read_log())
        self.assertFalse(any(is_alive(pid) for pid in found))

    def test_one_that_ends_is_seen_by_who_was_started_with_children_ignored(self):
        found = self.start(prepare=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        os.kill(found[2], signal.SIGKILL)
        self.assertEqual(self.server.wait(PATIENCE_S), 1)
        self.assertFalse(any(is_alive(pid) for pid in found))

    def test_a_signal_amid_the_start_ends_it_in_order(self):
        for wait_ms in range(0, 40, 2):
            self.begin()
            while "\0--config\0" not in self.command_line():
                time.sleep(0.001)
            time.sleep(wait_ms / 1000)
            self.server.terminate()
            self.assertIn(self.server.wait(PATIENCE_S), (0, -signal.SIGTERM), self.read_log())

    def command_line(self):
        with open(f"/proc/{self.server.pid}/cmdline", encoding="utf-8") as file:
            return file.read()

    def test_a_terminal_that_stops_who_writes_does_not_stop_it(self):
        ours, theirs = pty.openpty()
        settings = termios.tcgetattr(theirs)
        settings[3] |= termios.TOSTOP
        termios.tcsetattr(theirs, termios.TCSANOW, settings)
        self.configure(f"listen: {self.row}\n")
        self.server = subprocess.Popen(
            ["setsid", "--ctty", PROGRAM, "server", "--config", self.config], stdin=theirs,
            stdout=theirs, stderr=theirs, env=self.environment)  # fmt: skip
        os.close(theirs)
        text = ""
        while text.count("listening at") < COUNT:
            self.assertTrue(select.select([ours], [], [], PATIENCE_S)[0], text)
            text += os.read(ours, 4096).decode()
        os.write(ours, b"\x03")
        self.assertEqual(self.server.wait(PATIENCE_S), 0)
        os.close(ours)

    def test_a_row_of_one_port_is_a_server(self):
        self.row = f"127.0.0.1:{self.first}-{self.first}"
        self.begin()
        while "listening at" not in self.read_log():
            self.assertIsNone(self.server.poll(), self.read_log())
            time.sleep(0.01)
        self.assertIn(f"listening at 127.0.0.1:{self.first},", self.read_log())
        self.server.terminate()
        self.assertEqual(self.server.wait(PATIENCE_S), 0)

    def test_a_port_that_is_taken_ends_all(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            other.bind(("127.0.0.1", self.first + 2))
            self.configure(f"listen: {self.row}\n")
            result = subprocess.run([PROGRAM, "server", "--config", self.config], capture_output=True,
                                    text=True, check=False, timeout=PATIENCE_S, env=self.environment)
            self.assertEqual(result.returncode, 1)
            self.assertIn(f"127.0.0.1:{self.first + 2}", result.stderr)

    def test_none_is_left_when_the_first_is_killed(self):
        found = self.start()
        self.server.kill()
        self.server.wait()
        deadline = time.monotonic() + PATIENCE_S
        while any(is_alive(pid) for pid in found):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def test_each_has_metrics_and_groups_of_its_own(self):
        self.start(f"metrics: {self.first}", f"multicast: 239.77.0.1:{self.first - 1}", "jobs: 16")
        found = re.findall(r"metrics are at http://127.0.0.1:(\d+)/", self.read_log())
        self.assertEqual(sorted(map(int, found)), [self.first + i for i in range(COUNT)])
        groups = re.findall(r"results are multicast to (\S+)", self.read_log())
        self.assertEqual(set(groups), {f"239.77.0.{at}:{self.first - 1}" for at in (1, 17, 33)})

    def test_groups_that_nobody_chose_have_a_port_that_none_listens_at(self):
        self.row = f"127.0.0.1:4793-{4792 + COUNT}"
        self.start()
        groups = re.findall(r"results are multicast to \S+:(\d+)", self.read_log())
        self.assertEqual(groups, [str(4793 + COUNT)] * COUNT)

    def test_what_cannot_be_is_named(self):
        self.refuses("switch", "listen: 127.0.0.1:4791-4792\n", "listen: 127.0.0.1:4791-4792 are several")
        self.refuses("server", "listen: 127.0.0.1:4791-4792\nswitch: 127.0.0.1:9\n", "listen:", "several")
        self.refuses("server", "listen: 127.0.0.1:4791-4807\n", "17 ports", "at most 16")
        for wrong in ("127.0.0.1:4792-4791", "127.0.0.1:1-", "127.0.0.1:1-65536", '""'):
            self.refuses("server", f"listen: {wrong}\n", "listen: not HOST:PORT or HOST:FIRST-LAST")
        self.refuses("switch", "listen: nowhere\n", "listen: not HOST:PORT: nowhere")
        self.refuses("server", "listen: 127.0.0.1:7-9\nmulticast: 239.1.1.1:8\n", "multicast:",
                     "its port must not be one of `listen`")
        self.refuses("server", "listen: 127.0.0.1:1-2\nstatus: /tmp/x\n", "status: /tmp/x is one path")
        self.refuses("server", "listen: 127.0.0.1:1-2\nmetrics: 65535\n", "metrics:", "no ports")
        self.refuses("server", "listen: 127.0.0.1:1-4\nmulticast: 239.255.255.1:9\n", "multicast:",
                     "256 jobs")


if __name__ == "__main__":
    unittest.main()
