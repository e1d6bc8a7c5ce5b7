#!/usr/bin/env python3
"""`claims:` of a scenario, as somebody who runs `gradwire sim` sees them. Called with the program."""
import csv
import json
import os
import statistics
import sys
import unittest

from command_case import CommandCase

PROGRAM = os.path.abspath(sys.argv.pop(1))

SCENARIO = """\
topology: {kind: star, hosts: 9}
workload: {kind: allreduce, workers: 8, size: 100KB}
aliases: {via: workload.via}
variants:
  scale: {full: {}, small: {sweep.via: [ina]}}
sweep: {via: [ina, ps]}
"""
TABLE = "table: [completion_us, hops]\n"
CLAIMS = """\
claims:
  - id: fewer-hops
    text: switches save hops
    source: section 5
    measured: 'at({via: "ps"}).hops / at({via: "ina"}).hops'
    expected: {at_least: 1.5}
  - id: many-hops
    text: there are many hops
    source: section 6
    measured: '[.[].hops] | add'
    expected: {about: 3}
    tolerance: 10%
  - id: order
    text: a server needs more hops
    source: section 7
    measured: 'at({via: "ps"}).hops > at({via: "ina"}).hops'
    expected: yes
"""
KEYS = {"id", "text", "source", "expected", "measured", "holds", "seeds_holding"}


