#!/usr/bin/env python3
"""The figures of SMaRTT-REPS at their small size: what holds at full size holds there too, or stands below.
Called with the program."""
import os
import sys
import unittest

from figure_case import FigureCase

PROGRAM = os.path.abspath(sys.argv.pop(1))

# Claims that the small size cannot show, and why.
FULL_SIZE_ONLY = {
    # paths part only in long messages
    "fig06a.spray", "fig06a.plb-fair", "fig06b.target",
    # of points that the small size leaves out: half load, 32:1, 32 MiB, 8:1, eight permutations
    "fig07c.half", "fig10a.large", "fig10b.bbr", "fig10b.dip", "fig10b.eqds", "fig10b.large",
    "fig10b.mprdma", "fig10b.small", "fig10c.large", "fig11a.less", "fig11b.less", "fig11c.fastest-8",
    # by less than seeds differ
    "fig10a.mprdma", "fig10c.mprdma",
    # 100 of 128 hosts: most are in other pods than those of the full size
    "fig10c.dip",
    # 1 MiB is shorter than the bdp, and 128 hosts have 8 cores instead of 16
    "fig11b.fastest", "fig11c.others",
}  # fmt: skip


class SmarttTest(FigureCase):
    def test_scenarios__run_at_their_small_size(self):
        self.check_scenarios(PROGRAM, "smartt", FULL_SIZE_ONLY)

    def test_page__is_what_the_stored_results_give(self):
        self.check_page("smartt")

    def test_results__are_of_a_commit_and_of_no_machine(self):
        self.check_results("smartt")


if __name__ == "__main__":
    unittest.main()
