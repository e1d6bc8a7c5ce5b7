"""Sums as switches add them: 32-bit integers that saturate (docs/numbers.md), on tensors of gradients.

A test compares the averages with those of a job, bit by bit.
"""
from dataclasses import dataclass

import torch

LARGEST = 2**31 - 1  # and its negative are marks
SCALES = {"2^27": 2**27, "10^8": 10**8}


@dataclass
class Counts:
    """Of packets, over all rounds."""

    packets: int = 0
    overflowed: int = 0  # a worker's value or a sum does not fit: collected as floats
    cautious: int = 0  # a worker's value is above the bound below which no sum can overflow
    needless: int = 0  # of these, whose sum would have fit: false positives


def bound(scale, workers):
    """No sum of so many values up to this saturates (ATP, appendix B)."""
    return (LARGEST + 1 - workers) / (workers * scale)


class Fixed:
    """The exchange that adds integers, and collects what does not fit as floats."""

    def __init__(self, packets, scale):
        self.packets, self.scale = packets, scale
        self.counts = Counts()

    def __call__(self, gradients):
        workers = len(gradients)
        exact = gradients.double()
        units = (exact * self.scale).round()  # ties to even
        sums = units.cumsum(0)  # exact: below 2^53
        too_large = (~(units.abs() < LARGEST)).any(0) | (~(sums.abs() < LARGEST)).any(0)
        is_cautious = (exact.abs() > bound(self.scale, workers)).any(0)
        raw = self.any_in(too_large)
        cautious = self.any_in(is_cautious)
        self.counts.packets += len(raw)
        self.counts.overflowed += int(raw.sum())
        self.counts.cautious += int(cautious.sum())
        self.counts.needless += int((cautious & ~raw).sum())
        plain = exact[0]
        for own in exact[1:]:
            plain = plain + own
        average = torch.where(raw[self.packets.of_value], plain / workers,
                              sums[-1] / (self.scale * workers))
        return average.float()

    def any_in(self, values):
        """Of each packet."""
        counts = torch.bincount(self.packets.of_value[values], minlength=len(self.packets))
        return counts > 0