class ClaimsTest(CommandCase):
    def sim(self, text, *words, status=0):
        self.name = self.file("claims.yaml", text)
        return self.call(PROGRAM, "sim", self.name, *words, status=status)

    def test_text__says_claimed_measured_and_verdict(self):
        done = self.sim(SCENARIO + TABLE + CLAIMS)
        self.assertEqual(done.stderr, "")
        lines = done.stdout.splitlines()
        start = lines.index("claims: 2 of 3 hold")
        self.assertTrue(lines[0].startswith("via"))
        words = [line.split() for line in lines[start + 1 :]]
        self.assertEqual([line[0] for line in words[::2]], ["holds", "FAILS", "holds"])
        self.assertIn("many-hops (section 6): there are many hops", lines[start + 3])
        self.assertIn("expected about 3 within 10 %; measured ", lines[start + 4])
        self.assertIn("expected yes; measured yes", lines[start + 6])

    def test_text__without_a_table_has_claims_too(self):
        done = self.sim(SCENARIO + CLAIMS, "--seeds", "2")
        self.assertIn("claims: 2 of 3 hold\n", done.stdout)
        self.assertIn("; holds with 2 of 2 seeds\n", done.stdout)

    def test_json__has_the_same_claims_in_every_object(self):
        runs = json.loads(self.sim(SCENARIO + CLAIMS, "--json", "--seeds", "3").stdout)
        self.assertEqual(len(runs), 6)
        claims = runs[0]["claims"]
        for run in runs:
            self.assertEqual(run["claims"], claims)
        self.assertEqual([set(claim) for claim in claims], [KEYS] * 3)
        self.assertEqual([claim["holds"] for claim in claims], [True, False, True])
        self.assertEqual([claim["seeds_holding"] for claim in claims], [3, 0, 3])
        hops = {via: [run["hops"] for run in runs if run["params"]["via"] == via]
                for via in ("ina", "ps")}  # fmt: skip
        ratios = sorted(ps / ina for ina, ps in zip(hops["ina"], hops["ps"]))
        self.assertAlmostEqual(claims[0]["measured"], ratios[1])
        self.assertEqual(claims[1]["expected"], {"about": 3, "tolerance": 0.1})
        self.assertIs(claims[2]["measured"], True)

    def test_json__of_a_single_run_has_claims_over_an_array_of_one(self):
        text = SCENARIO.replace("sweep: {via: [ina, ps]}\n", "") + CLAIMS.replace(
            "at({via: \"ps\"}).hops / at({via: \"ina\"}).hops", "length + 1"
        ).replace("at({via: \"ps\"}).hops > at({via: \"ina\"}).hops", ".[0].hops > 0")
        claims = json.loads(self.sim(text, "--json").stdout)["claims"]
        self.assertEqual(claims[0]["measured"], 2)
        self.assertIs(claims[2]["holds"], True)

    def test_json__without_claims_has_no_such_key(self):
        self.assertNotIn("claims", json.loads(self.sim(SCENARIO, "--json").stdout)[0])

    def test_points_that_set_took_away__are_not_computed(self):
        for setting in ("scale=small", "via=ina"):
            done = self.sim(SCENARIO + TABLE + CLAIMS, "--set", setting)
            self.assertEqual(done.stderr, "")
            self.assertIn('not computed: no point has {"via":"ps"}', done.stdout)
            self.assertIn("claims: 0 of 1 hold, 2 not computed\n", done.stdout)
        claims = json.loads(self.sim(SCENARIO + CLAIMS, "--json", "--set", "via=ina").stdout)
        self.assertIsNone(claims["claims"][0]["holds"])
        self.assertIsNone(claims["claims"][0]["measured"])
        self.assertIs(claims["claims"][1]["holds"], False)

    def test_expression_that_is_none__ends_before_the_run(self):
        done = self.sim(SCENARIO + CLAIMS.replace("| add'", "| sum'"), "--json", status=2)
        self.assertEqual(done.stdout, "")
        expected = f"gradwire: {self.name}:16: claims.1.measured: sum/0 is not defined\n"
        self.assertEqual(done.stderr, expected)

    def test_expression_that_gives_nothing__is_a_complaint_beside_the_results(self):
        text = SCENARIO + TABLE + CLAIMS.replace("[.[].hops] | add", ".[0].no_such_key")
        done = self.sim(text, status=2)
        self.assertIn("claims: 2 of 2 hold, 1 not computed\n", done.stdout)
        expected = f"gradwire: {self.name}:17: claims.1.measured: the expression gives null"
        self.assertTrue(done.stderr.startswith(expected) and done.stderr.count("\n") == 1)
        text = SCENARIO + CLAIMS.replace('via: "ps"', 'via: "sp"')
        self.assertIn('no point has {"via":"sp"}', self.sim(text, "--json", status=2).stderr)

    def test_bad_claims__name_file_line_and_key(self):
        done = self.sim(SCENARIO + CLAIMS.replace("tolerance: 10%", "tolerance: ten"), status=2)
        self.assertEqual(done.stdout, "")
        self.assertTrue(done.stderr.startswith(f"gradwire: {self.name}:18: claims.1.tolerance: "))

    def test_bad_seeds__are_refused(self):
        bad = CLAIMS.replace("tolerance: 10%", "tolerance: 10%\n    seeds: both")
        done = self.sim(SCENARIO + bad, status=2)
        self.assertIn("claims.1.seeds: not understood: both; expected each or together", done.stderr)

    def test_seeds_together__are_judged_as_one(self):
        text = SCENARIO + ("claims:\n  - {id: a, text: b, source: c, measured: 'length', seeds: together, "
                           "expected: {about: 6}, tolerance: 1%}\n")  # fmt: skip
        done = self.sim(text, "--seeds", "3")
        self.assertIn("measured 6 over 3 seeds together\n", done.stdout)
        claim = json.loads(self.sim(text, "--seeds", "3", "--json").stdout)[0]["claims"][0]
        self.assertEqual((claim["seeds"], claim["seeds_holding"]), ("together", 3))

    def test_box__is_over_all_items_of_all_seeds(self):
        table = "table: [hops, box jobs.completion_us, max hops]\n"
        results = json.loads(self.sim(SCENARIO + table, "--seeds", "3", "--json").stdout)
        values = sorted(job["completion_us"] for run in results[:3] for job in run["jobs"])
        out = self.path("out")
        self.sim(SCENARIO + table, "--seeds", "3", "--out", out)
        with open(os.path.join(out, "table.csv"), encoding="utf-8", newline="") as file:
            row = next(csv.DictReader(file))
        parts = ("min", "q1", "median", "q3", "max", "mean")
        boxes = [f"{part} jobs.completion_us" for part in parts]
        self.assertEqual(list(row), ["via", "hops", *boxes, "max hops"])
        self.assertEqual(int(row["max hops"]), max(run["hops"] for run in results[:3]))
        cuts = statistics.quantiles(values, method="inclusive")
        expected = [values[0], *cuts, values[-1], statistics.mean(values)]
        for part, number in zip(parts, expected, strict=True):
            self.assertAlmostEqual(float(row[part + " jobs.completion_us"]), number, delta=0.006)

    def test_box__of_nothing_is_refused(self):
        done = self.sim(SCENARIO + "table: [box jobs.no_such]\n", status=2)
        self.assertIn("table: box jobs.no_such: the result of a run has no such number", done.stderr)

    def test_out__has_table_and_claims(self):
        out = self.path("out")
        done = self.sim(SCENARIO + TABLE + CLAIMS, "--json", "--out", out)
        self.assertEqual(sorted(os.listdir(out)), ["000", "001", "claims.json", "table.csv"])
        with open(os.path.join(out, "claims.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file), json.loads(done.stdout)[0]["claims"])
        with open(os.path.join(out, "table.csv"), encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["via"] for row in rows], ["ina", "ps"])
        self.assertEqual(list(rows[0]), ["via", "completion_us", "hops"])
        printed = self.sim(SCENARIO + TABLE + CLAIMS).stdout.splitlines()[1].split()
        self.assertEqual(list(rows[0].values()), printed)


if __name__ == "__main__":
    unittest.main()
