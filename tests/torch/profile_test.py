#!/usr/bin/env python3
"""What gradwire.profile finds, and how it trains; names of calls in PyTorch's profiler."""

import subprocess
import sys
import tempfile
import unittest
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
from groups import GroupCase
from torch import nn

from gradwire import profile, training

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "experiments"))

WORKERS = 4


def network():
    return nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 3))


def task():
    """Three clouds of points."""
    drawn = torch.Generator().manual_seed(1)
    labels = torch.randint(3, (400,), generator=drawn)
    inputs = torch.randn(3, 20, generator=drawn)[labels] + torch.randn(400, 20, generator=drawn)
    parts = inputs[:300], labels[:300], inputs[300:], labels[300:]
    return training.Task(network, *parts, batch=4, epochs=3)


def undecided():
    """A task without scores."""
    return replace(task(), score=lambda *_: float("nan"), epochs=1)


class LossTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)
        self.packets = training.Packets(network())
        self.gradients = torch.randn(WORKERS, 20 * 64 + 64 + 64 * 3 + 3)

    def test_packets__end_with_their_tensors(self):
        self.assertEqual(self.packets.tensor_of, [0, 0, 0, 0, 1, 2, 3])
        counts = torch.bincount(self.packets.of_value).tolist()
        self.assertEqual(counts, [350, 350, 350, 230, 64, 192, 3])
        means = self.packets.means(self.gradients)
        torch.testing.assert_close(means[1, 3], self.gradients[1, 1050:1280].abs().mean())

    def test_losing__takes_whole_packets_at_its_rate(self):
        ones = torch.ones(64, self.gradients.shape[1])
        seen = []

        def average(gradients, arrived):
            seen.append(arrived)
            return training.mean_of(gradients, arrived)

        losing = training.Losing(self.packets, 0.3, 5, average)
        for _ in range(100):
            torch.testing.assert_close(losing(ones), ones[0])  # an average of those that arrived
        arrived = torch.cat(seen)
        self.assertAlmostEqual(arrived[:, 0].float().mean().item(), 0.7, delta=0.02)
        self.assertTrue(torch.equal(arrived[:, 0], arrived[:, 349]))
        self.assertFalse(torch.equal(arrived[:, 349], arrived[:, 350]))

    def test_task__needs_samples(self):
        given = [torch.zeros(4, 20), torch.zeros(4), torch.zeros(2, 20), torch.zeros(2)]
        for wrong in ({1: torch.zeros(3)}, {0: given[0][:0], 1: given[1][:0]}, {3: torch.zeros(1)}):
            parts = [wrong.get(place, part) for place, part in enumerate(given)]
            self.assertRaisesRegex(ValueError, "samples", training.Task, network, *parts)
        self.assertRaisesRegex(ValueError, "batch", training.Task, network, *given, batch=0)

    def test_mean__of_nothing_is_zero(self):
        arrived = torch.ones_like(self.gradients, dtype=torch.bool)
        self.gradients[1, 8] = float("inf")
        arrived[:, 7] = False
        arrived[1:, 8] = False
        average = training.mean_of(self.gradients, arrived)
        self.assertEqual(average[7], 0)
        self.assertEqual(average[8], self.gradients[0, 8])

    def test_batches__are_of_every_worker(self):
        few = task().sample(6 / 300)
        for batches in (training.batches_of(few, WORKERS, 0), training.batches_of(task(), 6, 0)):
            for _ in range(3):
                sizes = [len(batch) for batch in next(batches)]
                self.assertIn(sizes, ([2, 2, 1, 1], [4] * 6))
        with self.assertRaisesRegex(ValueError, "7 workers have 6 samples"):
            next(training.batches_of(few, 7, 0))

    def test_rounds__without_loss_are_those_of_one_process(self):
        one, together = task(), task()
        last = None
        for epochs, score in training.train(together, WORKERS, 2):
            last = score
            if epochs >= together.epochs:
                break
        torch.manual_seed(2)
        model = one.model()
        optimizer = one.optimizer(model.parameters())
        batches = training.batches_of(one, WORKERS, 2)
        for _ in range(one.epochs * training.rounds_of(one, WORKERS)):
            batch = torch.cat(next(batches))
            optimizer.zero_grad()
            one.loss(model(one.inputs[batch]), one.labels[batch]).backward()
            optimizer.step()
        self.assertAlmostEqual(one.look(model), last, delta=0.011)  # one of 100 samples

    def test_epochs__are_read_between_looks(self):
        points = [(0.0, 0.0), (0.5, 0.4), (1.0, 0.8), (1.5, 0.8), (2.0, 0.8)]
        # Means of the last four: 0, 0.2, 0.4, 0.5, 0.7.
        self.assertAlmostEqual(training.epochs_to(0.3, points, 2), 0.75)
        self.assertEqual(training.epochs_to(0.6, points, 1.5), float("inf"))
        self.assertAlmostEqual(training.target_of([points], part=0.5), 0.35)

    def test_bound__ends_before_the_first_that_is_slower(self):
        found = {0.0: [1.0, 2.0], 0.01: [1.04, 2.0], 0.1: [1.0, 2.3], 0.2: [1.0, 2.0]}
        self.assertEqual(profile.bound_of(found), 0.01)
        self.assertEqual(profile.bound_of({0.0: [1.0, 2.0], 0.1: [2.0, 1.0]}), 0)

    def test_bound__is_of_runs_that_come_to_the_score(self):
        never = float("inf")
        for whole, lossy, bound in (
            (never, never, 0),
            (1.0, never, 0),
            (0.0, 0.0, 0.1),
            (0.0, 1.0, 0),
        ):
            self.assertEqual(profile.bound_of({0.0: [whole], 0.1: [lossy]}), bound)


