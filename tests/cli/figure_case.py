"""Figures whose claims are computed: every scenario of a paper runs at its small size, and the page about them
is what the stored results give.

A sanitizer sees what a run does, not what it finds, and costs five times as long: with
GRADWIRE_TEST_BRIEF in the environment each key of a sweep keeps one value, and claims are
not compared, as they need the other points."""
import glob
import json
import os
import re
import subprocess
import sys
import unittest

IS_BRIEF = "GRADWIRE_TEST_BRIEF" in os.environ


def read(*names):
    with open(os.path.join(*names), encoding="utf-8") as file:
        return file.read()


def call(*words):
    return subprocess.run(
        words, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )


def figures(root, *words):
    return call(sys.executable, "-B", os.path.join("bench", "figures"), "--root", root, *words)


def swept(scenario):
    """The keys of a sweep that have plain values, and these."""
    sweep = re.search(r"^sweep:\n((?:  .*\n)+)", scenario, re.MULTILINE)
    keys = re.findall(r"^  (\S+): \[([^][{}]*)\]", sweep[1], re.MULTILINE) if sweep else []
    return {key: text.split(", ") for key, text in keys}


def narrowed(scenario, paper):
    """Settings that leave of each key of a sweep one value: what the paper is about if it says so,
    else the first."""
    words = []
    for key, values in swept(scenario).items():
        own = [value for value in values if value in (paper, "yes")] or values
        words += ["--set", f"sweep.{key}=[{own[0]}]"]
    return words


class FigureCase(unittest.TestCase):
    def check_claims(self, stored, claims, differing):
        """The same claims as in the full run, with the same verdicts but for those in `differing`, and no
        verdict on a draft, whose values are of the full size."""
        for full, small in zip(stored["claims"], claims, strict=True):
            for key in ("id", "text", "source", "expected"):
                self.assertEqual(full[key], small[key], "the scenario has changed since it was run")
            if not IS_BRIEF and small["source"] != "draft":
                differs = small["holds"] != full["holds"]
                self.assertEqual(differs, small["id"] in differing, (small, full))

    def run_figure(self, program, name, *words):
        """What a scenario's claims are, and what its stored full run says."""
        done = call(program, "sim", name, *words, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        results = json.loads(done.stdout)
        paper, file = name.split(os.sep)[1:]
        stored = json.loads(read("docs", "figures", paper, file[:-5] + ".json"))
        return (results[0] if isinstance(results, list) else results)["claims"], stored

    def check_scenarios(self, program, paper, differing):
        """All run, and `differing` has no claim that is not there."""
        seen = set()
        for name in sorted(glob.glob(os.path.join("scenarios", paper, "*.yaml"))):
            with self.subTest(name):
                brief = narrowed(read(name), paper) if IS_BRIEF else []
                claims, stored = self.run_figure(program, name, "--set", "scale=small", *brief)
                seen |= {claim["id"] for claim in claims}
                self.check_claims(stored, claims, differing)
        self.assertEqual(set(differing) - seen, set())

    def check_page(self, paper):
        done = figures(".", paper, "--page", "--check")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def check_results(self, paper):
        """They are of a commit and of no machine, and of the sweep that the scenario has."""
        for name in glob.glob(os.path.join("docs", "figures", paper, "*.json")):
            stored = json.loads(read(name))
            scenario = os.path.basename(name)[:-5] + ".yaml"
            for key, values in swept(read("scenarios", paper, scenario)).items():
                column = stored["columns"].index(key)
                self.assertEqual({row[column] for row in stored["rows"]}, set(values), name)
            self.assertRegex(stored["commit"], "^[0-9a-f]{10}$")
            self.assertTrue(stored["command"].startswith("gradwire sim scenarios/"))
            self.assertNotIn("wall_s", json.dumps(stored))
