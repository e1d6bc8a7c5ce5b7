#!/usr/bin/env python3
"""The figures of atp, dlcp and pcn at their small size (figure_case.py), and the rules of the pages about
figures. Called with the program."""
import json
import os
import re
import shutil
import sys
import tempfile
import unittest

from figure_case import FigureCase, call, figures, read

PROGRAM = os.path.abspath(sys.argv.pop(1))
PAPERS = ("atp", "dlcp", "pcn")

# Claims whose verdict is another one at the small size. Most have none there, since the small sweep lacks
# their points; the others have fewer workers, models or seeds.
DIFFERING = {
    "atp": {
        "fig08.best", "fig08.byteps-rdma", "fig08.vgg", "fig10.lesser-degree",
        "fig10.recovery", "fig10.small-loss", "fig10m.lesser-degree", "fig10m.recovery",
        "fig10o.rare", "fig12.byteps", "fig13a.best", "fig13a.degrades-less", "fig13a.equal",
        "fig13a.half", "fig13a.pta", "fig13b.converges", "fig15.goodput", "fig15.loss", "fig16a.sum",
        "fig20.mixed", "fig20.workers",
    },
    "dlcp": {
        "fig13.resnet50-ps", "fig14a.tail-pfabric",
        "lb.reps-unnoticed", "fig11.follow", "parts.bound", "parts.schedule",
        "fig02.mean-16th", "fig02.same-tail", "fig02.steadily", "fig02.tail", "fig14a.follow-dctcp",
        "fig14b.follow", "fig14b.follow-dctcp", "parts.follow-classes",
    },
    "pcn": {
        "fig03.forward", "fig09.start-off-range", "fig09.throughput", "size.room",
        "fig03.fused", "fig09.drops-off", "fig09.kept-completion",
        "fig09.kept-throughput", "fig09.rates", "long.rates", "many.drops", "many.gain", "size.any",
        "ratio.one", "size.long", "tenants.unbounded",
    },
}  # fmt: skip


class ScenarioTest(FigureCase):
    def test_scenarios__run_at_their_small_size(self):
        for paper in PAPERS:
            self.check_scenarios(PROGRAM, paper, DIFFERING[paper])

    def test_pages__are_what_the_stored_results_give(self):
        for paper in PAPERS:
            self.check_page(paper)

    def test_results__are_of_a_commit_and_of_no_machine(self):
        for paper in PAPERS:
            self.check_results(paper)


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

    def test_page__counts_values_of_drafts_by_themselves(self):
        self.store("2", {**self.claim("three", True), "source": "draft"})
        self.assertIn("**1 of 2 claims hold, and 1 of 1 values of drafts.**", self.page())

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
        self.assertEqual(figures(self.root, "atp", "--page", "--check").returncode, 0)
        self.write("docs/figures-atp.md", page.replace("**fails**", "holds"))
        done = figures(self.root, "atp", "--page", "--check")
        self.assertEqual(done.returncode, 1)
        self.assertIn("is not what the stored results give", done.stderr)

    def keep_one_scenario(self):
        """A figure that runs at once, committed; nothing of it is stored."""
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

    def test_run__stores_what_the_scenario_gives(self):
        self.keep_one_scenario()
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
        done = figures(self.root, "atp", "--program", "/bin/false")
        self.assertEqual(done.returncode, 1)
        self.assertIn("fig1: ended with exit status 1\n", done.stderr)
        self.write("scenarios/atp/fig1.yaml", "topology: star\n")
        done = figures(self.root, "atp", "--program", PROGRAM)
        self.assertEqual(done.returncode, 1)
        self.assertIn("this is not committed", done.stderr)

    def test_check__runs_figures_and_finds_what_differs(self):
        self.keep_one_scenario()
        words = ("atp", "fig1", "--program", PROGRAM, "--check")
        self.assertIn("fig1: nothing stored", figures(self.root, *words).stderr)
        self.assertEqual(figures(self.root, *words[:-1], "--seeds", "1").returncode, 0)
        done = figures(self.root, *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, "fig1: is what is stored\n")
        path = os.path.join(self.root, "docs/figures/atp/fig1.json")
        stored, page = read(path), self.page()
        hops = json.loads(stored)["rows"][0][0]
        for own, changed in ((f'["{hops}"]', '["0.5"]'), ('"holds": true', '"holds": false')):
            text = stored.replace(own, changed)
            self.write(path, text)
            done = figures(self.root, *words)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stderr, "figures: atp: not what is stored: fig1\n")
            lines = done.stdout.splitlines()
            self.assertEqual([line[0] for line in lines], ["f", "-", "+"])
            self.assertIn(changed, lines[1])
            self.assertIn(own, lines[2])
            self.assertEqual((read(path), read(self.root, "docs/figures-atp.md")), (text, page))
        self.assertEqual(figures(self.root, "atp", "fig1", "--page").returncode, 2)


if __name__ == "__main__":
    unittest.main()
