#!/usr/bin/env python3
"""The figures of the SMaRTT-REPS paper at their small size: every scenario of scenarios/smartt runs,
and those claims of the paper that our full-size runs confirm have the same shape.
docs/figures.md has the numbers, and the claims that they do not confirm. Called with the program."""
import glob
import json
import os
import subprocess
import sys
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
FOLDER = os.path.join("scenarios", "smartt")
SMARTT_RIVALS = ("swift", "mprdma", "bbr")


def run(figure):
    """The results of all points; each also by its swept settings, in the order of the sweep."""
    name = os.path.join(FOLDER, figure + ".yaml")
    words = [PROGRAM, "sim", name, "--set", "scale=small", "--json"]
    done = subprocess.run(
        words, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode:
        raise AssertionError(done.stderr)
    points = {}
    for result in json.loads(done.stdout):
        del result["params"]["scale"]
        key = tuple(result["params"].values())
        points[key if len(key) > 1 else key[0]] = result
    return points


class FiguresTest(unittest.TestCase):
    def test_every_figure__is_tested(self):
        files = {os.path.basename(name)[:-5] for name in glob.glob(os.path.join(FOLDER, "*.yaml"))}
        tested = {name.split("__")[0][5:] for name in dir(self) if name.startswith("test_fig")}
        self.assertEqual(files, tested)

    def test_fig02__prints_its_table(self):
        name = os.path.join(FOLDER, "fig02.yaml")
        words = [PROGRAM, "sim", name, "--set", "scale=small"]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        rows = [line.split() for line in done.stdout.splitlines()]
        self.assertEqual(rows[0][:2], ["signals", "cwnd_kib.at_us"])
        self.assertEqual(rows[1][:2], ["both", "10"])
        self.assertEqual({len(row) for row in rows}, {5})

    def check_smartt_is_best(self, points, column="completion_us", rivals=SMARTT_RIVALS):
        for rival in rivals:
            self.assertLess(points["smartt"][column], points[rival][column], rival)

    def test_fig01a__smartt_is_fastest_and_fairest(self):
        points = run("fig01a")
        self.check_smartt_is_best(points, rivals=SMARTT_RIVALS + ("eqds",))
        for rival in SMARTT_RIVALS:
            spread = points[rival]["fct_us"]["spread"]
            self.assertLess(points["smartt"]["fct_us"]["spread"], spread, rival)

    def test_fig01b__smartt_is_fastest_and_eqds_slowest(self):
        points = run("fig01b")
        self.check_smartt_is_best(points)
        slowest = max(points, key=lambda name: points[name]["completion_us"])
        self.assertEqual(slowest, "eqds")

    def test_fig02__ecn_falls_faster_than_delay_and_smartt_jumps(self):
        points = run("fig02")
        series = {name: points[name]["cwnd_kib"] for name in points}
        for sample in (1, 2, 3):
            at_us = {name: series[name]["at_us"][sample] for name in series}
            self.assertEqual(set(at_us.values()), {10.0 * (sample + 1)})
            self.assertLess(series["ecn"]["mean"][sample], series["rtt"]["mean"][sample])
        self.assertLess(series["both"]["mean"][2], series["ecn"]["mean"][2] / 2)

    def test_fig03a__delay_is_fairer_than_ecn_and_both_are_best(self):
        points = run("fig03a")
        spread = {name: points[name]["fct_us"]["spread"] for name in points}
        self.assertTrue(spread["both"] < spread["rtt"] < spread["ecn"], spread)
        for name in ("ecn", "rtt"):
            self.assertLess(points["both"]["completion_us"], points[name]["completion_us"])

    def test_fig03b__reacting_to_each_50th_packet_costs_little(self):
        points = run("fig03b")
        self.assertLess(points["50"]["completion_us"], 1.05 * points["1"]["completion_us"])
        self.assertLess(points["1"]["fct_us"]["spread"], points["50"]["fct_us"]["spread"])

    def test_fig05b__runs(self):
        for point in run("fig05b").values():
            self.assertLess(point["over_ideal"], 1.2)

    def test_fig06a__reps_and_spraying_beat_single_paths(self):
        points = {lb: point for (_, lb), point in run("fig06a").items()}
        time = {lb: points[lb]["completion_us"] for lb in points}
        self.assertLess(time["reps"], time["spray"])
        self.assertLess(time["reps"], 0.95 * time["spray-256"])
        self.assertGreater(time["ecmp"], 1.4 * time["spray"])
        self.assertLess(time["plb"], time["ecmp"])
        self.assertLess(points["plb"]["fct_us"]["spread"], points["ecmp"]["fct_us"]["spread"])

    def test_fig06b__rtts_vary_least_with_reps(self):
        points = {lb: point["rtt_us"] for (_, lb), point in run("fig06b").items()}
        width = {lb: points[lb]["p90"] - points[lb]["p10"] for lb in points}
        for lb in ("spray", "plb", "ecmp"):
            self.assertLess(width["reps"], width[lb], lb)

    def test_fig07a__reps_uses_unequal_links_with_deep_buffers(self):
        points = run("fig07a")
        mean = {key: points[key]["goodput_gbps"]["mean"] for key in points}
        self.assertGreater(mean["connection", "4bdp", "reps"], 0.95 * 73.8)
        for buffer in ("1bdp", "4bdp"):
            self.assertLess(mean["connection", buffer, "spray"], 55)
            self.assertGreater(mean["connection", buffer, "reps"], 58)

    def test_fig07b__reps_lowers_mean_and_tail(self):
        points = run("fig07b")
        for buffer in ("1bdp", "4bdp"):
            reps = points["connection", buffer, "reps"]["fct_us"]
            spray = points["connection", buffer, "spray"]["fct_us"]
            for part in ("mean", "p99"):
                self.assertLess(reps[part], spray[part])

    def test_fig07c__reps_loses_a_fraction_of_the_data(self):
        points = run("fig07c")
        lost = {key: points[key]["timeouts"] for key in points}
        self.assertGreater(lost["400Gbps", "spray"], 5 * lost["400Gbps", "reps"])
        self.assertGreater(lost["800Gbps", "spray"], 10 * lost["800Gbps", "reps"])

    def test_fig08__no_trimming_costs_about_a_base_rtt(self):
        points = run("fig08")
        for latency, brtt_us in (("text", 11.45), ("scripts", 8.65)):
            trimming, dropping = (
                points[latency, network]["fct_us"]["mean"] for network in ("trimming", "dropping")
            )
            self.assertTrue(0 < dropping - trimming < 1.5 * brtt_us)

    def test_fig09__no_trimming_costs_time(self):
        points = run("fig09")
        for pattern in {pattern for pattern, _ in points}:
            dropping = points[pattern, "dropping"]
            self.assertGreater(
                dropping["completion_us"], points[pattern, "trimming"]["completion_us"], pattern
            )
            self.assertEqual((dropping["trims"], points[pattern, "trimming"]["drops"]), (0, 0))

    def check_incast(self, figure):
        points = run(figure)
        for (size, algorithm), point in points.items():
            self.assertGreater(point["over_ideal"], 0.99)
            self.assertLess(point["over_ideal"], 1.4, (size, algorithm))
        for rival in ("mprdma", "bbr"):
            long = points["1MiB", rival]["over_ideal"]
            self.assertLess(points["1MiB", "smartt"]["over_ideal"], long, rival)
        return points

    def test_fig10a__small_messages_are_ideal(self):
        for (size, _), point in self.check_incast("fig10a").items():
            if size == "64KiB":
                self.assertLess(point["over_ideal"], 1.01)

    def test_fig10b__small_messages_are_ideal(self):
        for (size, _), point in self.check_incast("fig10b").items():
            if size == "64KiB":
                self.assertLess(point["over_ideal"], 1.01)

    def test_fig10c__bbr_struggles_in_the_middle(self):
        points = self.check_incast("fig10c")
        for algorithm in ("smartt", "swift", "mprdma"):
            self.assertGreater(
                points["1MiB", "bbr"]["over_ideal"], points["1MiB", algorithm]["over_ideal"] + 0.1
            )

    def test_fig11a__smartt_is_among_the_best(self):
        points = run("fig11a")
        self.check_smartt_is_best(points, rivals=("swift", "bbr"))
        best = min(point["completion_us"] for point in points.values())
        self.assertLess(points["smartt"]["completion_us"], 1.03 * best)

    def test_fig11b__smartt_is_fastest(self):
        self.check_smartt_is_best(run("fig11b"), rivals=SMARTT_RIVALS + ("eqds",))

    def test_fig11c__smartt_is_fastest(self):
        points = {algorithm: point for (_, algorithm), point in run("fig11c").items()}
        self.check_smartt_is_best(points)
        smartt, eqds = points["smartt"], points["eqds"]
        self.assertGreater(eqds["completion_us"], 1.15 * smartt["completion_us"])
        self.assertGreater(eqds["trims"], 10 * smartt["trims"])

    def test_fig11d__smartt_gives_the_long_flow_what_others_leave(self):
        points = run("fig11d")
        last = {name: points[name]["sizes"][1]["fct_us"]["max"] for name in points}
        for rival in ("swift", "mprdma"):
            self.assertGreater(last[rival], 1.2 * last["smartt"], rival)

    def test_fig12__more_messages_at_a_time_are_faster(self):
        points = run("fig12")
        for algorithm in {algorithm for _, algorithm in points}:
            times = [points[k, algorithm]["completion_us"] for k in ("1", "8")]
            self.assertLess(times[1], times[0], algorithm)

    def check_window_beside_credit(self, points):
        time = {name: points[name]["completion_us"] for name in points}
        self.assertLess(time["eqds+smartt"], 0.9 * time["eqds"])
        self.assertLess(time["eqds+smartt"], time["eqds+mprdma"])
        self.assertLess(5 * points["eqds+smartt"]["trims"], points["eqds"]["trims"])

    def test_fig13a__smartt_helps_eqds_more_than_mprdma(self):
        self.check_window_beside_credit(run("fig13a"))

    def test_fig13b__smartt_helps_eqds_more_than_mprdma(self):
        self.check_window_beside_credit(run("fig13b"))


if __name__ == "__main__":
    unittest.main()
