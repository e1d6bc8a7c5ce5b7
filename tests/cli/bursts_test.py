#!/usr/bin/env python3
"""The JSON of bursts: the scenario that other programs run, the keys that the manual lists, and
boxes. Called with the program."""
import json
import os
import re
import statistics
import sys
import unittest

from command_case import CommandCase

PROGRAM = os.path.abspath(sys.argv.pop(1))
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PCN = os.path.join(ROOT, "scenarios", "pcn.yaml")
JOB = """\
topology: {kind: star, hosts: 3, rate: 100Gbps, latency: 1us}
workload: {kind: allreduce, via: ps, workers: 2, size: 1MB, placement: given, hosts: '0-2'}
host: {mtu: 1408, header: 64}
queue: {kind: red, capacity: 1MB}
loss: timeout
metrics: {port: [sw0, host2]}
"""


def manual():
    """The keys of each table of the manual that begins with "key of `NAME`"."""
    with open(os.path.join(ROOT, "docs", "simulator.md"), encoding="utf-8") as file:
        lines = file.read().split("\n")
    keys, name = {}, None
    for line in lines:
        title = re.match(r"\| key of `(\w+)", line)
        if title:
            name = title[1]
            keys[name] = set()
        elif name and line.startswith("| `"):
            keys[name].update(re.findall(r"`(\w+)`", line.split("|")[1]))
        elif not line.startswith("|"):
            name = None
    return keys


class BurstsTest(CommandCase):
    def run_file(self, path, *words, status=0):
        return json.loads(self.call(PROGRAM, "sim", path, "--json", *words, status=status).stdout)

    def test_keys__are_those_of_the_manual(self):
        result, keys = self.run_file(PCN, "--set", "pcn=yes"), manual()
        self.assertEqual(len(result["bursts"]), 6)
        for burst in result["bursts"]:
            self.assertEqual(set(burst), keys["bursts"])
            self.assertTrue(0 <= burst["queue_at_start"] <= burst["queue_max"] <= 60)
            self.assertTrue(0 < burst["completion_us"] < 1e6)
        self.assertEqual(set(result["port"]), keys["port"])
        self.assertEqual(set(result["pcn"]), keys["pcn"])
        self.assertEqual(result["pcn"]["announced"], 12)
        self.assertNotIn("job_bursts", result)
        job = self.run_file(self.file("job.yaml", JOB))
        for burst in job["job_bursts"]:
            self.assertEqual(set(burst), keys["bursts"] | {"job", "bytes"})
        self.assertEqual(len(job["job_bursts"]), 1)
        self.assertEqual(set(job["pcn"].values()), {0})  # nobody announced anything
        self.assertNotIn("bursts", job)

    def test_boxes__are_those_of_the_bursts(self):
        result = self.run_file(PCN)
        for key in ("queue_at_start", "queue_max", "completion_us"):
            values = sorted(burst[key] for burst in result["bursts"])
            cuts = statistics.quantiles(values, method="inclusive")
            expected = [values[0], *cuts, values[-1], statistics.mean(values)]
            box = result["burst_boxes"][key]
            self.assertEqual(list(box), ["min", "q1", "median", "q3", "max", "mean"])
            for number, part in zip(expected, box.values(), strict=True):
                self.assertAlmostEqual(number, part, places=5)

    def test_box__of_no_burst_is_empty(self):
        result = self.run_file(PCN, "--set", "time_limit=1s", status=1)
        self.assertEqual(result["bursts"], [])
        self.assertEqual(result["burst_boxes"]["queue_max"], {})


if __name__ == "__main__":
    unittest.main()
