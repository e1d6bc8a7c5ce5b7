#!/usr/bin/env python3
"""Figures whose claims are computed: every scenario of scenarios/atp, dlcp and pcn runs at its
small size, and the pages about them are what the stored results give. Called with the program.

A sanitizer sees what a run does, not what it finds, and costs five times as long: with
GRADWIRE_TEST_BRIEF in the environment a sweep keeps two values of its longest key alone, and claims are
not compared, as they need the other points. Those of figures_test.py, all claims, then run here."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
PAPERS = ("atp", "dlcp", "pcn")
IS_BRIEF = "GRADWIRE_TEST_BRIEF" in os.environ
FOLDERS = (*PAPERS, "smartt") if IS_BRIEF else PAPERS

# Claims that need the full size: to be computed, since the small sweep lacks their points, or to hold.
FULL_SIZE_ONLY = {
    "atp": {
        "fig08.best", "fig08.byteps-rdma", "fig08.byteps-tcp", "fig08.vgg", "fig10.lesser-degree",
        "fig10.recovery", "fig10.small-loss", "fig10m.lesser-degree", "fig10m.recovery",
        "fig10o.rare", "fig12.byteps", "fig13a.best", "fig13a.degrades-less", "fig13a.equal",
        "fig13a.half", "fig13a.pta", "fig13b.converges", "fig15.goodput", "fig15.loss", "fig16a.sum",
        "fig20.mixed", "fig20.workers",
    },
    "dlcp": {
        "fig02.mean-16th", "fig02.same-tail", "fig02.steadily", "fig02.tail", "fig14a.follow-dctcp",
        "fig14b.follow", "parts.bound", "parts.follow", "parts.follow-bound", "parts.follow-classes",
    },
    "pcn": {
        "fig03.fused", "fig04.faster", "fig09.drops-off", "fig09.kept-completion",
        "fig09.kept-throughput", "fig09.rates", "long.rates", "many.drops", "many.gain", "size.any",
        "ratio.one", "size.long", "tenants.unbounded",
    },
}  # fmt: skip


def read(*names):
    with open(os.path.join(*names), encoding="utf-8") as file:
        return file.read()


def call(*words):
    return subprocess.run(
        words, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )


def figures(root, *words):
    return call(sys.executable, "-B", os.path.join("bench", "figures"), "--root", root, *words)


def narrowed(scenario, paper):
    """Settings that leave of each key of a sweep one value: what the paper is about if it says so,
    else the first; and of the longest another one, the last."""
    sweep = re.search(r"^sweep:\n((?:  .*\n)+)", scenario, re.MULTILINE)
    keys = re.findall(r"^  (\S+): \[([^][{}]*)\]", sweep[1], re.MULTILINE) if sweep else []
    keys.sort(key=lambda key: key[1].count(","))
    words = []
    for key, text in keys:
        values = text.split(", ")
        own = [value for value in values if value in (paper, "yes")] or values
        kept = {own[0]: None, values[-1]: None} if key == keys[-1][0] else own[:1]
        words += ["--set", f"sweep.{key}=[{','.join(kept)}]"]
    return words


class ScenarioTest(unittest.TestCase):
    def check_claims(self, paper, stored, claims):
        """The same claims as in the full run; what holds there holds here too."""
        for full, small in zip(stored["claims"], claims, strict=True):
            for key in ("id", "text", "source", "expected"):
                self.assertEqual(full[key], small[key], "the scenario has changed since it was run")
            if IS_BRIEF or small["id"] in FULL_SIZE_ONLY[paper]:
                continue
            self.assertIsNotNone(small["holds"], f"{small['id']} is not computed")
            self.assertGreaterEqual(small["holds"], full["holds"], small)

    def test_scenarios__run_at_their_small_size(self):
        for paper in FOLDERS:
            for name in sorted(glob.glob(os.path.join("scenarios", paper, "*.yaml"))):
                with self.subTest(name):
                    brief = narrowed(read(name), paper) if IS_BRIEF else []
                    done = call(PROGRAM, "sim", name, "--set", "scale=small", *brief, "--json")
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    if paper not in PAPERS:
                        continue
                    results = json.loads(done.stdout)
                    figure = os.path.basename(name)[:-5]
                    stored = json.loads(read("docs", "figures", paper, figure + ".json"))
                    first = results[0] if isinstance(results, list) else results
                    self.check_claims(paper, stored, first["claims"])

    def test_pages__are_what_the_stored_results_give(self):
        for paper in PAPERS:
            done = figures(".", paper, "--check")
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_results__are_of_a_commit_and_of_no_machine(self):
        for paper in PAPERS:
            for name in glob.glob(os.path.join("docs", "figures", paper, "*.json")):
                stored = json.loads(read(name))
                self.assertRegex(stored["commit"], "^[0-9a-f]{10}$")
                self.assertTrue(stored["command"].startswith("gradwire sim scenarios/"))
                self.assertNotIn("wall_s", json.dumps(stored))


class PageTest(unittest.TestCase):
    """The rules of the page, in a tree of its own with the stored results of two figures."""

    SCENARIO = "# ATP figure {0}: what {0} shows.\n#\n# How it is run.\ntopology: star\n"

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gradwire_figures_")
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        for figure in ("1", "2"):
            self.write(f"scenarios/atp/fig{figure}.yaml", self.SCENARIO.format(figure))
        self.store("1", self.claim("one", True), self.claim("two", False))
        self.store("2", self.claim("three", True))
        self.write("docs/figures/atp/notes.md", "# A page\n\n## two\n\nThe queue was short.\n")

    def write(self, name, text):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    @staticmethod
    def claim(name, holds):
        return {"id": name, "text": f"text of {name}", "source": "section 5", "expected": {"at_least": 2},
                "measured": 2.5 if holds else 1.25, "holds": holds, "seeds_holding": 3 * holds}  # fmt: skip

    def store(self, figure, *claims):
        result = {"command": f"gradwire sim scenarios/atp/fig{figure}.yaml", "commit": "0123456789",
                  "seeds": 3, "claims": claims, "columns": ["via", "gbps"], "rows": [["ina", "3.5"]]}  # fmt: skip
        self.write(f"docs/figures/atp/fig{figure}.json", json.dumps(result))

    def test_page__says_which_claims_are_of_all_seeds(self):
        self.store("1", self.claim("one", True), {**self.claim("two", False), "seeds": "together"})
        page = self.page()
        self.assertIn("measured 1.25, over 3 seeds together.", page)
        self.assertIn("| at least 2 | 1.25 | together |", page)

    def page(self):
        done = figures(self.root, "atp", "--page")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return read(self.root, "docs", "figures-atp.md")

    def assert_refused(self, *parts):
        done = figures(self.root, "atp", "--page")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_page__has_failed_claims_first(self):
        page = self.page()
        parts = ["**2 of 3 claims hold.**", "## Claims that do not hold", "### two", "The queue was short.",
                 "## Figure 1: what 1 shows", "How it is run.", "gradwire sim scenarios/atp/fig1.yaml",
                 "Commit 0123456789", "| **fails** | text of two (section 5) | at least 2 | 1.25 | 0 of 3 |",
                 "| holds | text of one (section 5) | at least 2 | 2.5 | 3 of 3 |", "| via | gbps |",
                 "| ina | 3.5 |", "## Figure 2: what 2 shows"]  # fmt: skip
        places = [page.find(part) for part in parts]
        self.assertNotIn(-1, places, page)
        self.assertEqual(places, sorted(places))

    def test_page__is_refused_when_notes_and_verdicts_differ(self):
        self.store("1", self.claim("one", True), self.claim("two", True))
        self.assert_refused("two", "no claim of this name fails")
        self.store("1", self.claim("one", False), self.claim("two", False))
        self.assert_refused("one", "without a note")
        self.store("1", self.claim("one", True), self.claim("two", False))
        self.store("2", self.claim("two", False))
        self.assert_refused("two", "several claims")

    def test_page__is_refused_without_results(self):
        os.remove(os.path.join(self.root, "docs/figures/atp/fig2.json"))
        self.assert_refused("fig2", "nothing stored")

    def test_check__finds_a_page_that_was_typed(self):
        page = self.page()
        self.assertEqual(figures(self.root, "atp", "--check").returncode, 0)
        self.write("docs/figures-atp.md", page.replace("**fails**", "holds"))
        done = figures(self.root, "atp", "--check")
        self.assertEqual(done.returncode, 1)
        self.assertIn("is not what the stored results give", done.stderr)

    def test_run__stores_what_the_scenario_gives(self):
        shutil.rmtree(os.path.join(self.root, "docs"))
        os.remove(os.path.join(self.root, "scenarios/atp/fig2.yaml"))
        self.write("docs/figures/atp/notes.md", "# A page\n")
        self.write("scenarios/atp/fig1.yaml", "# ATP figure 1: hops.\ntopology: {kind: star, hosts: 3}\n"
                   "workload: {kind: allreduce, workers: 2, size: 4KB}\ntable: [hops]\nclaims:\n"
                   "  - {id: a, text: b, source: c, measured: '.[0].hops', expected: {at_least: 1}}\n")  # fmt: skip
        self.write(".gitignore", "docs\n")
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
            identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
            self.assertEqual(call("git", "-C", self.root, *identity, *words).returncode, 0)
        done = figures(self.root, "atp", "--program", PROGRAM, "--seeds", "2")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, "fig1: 1 of 1 claims hold\n")
        stored = json.loads(read(self.root, "docs/figures/atp/fig1.json"))
        self.assertEqual(stored["command"], "gradwire sim scenarios/atp/fig1.yaml --seeds 2")
        self.assertEqual((stored["seeds"], stored["columns"]), (2, ["hops"]))
        self.assertTrue(re.fullmatch("[0-9a-f]{10}", stored["commit"]))
        self.assertEqual(stored["claims"][0]["seeds_holding"], 2)
        self.assertEqual(figures(self.root, "atp", "--program", PROGRAM).returncode, 0)
        stored = json.loads(read(self.root, "docs/figures/atp/fig1.json"))
        self.assertEqual(stored["seeds"], 2, "as many seeds as before")
        self.write("scenarios/atp/fig1.yaml", "topology: star\n")
        done = figures(self.root, "atp", "--program", PROGRAM)
        self.assertEqual(done.returncode, 1)
        self.assertIn("this is not committed", done.stderr)


if __name__ == "__main__":
    unittest.main()
