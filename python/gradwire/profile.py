"""Which part of its gradients may a model lose? An answer from training it on a sample of its data.

    python -m gradwire.profile train.py:task

`task` is a gradwire.training.Task, or a function without arguments that gives one. It is trained
several times, with more and more of the packets of each worker's gradients lost at random. The
bound is the largest loss with which, and with all smaller ones, training needs no more epochs to
the same score than without. With a sample of the data it is found sooner; that the bound of a
sample is that of the whole is the observation of DLCP, section 2.3, and `--sample 100%` checks it.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import math
import statistics
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from .training import Task, batches_of, curve_of, epochs_to, losing, target_of, train

PATIENCE = 3  # times as many epochs as without loss, then it is said that the target is not reached
SLACK = 1.05  # rounds that differ by less are the same
RATES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)


def bound_of(epochs: Mapping[float, Sequence[float]]) -> float:
    """The largest rate up to which runs take as long as without loss, but for SLACK: the median of
    all seeds, each beside its own run without loss, which began alike."""
    bound = 0.0
    for rate in sorted(epochs):
        pairs = zip(epochs[rate], epochs[0.0], strict=True)
        if statistics.median(_times(*pair) for pair in pairs) > SLACK:
            break
        bound = rate
    return bound


def _times(lossy: float, whole: float) -> float:
    """As many epochs as without loss; a run that does not come to the score is never as fast."""
    if math.isinf(lossy) or not whole:
        return math.inf if lossy else 1.0
    return lossy / whole


def _percent(text: str) -> float:
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no part: 0 to 1, or 0% to 100%")
    return value


def _rates(text: str) -> list[float]:
    rates = sorted({_percent(word) for word in text.split(",")} - {0.0})
    if not rates or rates[-1] >= 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected losses between 0 and 1")
    return rates


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1024:  # noqa: PLR2004
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number from 1 to 1024")
    return int(text)


def find_task(place: str) -> Task:
    """Of a file or a module, and the name of what is there; ValueError says what is wrong."""
    source, _, name = place.rpartition(":")
    if not source or not name:
        raise ValueError(f"{place}: expected FILE.py:NAME or MODULE:NAME")
    if source.endswith(".py") and not Path(source).is_file():
        raise ValueError(f"{source}: there is no such file")
    found = getattr(_run(source, lambda: _load(source)), name, None)
    task = _run(place, found) if callable(found) and not isinstance(found, Task) else found
    if not isinstance(task, Task):
        raise ValueError(f"{place}: not a gradwire.training.Task, nor a function that gives one")
    return task


def _load(source: str) -> ModuleType:
    if not source.endswith(".py"):
        return importlib.import_module(source)
    spec = importlib.util.spec_from_file_location(Path(source).stem, source)
    if spec is None or spec.loader is None:
        raise ImportError("no module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(Path(source).parent))
    spec.loader.exec_module(module)
    return module


def _run(name: str, function: Callable[[], Any]) -> Any:
    """What it gives; ValueError says in a line why it fails, and where."""
    try:
        return function()
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        is_ours = last.filename == __file__ or "importlib" in last.filename
        where = name if is_ours else f"{name}: {last.filename}:{last.lineno}"
        raise ValueError(f"{where}: {type(error).__name__}: {error}") from error


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m gradwire.profile",
        description="Finds which part of its gradients a model can lose at no cost in rounds.",
    )
    add = parser.add_argument
    add("task", metavar="FILE.py:NAME", help="a gradwire.training.Task, or what gives one")
    add("--rates", type=_rates, default=list(RATES), metavar="LOSS,...", help="losses to try")
    add("--sample", type=_percent, default=0.25, metavar="PART", help="of the data (25%%)")
    add("--workers", type=_count, default=4, metavar="N", help="(4)")
    add("--seeds", type=_count, default=3, metavar="N", help="runs for each loss (3)")
    args = parser.parse_args()
    if not args.sample:
        parser.error("argument --sample: nothing is left to learn from")
    return args


def main() -> int:
    """The command."""
    args = _arguments()
    try:
        task = find_task(args.task).sample(args.sample)
        next(batches_of(task, args.workers, 0))  # each worker has some
    except ValueError as error:
        print(f"gradwire.profile: {error}", file=sys.stderr)
        return 2
    curves = [curve_of(task, args.workers, seed) for seed in range(args.seeds)]
    target, most = target_of(curves), PATIENCE * task.epochs
    if not target > statistics.median(curve[0][1] for curve in curves):  # or it is no number
        print(f"gradwire.profile: {args.task}: its score does not rise", file=sys.stderr)
        return 2
    print(f"{len(task.inputs)} samples, {args.workers} workers, {args.seeds} runs each;", end=" ")
    print(f"the score to reach is {target:.4g}\n\nloss    epochs to it (median, all)", flush=True)
    epochs: dict[float, list[float]] = {}
    for rate in [0.0, *args.rates]:
        epochs[rate] = [
            epochs_to(target, train(task, args.workers, seed, losing(rate, seed)), most)
            for seed in range(args.seeds)
        ]
        each = " ".join(f"{value:.2f}" for value in epochs[rate])
        print(f"{rate:6.2%}  {statistics.median(epochs[rate]):6.2f}  {each}", flush=True)
    print(f"\nbound: {bound_of(epochs):.4g}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