class CommandTest(unittest.TestCase):
    def run_command(self, *words):
        command = [sys.executable, "-W", "ignore", "-m", "gradwire.profile", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_command__prints_a_bound(self):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "clouds.py"
            place.write_text(f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
                             "from profile_test import task\n")  # fmt: skip
            words = [f"{place}:task", "--rates", "1%,99.9%", "--seeds", "2", "--sample", "50%"]
            ended = self.run_command(*words)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("150 samples", ended.stdout)
        bound = float(ended.stdout.split("bound:")[1])
        self.assertLess(bound, 0.999)  # nothing is learnt of a thousandth

    def test_task__that_is_none_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            broken = Path(folder) / "broken.py"
            broken.write_text("count = 0\npart = 1 / count\n")
            for place, wrong in (
                ("task", "expected FILE.py:NAME"),
                (f"{__file__}:", "expected FILE.py:NAME"),
                ("nomodule:task", "nomodule: ModuleNotFoundError"),
                (".near:task", ".near: TypeError"),
                (f"{__file__}:ROOT", "not a gradwire.training.Task"),
                (f"{__file__}:compared", r"compared\(\) missing 1"),
                (f"{broken}:task", f"{broken}:2: ZeroDivisionError"),
            ):
                self.assertRaisesRegex(ValueError, wrong, profile.find_task, place)

    def test_command__names_what_is_wrong(self):
        for words, wrong in (
            (["nowhere.py:task"], "nowhere.py: there is no such file"),
            ([f"{__file__}:undecided"], "its score does not rise"),
            ([f"{__file__}:task", "--sample", "1%"], "profile: 4 workers have 3 samples"),
            (["x.py:task", "--rates", "2"], "'2'"),
            (["x.py:task", "--sample", "0"], "--sample"),
            (["x.py:task", "--seeds", "none"], "'none'"),
        ):
            ended = self.run_command(*words)
            self.assertEqual(ended.returncode, 2, ended)
            self.assertIn(wrong, ended.stderr)
            self.assertNotIn("Traceback", ended.stderr)


def profiled():
    """Names of the backend's calls in a profile, with the time that each took."""
    with torch.profiler.profile() as profiler:
        tensors = [torch.ones(1000) for _ in range(3)]
        works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
        dist.broadcast(torch.ones(10), 0)
        for work in works:
            work.wait()
    spans = [event for event in profiler.events() if event.name.startswith("gradwire:")]
    return sorted((event.name, event.time_range.elapsed_us() > 0) for event in spans)


def compared(count):
    """Averages of the job, beside those of the experiments' integers."""
    from fixed import SCALES, Fixed  # noqa: PLC0415 - it is not installed

    drawn = torch.Generator().manual_seed(4)
    world = dist.get_world_size()
    rows = torch.randn(world, count, generator=drawn)
    rows *= 10.0 ** (torch.rand(count, generator=drawn) * 9 - 9)
    rows[:, ::1500] = 7  # each fits, but not their sum
    rows[0, 5] = 3.0e38
    own = rows[dist.get_rank()].clone()
    dist.all_reduce(own, dist.ReduceOp.AVG)
    model = nn.ParameterList([nn.Parameter(rows[0])])
    fixed = Fixed(training.Packets(model, values=352), SCALES["2^27"])
    expected = fixed(rows)
    assert count / 1500 <= fixed.counts.overflowed < fixed.counts.packets
    return torch.equal(own, expected)


class JobTest(GroupCase):
    def test_profiler__has_names_of_calls(self):
        names = [("gradwire:allreduce", True)] * 3 + [("gradwire:broadcast", True)]
        self.assertEqual(self.run_ranks(2, profiled), [names] * 2)

    def test_experiments__add_as_jobs_do(self):
        self.assertEqual(self.run_ranks(3, partial(compared, 5000)), [True] * 3)


if __name__ == "__main__":
    unittest.main()
