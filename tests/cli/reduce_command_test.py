#!/usr/bin/env python3
"""The command lines of `gradwire bench`, `allreduce` and `check`, as scripts see them: exit statuses,
one line per error, JSON, files. Called with the path of the program."""
import array
import json
import os
import socket
import struct
import subprocess
import sys
import unittest

from command_case import CommandCase

PROGRAM = os.path.abspath(sys.argv.pop(1))

KEYS = {
    "workers", "via", "elements", "bytes", "iters", "time_ms", "algbw_gbps", "busbw_gbps",
    "cpu_s_per_gb", "max_abs_error", "exact_bound", "aggregated_in_switch",
    "retransmits", "overflow_fragments", "server_link_bytes", "copies_saved",
}  # fmt: skip


def npy(values, shape, descr="<f4", code="f"):
    """The bytes of an .npy file."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    data = array.array(code, values).tobytes()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


class CommandTest(CommandCase):
    def run_program(self, *arguments, status=0):
        return self.call(PROGRAM, *arguments, status=status)

    def refuse(self, *arguments, names, status=2):
        """The command fails with one line that names what is wrong."""
        result = self.run_program(*arguments, status=status)
        self.assertEqual(result.stdout, "")
        self.assertIn(names, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)

    def test_bench_reports_json(self):
        for via, part in [("ina", 1), ("ps", 0)]:
            result = self.run_program("bench", "--workers", "3", "--size", "200KB", "--iters", "4",
                                      "--via", via, "--json")
            found = json.loads(result.stdout)
            self.assertEqual(set(found), KEYS)
            self.assertEqual(set(found["time_ms"]), {"min", "mean", "p50", "p99", "p99.9", "max"})
            self.assertEqual((found["workers"], found["via"], found["iters"]), (3, via, 4))
            self.assertEqual((found["elements"], found["bytes"]), (50000, 200000))
            self.assertLessEqual(found["max_abs_error"], found["exact_bound"])
            self.assertAlmostEqual(found["aggregated_in_switch"], part, delta=0.2)
            self.assertGreater(found["server_link_bytes"], 200000 * (3 if via == "ps" else 1))

    def test_bench_ends_ranks_of_one_that_cannot_start(self):
        """They would wait for it for longer than this test does."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as holder:
            holder.bind(("127.0.0.1", 0))
            join = f"127.0.0.1:{holder.getsockname()[1]}"
            self.refuse("bench", "--workers", "3", "--size", "1KB", "--join", join,
                        "--deadline", "1000s", names="rank 0: cannot open UDP socket", status=1)

    def test_allreduce_ends_workers_that_wait_for_one_that_failed(self):
        file = self.file("a.npy", npy([1, 2], (2,)))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as holder:
            holder.bind(("127.0.0.1", 0))
            join = f"127.0.0.1:{holder.getsockname()[1]}"
            self.refuse("allreduce", "--join", join, "--deadline", "1000s", file, file, file,
                        names="cannot open UDP socket", status=1)

    def test_bench_takes_its_ranks_along(self):
        """Killed, it cannot end them."""
        bench = subprocess.Popen([PROGRAM, "bench", "--size", "1MB", "--iters", "100000"],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        children = f"/proc/{bench.pid}/task/{bench.pid}/children"
        ranks = []
        while len(ranks) < 4:
            with open(children, encoding="ascii") as file:
                ranks = file.read().split()
        bench.kill()
        bench.communicate(timeout=60)  # ends when nobody has the pipe any more
        self.assertFalse([rank for rank in ranks if os.path.exists(f"/proc/{rank}/exe")])

    def test_bench_multicasts_results(self):
        """Who listens says so after a tenth of a second."""
        for group, saves in [(None, True), ("239.77.1.253:29653", True), ("none", False)]:
            said = ("--multicast", group) if group else ()
            result = self.run_program("bench", "--workers", "3", "--size", "1MB", "--iters", "250",
                                      *said, "--json")
            self.assertEqual(json.loads(result.stdout)["copies_saved"] > 0, saves, group)

    def test_bench_cuts_sums_among_threads(self):
        for via in ("ina", "ps", "ring"):
            result = self.run_program("bench", "--workers", "3", "--size", "4MB", "--iters", "3", "--threads",
                                      "3", "--via", via, "--json")
            found = json.loads(result.stdout)
            self.assertLessEqual(found["max_abs_error"], found["exact_bound"])

    def test_bench_survives_faults(self):
        result = self.run_program("bench", "--workers", "2", "--size", "500KB", "--iters", "1",
                                  "--loss", "0.02", "--duplicate", "2%", "--delay", "0.02", "--json")
        found = json.loads(result.stdout)
        self.assertLessEqual(found["max_abs_error"], 1e-6)
        self.assertGreater(found["retransmits"], 0)

    def test_bench_keeps_bounds(self):
        """And checks them itself, with what each fragment's sum must be."""
        for via, pull in [("ina", ()), ("ps", ("--bound-pull", "5%")), ("ring", ("--bound-pull", "5%"))]:
            result = self.run_program("bench", "--workers", "3", "--size", "400KB", "--iters", "5",
                                      "--via", via, "--loss", "0.02", "--bound", "10%", *pull, "--json")
            found = json.loads(result.stdout)
            self.assertLessEqual(found["missing"]["contributions"], 0.1)
            self.assertLessEqual(found["missing"]["sums"], 0.05 if pull else 0)

    def test_bench_reduces_models_with_more_tensors_than_calls(self):
        rows = [f"layer{i},fc,300,20,6000" for i in range(50)]
        model = self.file("own.csv", "\n".join(["layer,kind,weights,biases,macs", *rows, ""]))
        result = self.run_program("bench", "--workers", "2", "--iters", "2", "--model", model, "--json")
        self.assertEqual(json.loads(result.stdout)["bytes"], 4 * 50 * 320)

    def test_bench_refuses(self):
        self.refuse("bench", "--size", "nothing", names="--size=nothing")
        self.refuse("bench", "--workers", "0", names="--workers=0")
        self.refuse("bench", "--via", "pigeon", names="--via=pigeon")
        self.refuse("bench", "--loss", "2", names="--loss=2")
        self.refuse("bench", "--model", "none", names="--model=none")
        for bound in ("0.6", "60%", "-0.1", "0.00001", "0.001%", "10 percent", "", "nan"):
            self.refuse("bench", "--bound", bound, names=f"--bound={bound}")
        self.refuse("bench", "--bound-pull", "x", names="--bound-pull=x")
        self.refuse("bench", "--via", "send", "--bound-pull", "10%", names="--bound-pull")
        self.refuse("bench", "--via", "send", "--importance", "means", names="--importance")
        self.refuse("bench", "--important-first", names="--important-first")
        self.refuse("bench", "--bound", "10%", "--bound-pull", "10%", names="--bound-pull")
        self.refuse("bench", "--via", "ina", "--importance", "means", names="--importance")
        self.refuse("bench", "--bound", "10%", "--important-first", names="--important-first")
        for option in ("join", "server", "switch"):
            self.refuse("bench", f"--{option}", "pigeon", names=f"{option} is pigeon")
        for protection in ("authenticate", "encrypt"):
            self.refuse("bench", f"--{protection}", names=f"{protection} needs a key")
        for group in ("pigeon", "127.0.0.1:5000", "239.77.1.253"):
            self.refuse("bench", "--multicast", group, names=f"multicast is {group}")
        self.refuse("bench", "--rank", "0", "--world", "3", "--join", "127.0.0.1:29652",
                    "--multicast", "239.77.1.253:29652", names="the port of join")
        self.refuse("bench", "--rank", "0", "--world", "3", "--join", "127.0.0.1:29652",
                    "--multicast", "[ff12::5]:29653", names="the family of join")
        self.refuse("bench", "--rank", "1", names="--world")
        self.refuse("bench", "something", names="something")
        self.refuse("bench", "--workers", "1", "--window", "3", names="window")
        for via in ("ring", "send"):  # what may lose a part may be as large as can be
            self.refuse("bench", "--via", via, "--values", "62", "--size", "5GB", "--bound", "10%",
                        names="largest is 5000000000: at most 4160749568 bytes")
        self.refuse("bench", "--rate", "1Kbps", names="--rate=1Kbps")
        self.refuse("bench", "--threads", "x", names="--threads=x")
        self.refuse("bench", "--threads", "17", names="threads is 17: 1 to 16")
        self.refuse("bench", "--workers", "1", "--rate", "500Gbps", names="rate_bps")
        for option in ("values", "threads", "paths", "window"):
            for number in ("0", "999999999999999", "-1"):
                self.refuse("bench", f"--{option}={number}",
                            names=f"--{option}={number}: expected a whole number from 1 to 4294967295")
        self.refuse("bench", "--seed=99999999999999999999", names="from 0 to 9223372036854775807")

    def test_bench_waits_no_longer_than_the_deadline(self):
        self.refuse("bench", "--rank", "1", "--world", "2", "--join", "127.0.0.1:9", "--deadline",
                    "300ms", names="127.0.0.1:9", status=1)

    def test_allreduce_sums_files(self):
        files = [self.file(f"{rank}.npy", npy([rank + i for i in range(1000)], (10, 100)))
                 for rank in range(3)]
        out = self.path("sum.npy")
        result = self.run_program("allreduce", "--json", "-o", out, *files)
        self.assertEqual(json.loads(result.stdout)["workers"], 3)
        with open(out, "rb") as file:
            self.assertEqual(file.read(), npy([3 + 3 * i for i in range(1000)], (10, 100)))
        self.assertEqual(sorted(os.listdir(self.folder)), ["0.npy", "1.npy", "2.npy", "sum.npy"])

    def test_allreduce_sums_nothing(self):
        file = self.file("empty.npy", npy([], (0,)))
        found = json.loads(self.run_program("allreduce", "--json", file, file).stdout)
        self.assertEqual((found["elements"], found["cpu_s_per_gb"]), (0, 0))
        self.assertNotIn("inf", self.run_program("allreduce", file, file).stdout)

    def test_allreduce_average_and_int32(self):
        files = [self.file(f"{rank}.npy", npy([rank, 4], (2,))) for rank in range(2)]
        self.run_program("allreduce", "--average", "-o", self.path("out.npy"), *files)
        with open(self.path("out.npy"), "rb") as file:
            self.assertEqual(file.read(), npy([0.5, 4], (2,)))
        files = [self.file(f"{rank}.npy", npy([2**30, -5], (2,), "<i4", "i")) for rank in range(2)]
        self.refuse("allreduce", *files, names="int32", status=1)
        self.refuse("allreduce", "--average", *files, names="average")
        self.run_program("allreduce", "-o", self.path("out.npy"), files[0])
        with open(self.path("out.npy"), "rb") as file:
            self.assertEqual(file.read(), npy([2**30, -5], (2,), "<i4", "i"))

    def test_allreduce_knows_sums_beyond_the_largest_number(self):
        """The sum that is right is infinite, too, or none."""
        for name, largest, descr, code in (("single", 3e38, "<f4", "f"), ("half", 0x7BFF, "<f2", "H")):
            file = self.file(name, npy([largest] * 100, (100,), descr, code))
            result = self.run_program("allreduce", "--json", file, file)
            self.assertEqual(json.loads(result.stdout)["max_abs_error"], 0, name)
        file = self.file("none", npy([float("nan"), float("-inf")], (2,)))
        result = self.run_program("allreduce", "--json", file, file)
        self.assertEqual(json.loads(result.stdout)["max_abs_error"], 0)

    def test_allreduce_says_how_far_a_sum_is_from_one_that_is_infinite(self):
        """In a ring a part of the sum is beyond the largest number, the sum is not."""
        files = [self.file(f"{rank}.npy", npy([value] * 8, (8,))) for rank, value in
                 enumerate((3e38, 3e38, -3e38, -3e38))]
        result = self.run_program("allreduce", "--json", "--via", "ring", *files)
        self.assertGreater(json.loads(result.stdout)["max_abs_error"], 1e38)

    def test_allreduce_refuses(self):
        good = self.file("good.npy", npy([1, 2], (2,)))
        other = self.file("other.npy", npy([1, 2], (2, 1)))
        broken = self.file("broken.npy", npy([1, 2], (3,)))
        text = self.file("text.npy", b"hello")
        self.refuse("allreduce", names="no file")
        self.refuse("allreduce", good, self.path("absent.npy"), names="absent.npy")
        self.refuse("allreduce", good, other, names="shape is (2,) against (2, 1)")
        self.refuse("allreduce", good, broken, names="truncated")
        self.refuse("allreduce", text, names="text.npy")
        self.refuse("allreduce", "--threads", "1000", good, names="allreduce: threads is 1000: 1 to 16")
        for output, reason in (("/nonexistent/x.npy", "No such file or directory"), (self.folder, "regular"),
                               ("/dev/full", "regular"), ("", "without a name")):
            self.refuse("allreduce", "-o", output, good, names=f"cannot write {output}")
            self.refuse("allreduce", "-o", output, good, names=reason)

    def test_check_reports(self):
        found = json.loads(self.run_program("check", "--json").stdout)["items"]
        names = {item["item"] for item in found}
        self.assertLessEqual({"kernel", "sending trains", "receiving trains", "class and ECN",
                              "receive buffer", "IPv6", "port", "clock"}, names)
        for item in found:
            self.assertIn(item["state"], {"ok", "warn"})
            self.assertEqual(item["advice"] == "", item["state"] == "ok")
            self.assertNotEqual(item["found"], "")
        self.refuse("check", "--port", "0", names="--port=0")
        self.refuse("check", "--interface", "nothere", names="nothere")


if __name__ == "__main__":
    unittest.main()
