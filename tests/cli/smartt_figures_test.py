#!/usr/bin/env python3
"""The figures of SMaRTT-REPS at their small size: what holds at full size holds there too, or stands below.
Called with the program."""
import os
import sys
import unittest

from figure_case import FigureCase

PROGRAM = os.path.abspath(sys.argv.pop(1))

# Claims that the small size cannot show, and why.
FULL_SIZE_ONLY = {}


class SmarttTest(FigureCase):
    def test_scenarios__run_at_their_small_size(self):
        self.check_scenarios(PROGRAM, "smartt", FULL_SIZE_ONLY)

    def test_page__is_what_the_stored_results_give(self):
        self.check_page("smartt")

    def test_results__are_of_a_commit_and_of_no_machine(self):
        self.check_results("smartt")


if __name__ == "__main__":
    unittest.main()
