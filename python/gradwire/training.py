"""Training by several workers in one process, whose gradients get lost on purpose.

Whole packets of 350 values are lost, as DLCP loses them (section 2.3), and averages are of what
arrived, as those of gradwire.HookState. `python -m gradwire.profile` asks with it which loss a
model bears; other rules than Losing are functions as well.
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

PACKET_VALUES = 350  # of float32 in a packet of 1400 bytes
LOOKS = 4  # at the score, in an epoch


def _accuracy(outputs: Tensor, labels: Tensor) -> float:
    return float((outputs.argmax(-1) == labels).float().mean())


def _sgd(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9)


@dataclass(frozen=True)
class Task:
    """What is trained, on what, and how good it is.

    Tensors have one row per sample. A score is better the higher it is; by default it is the part
    of the labels that the largest output names. `batch` is that of one worker, `epochs` how long it
    is trained without loss.
    """

    model: Callable[[], nn.Module]
    inputs: Tensor
    labels: Tensor
    test_inputs: Tensor
    test_labels: Tensor
    loss: Callable[[Tensor, Tensor], Tensor] = nn.functional.cross_entropy
    score: Callable[[Tensor, Tensor], float] = _accuracy
    optimizer: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer] = _sgd
    batch: int = 16
    epochs: int = 10

    def __post_init__(self) -> None:
        """Raises ValueError if there is nothing to learn, or to test."""
        sets = ((self.inputs, self.labels), (self.test_inputs, self.test_labels))
        if any(not 0 < len(inputs) == len(labels) for inputs, labels in sets):
            raise ValueError("a task needs samples to learn from and to test, each with a label")
        if self.batch < 1 or self.epochs < 1:
            raise ValueError("a task needs a batch and epochs of at least 1")

    def sample(self, part: float, seed: int = 0) -> Task:
        """The same with a part of the data to learn from, drawn at random, and as many rounds."""
        count = max(1, round(part * len(self.inputs)))
        drawn = torch.randperm(len(self.inputs), generator=torch.Generator().manual_seed(seed))
        chosen = drawn[:count]
        epochs = max(1, round(self.epochs * len(self.inputs) / count))
        return replace(self, inputs=self.inputs[chosen], labels=self.labels[chosen], epochs=epochs)

    def look(self, model: nn.Module) -> float:
        """The score of what is not learnt from."""
        model.eval()
        with torch.no_grad():
            score = self.score(model(self.test_inputs), self.test_labels)
        model.train()
        return score


# Makes of the gradients of all workers, a row for each, the average with which the model goes on.
Exchange = Callable[[Tensor], Tensor]


def mean(gradients: Tensor) -> Tensor:
    """The exchange that loses nothing."""
    return gradients.mean(0)


class Packets:
    """How the gradients of a model, one tensor after the other, are cut into packets."""

    def __init__(self, model: nn.Module, values: int = PACKET_VALUES) -> None:
        numbers: list[Tensor] = []
        self.tensor_of: list[int] = []  # of each packet
        for tensor, parameter in enumerate(model.parameters()):
            numbers.append(torch.arange(parameter.numel()) // values + len(self.tensor_of))
            self.tensor_of += [tensor] * -(-parameter.numel() // values)
        self.of_value = torch.cat(numbers)

    def __len__(self) -> int:
        return len(self.tensor_of)

    def means(self, gradients: Tensor) -> Tensor:
        """The mean magnitude of each packet, a row for each worker."""
        sums = torch.zeros(len(gradients), len(self)).index_add_(1, self.of_value, gradients.abs())
        return sums / torch.bincount(self.of_value)


def mean_of(gradients: Tensor, arrived: Tensor) -> Tensor:
    """The average of what arrived, by value; what nobody's arrived of is 0."""
    return gradients.masked_fill(~arrived, 0).sum(0) / arrived.sum(0).clamp(min=1)


