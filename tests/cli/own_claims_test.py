#!/usr/bin/env python3
"""Scenarios of our own with claims: what scenarios/straggler.yaml claims of bounds whatever the size is,
and that a part of its sweep is no error; and all of scenarios/fairness.yaml and slow-link.yaml. Called with
the program."""
import json
import os
import sys
import unittest

from command_case import CommandCase

PROGRAM = os.path.abspath(sys.argv.pop(1))
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
STRAGGLER = os.path.join(ROOT, "scenarios", "straggler.yaml")
WHOLE = {"fairness.yaml": 8, "slow-link.yaml": 16}  # points of their sweeps
SMALL = ("--set", "workload.size=2MB", "--set", "workload.iterations=2")


class StragglerTest(CommandCase):
    def claims(self, *words):
        results = json.loads(self.call(PROGRAM, "sim", STRAGGLER, "--json", *SMALL, *words).stdout)
        return {claim["id"]: claim["holds"] for claim in results[0]["claims"]}

    def test_claims__hold_of_a_small_job(self):
        claims = self.claims()
        for name in ("loss", "slower", "bound", "exact"):
            self.assertTrue(claims["straggler." + name], name)

    def test_claims__of_points_that_are_not_there_are_not_computed(self):
        claims = self.claims("--set", "loss=0", "--set", "until=401us")
        self.assertIsNone(claims["straggler.loss"])
        self.assertTrue(claims["straggler.exact"])


class WholeTest(CommandCase):
    def test_claims__hold(self):
        for name, points in WHOLE.items():
            path = os.path.join(ROOT, "scenarios", name)
            results = json.loads(self.call(PROGRAM, "sim", path, "--json").stdout)
            self.assertEqual(len(results), points)
            for claim in results[0]["claims"]:
                self.assertTrue(claim["holds"], claim)


if __name__ == "__main__":
    unittest.main()