class Losing:
    """The exchange that loses packets at random, each worker its own.

    `among` says of these gradients which packets, by worker, may be lost; by default all.
    """

    def __init__(
        self,
        packets: Packets,
        rate: float,
        seed: int,
        average: Callable[[Tensor, Tensor], Tensor] = mean_of,
        among: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        self._packets = packets
        self._rate = rate
        self._average = average
        self._among = among
        self._drawn = torch.Generator().manual_seed(seed)

    def __call__(self, gradients: Tensor) -> Tensor:
        chances = torch.rand(len(gradients), len(self._packets), generator=self._drawn)
        arrived = chances >= self._rate
        if self._among:
            arrived |= ~self._among(gradients)
        return self._average(gradients, arrived[:, self._packets.of_value])


def gradients_of(model: nn.Module, task: Task, batches: Sequence[Tensor]) -> Tensor:
    """Of each worker's samples, a row each."""
    rows = []
    for batch in batches:
        model.zero_grad(set_to_none=False)
        task.loss(model(task.inputs[batch]), task.labels[batch]).backward()
        rows.append(torch.cat([_gradient(parameter) for parameter in model.parameters()]))
    return torch.stack(rows)


def _gradient(parameter: nn.Parameter) -> Tensor:
    given = parameter.grad
    return torch.zeros(parameter.numel()) if given is None else given.flatten().clone()


def go_on(model: nn.Module, optimizer: torch.optim.Optimizer, average: Tensor) -> None:
    """A step with this average of the gradients."""
    at = 0
    for parameter in model.parameters():
        parameter.grad = average[at : at + parameter.numel()].view_as(parameter)
        at += parameter.numel()
    optimizer.step()


def batches_of(task: Task, workers: int, seed: int) -> Iterator[list[Tensor]]:
    """Round after round a batch for each worker, without an end; an epoch has each sample once.

    Raises ValueError if there are fewer samples than workers.
    """
    if len(task.inputs) < workers:
        raise ValueError(f"{workers} workers have {len(task.inputs)} samples to learn from")
    drawn = torch.Generator().manual_seed(seed)
    together = workers * task.batch
    while True:
        order = torch.randperm(len(task.inputs), generator=drawn)
        for at in range(0, max(len(order) - together, 0) + 1, together):
            yield list(order[at : at + together].tensor_split(workers))


def rounds_of(task: Task, workers: int) -> int:
    """In an epoch."""
    return max(1, len(task.inputs) // (workers * task.batch))


def train(
    task: Task, workers: int, seed: int, exchange: Callable[[nn.Module], Exchange] | None = None
) -> Iterator[tuple[float, float]]:
    """Trains without an end; after every part of an epoch: epochs so far, and the score."""
    torch.manual_seed(seed)
    model = task.model()
    optimizer = task.optimizer(model.parameters())
    average = exchange(model) if exchange else mean
    batches = batches_of(task, workers, seed)
    rounds = rounds_of(task, workers)
    looks = [max(1, round(rounds * (i + 1) / LOOKS)) for i in range(min(LOOKS, rounds))]
    yield 0.0, task.look(model)
    done = 0
    while True:
        go_on(model, optimizer, average(gradients_of(model, task, next(batches))))
        done += 1
        if (done - 1) % rounds + 1 in looks:
            yield done / rounds, task.look(model)


# The score that a training comes to: after how many epochs, and which.
Curve = list[tuple[float, float]]


def curve_of(task: Task, workers: int, seed: int) -> Curve:
    """Training without loss, for the task's epochs."""
    curve = []
    for point in train(task, workers, seed):
        curve.append(point)
        if point[0] >= task.epochs:
            break
    return curve


def smooth(points: Iterable[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """With the mean of the last scores, of an epoch, since single ones jump."""
    last: deque[float] = deque(maxlen=LOOKS)
    for epochs, score in points:
        last.append(score)
        yield epochs, sum(last) / len(last)


def target_of(curves: Sequence[Curve], part: float = 0.95) -> float:
    """A score to reach: so much of the way from no training to the best (the median of all)."""
    ways = []
    for curve in curves:
        first, best = curve[0][1], max(score for _, score in smooth(curve))
        ways.append(first + part * (best - first))
    return statistics.median(ways)


def epochs_to(target: float, points: Iterable[tuple[float, float]], most: float) -> float:
    """Epochs until the mean of the last scores is this, between looks by a straight line; inf: more
    than most."""
    last = (0.0, target)
    for epochs, score in smooth(points):
        if score >= target:
            before, below = last
            return before + (epochs - before) * (target - below) / max(score - below, 1e-12)
        if epochs >= most:
            break
        last = (epochs, score)
    return float("inf")


def losing(rate: float, seed: int) -> Callable[[nn.Module], Exchange] | None:
    """What train() takes, for a rate of loss."""
    return (lambda model: Losing(Packets(model), rate, seed)) if rate else None
