#!/usr/bin/env python3
"""Every call of torch.distributed over the backend, against what Gloo makes of the same tensors."""

import unittest
from datetime import timedelta
from functools import partial

import torch
import torch.distributed as dist
from groups import GroupCase
from torch.distributed.distributed_c10d import ReduceScatterOptions, _get_default_group

import gradwire

TYPES = (
    torch.float32, torch.float64, torch.float16, torch.bfloat16,
    torch.int32, torch.int64, torch.uint8, torch.int8, torch.bool,
)  # fmt: skip
OPS = ("SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")
SHAPES = ((1,), (7, 3), (1000,), ())
EMPTY = (0,)
IS_2 = not torch.__version__.startswith("1.")
GLOO_TAKES_EMPTY = IS_2  # before, it divides by zero


def values(kind, shape, more=0):
    """Of this rank: so small that every type has every result exactly."""
    count = torch.Size(shape).numel()
    places = torch.arange(count) * 7 + dist.get_rank() * 3 + more
    return (places % 2 + 1).reshape(shape).to(kind)


def scattered(kind, shape):
    """The same elements, not contiguous."""
    wide = values(kind, (*shape, 2))
    return wide[..., 0]


def all_reduce(group, given, op):
    dist.all_reduce(given, getattr(dist.ReduceOp, op), group)
    return [given]


def reduce(group, given, op):
    dist.reduce(given, dist.get_world_size() - 1, getattr(dist.ReduceOp, op), group)
    return [given] if dist.get_rank() == dist.get_world_size() - 1 else []


def coalesced(group, given, op):
    tensors = [given, given.clone() + given]
    dist.all_reduce_coalesced(tensors, getattr(dist.ReduceOp, op), group)
    return tensors


def broadcast(group, given):
    dist.broadcast(given, dist.get_world_size() - 1, group)
    return [given]


def all_gather(group, given):
    parts = [torch.zeros_like(given) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, given, group)
    return parts


def all_gather_single(group, given):
    every = torch.zeros((dist.get_world_size() * given.numel(),), dtype=given.dtype)
    dist.all_gather_into_tensor(every, given.contiguous().view(-1), group)
    return [every]


def reduce_scatter(group, given, op):
    parts = [given + rank for rank in range(dist.get_world_size())]
    out = torch.zeros_like(given)
    dist.reduce_scatter(out, parts, getattr(dist.ReduceOp, op), group)
    return [out]


def reduce_scatter_single(group, given, op):
    wide = given.contiguous().view(-1).repeat(dist.get_world_size())
    out = torch.zeros((given.numel(),), dtype=given.dtype)
    dist.reduce_scatter_tensor(out, wide, getattr(dist.ReduceOp, op), group)
    return [out]


def gather(group, given):
    is_root = dist.get_rank() == 0
    parts = [torch.zeros_like(given) for _ in range(dist.get_world_size())] if is_root else None
    dist.gather(given, parts, 0, group)
    return parts or []


def all_to_all(group, given):
    wide = given.contiguous().view(-1).repeat(dist.get_world_size())
    every = torch.zeros_like(wide)
    dist.all_to_all_single(every, wide + dist.get_rank(), group=group)
    return [every]


def objects(group, given):
    names = [None] * dist.get_world_size()
    dist.all_gather_object(names, {"rank": dist.get_rank(), "sum": given.sum().item()}, group)
    return [torch.tensor([name["rank"] for name in names])]


def around(group, given):
    """Two messages of one tag to the next rank, started before the receives."""
    rank, world = dist.get_rank(), dist.get_world_size()
    if world == 1:
        return []
    first, second = torch.zeros_like(given), torch.zeros_like(given)
    sent = [dist.isend(each, (rank + 1) % world, group, 3) for each in (given, given + given)]
    for room in (first, second):
        dist.recv(room, (rank - 1) % world, group, 3)
    for work in sent:
        work.wait()
    return [first, second]


REDUCTIONS = (all_reduce, reduce, coalesced, reduce_scatter, reduce_scatter_single)
MOVES = (broadcast, all_gather, all_gather_single, gather, all_to_all, objects, around)
OURS = [broadcast, all_gather, all_gather_single, around]
OURS += [partial(call, op="SUM") for call in REDUCTIONS]


def outcome(call, group, given):
    """The tensors that it gives, or that it is refused."""
    try:
        return call(group, given)
    except (RuntimeError, ValueError, TypeError) as error:
        return type(error)


def compare(kinds):
    """Compares every call with Gloo's; returns how many there were."""
    oracle = dist.new_group(backend="gloo")
    done = 0
    for kind in kinds:
        calls = list(MOVES)
        calls += [partial(call, op=op) for call in REDUCTIONS for op in OPS]
        for call in calls:
            for shape in (*SHAPES, EMPTY) if GLOO_TAKES_EMPTY else SHAPES:
                done += agrees(call, oracle, values(kind, shape))
    # Gloo itself takes no tensors that are not contiguous, so what goes there must be none.
    for call in OURS:
        done += agrees(call, oracle, scattered(torch.float32, (5, 3)))
        for result in call(None, values(torch.float32, EMPTY)):
            assert result.numel() == 0, (call, result)
    return done


def agrees(call, oracle, given):
    """Whether Gloo can do it at all; if so it must be the same."""
    own = torch.empty_strided(given.shape, given.stride(), dtype=given.dtype).copy_(given)
    expected = outcome(call, oracle, given.contiguous().clone())
    if isinstance(expected, type):
        return False
    found = outcome(call, None, own)
    assert not isinstance(found, type), (call, given, found)
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other), (call, given, one, other)
    return True


def backend():
    """The default group's, which PyTorch 2 keeps within one of its own."""
    group = _get_default_group()
    return group._get_backend(torch.device("cpu")) if hasattr(group, "_get_backend") else group


def others():
    """What Gloo has not, or does in another way."""
    rank, world = dist.get_rank(), dist.get_world_size()
    mean = torch.full((5,), float(rank))
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    assert torch.equal(mean, torch.full((5,), (world - 1) / 2)), mean
    dist.barrier()
    work = dist.all_reduce(torch.ones(3), async_op=True)
    (total,) = work.get_future().wait()
    assert torch.equal(total, torch.full((3,), float(world)))
    assert work.is_completed()
    assert work.is_success()
    early = dist.irecv(late := torch.zeros(1), (rank + 1) % world)
    dist.all_reduce(torch.ones(1))  # ends although an older call has not
    refused(gradwire.TimedOutError, partial(early.wait, timedelta(seconds=0.01)))
    dist.barrier()  # nobody sends before
    dist.send(torch.ones(1), (rank - 1) % world)
    early.wait()
    assert late.item() == 1
    refused(gradwire.UnsupportedError, partial(dist.recv, late))
    column = torch.full((1, 2), float(rank))[:, 1]  # of one element: contiguous, with stride 2
    dist.broadcast(column, world - 1)
    assert column.item() == world - 1, column.item()
    # PyTorch negates this one when it is read, not in its memory.
    one = torch.ones(1) if rank else torch.tensor([1 + 1j]).conj().imag
    for call in (partial(dist.all_reduce, one), partial(dist.broadcast, one, 0)):
        call()
        assert one.item() == world - 2, one.item()
    sparse = torch.eye(2).to_sparse()
    scaled = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8)
    for wrong, kind in ((sparse, "torch.float32, torch.sparse_coo"), (scaled, "torch.quint8")):
        refused(gradwire.InvalidError, partial(dist.broadcast, wrong, 0), f"is {kind}")
    dist.all_reduce(sparse)
    assert torch.equal(sparse.to_dense(), torch.eye(2) * world)
    for kind in (torch.float32, torch.int8) if IS_2 else (torch.float32,):  # Gloo sums the second
        given = [torch.full((world * count,), rank + 1).to(kind) for count in (4, 2)]
        found = [torch.zeros(count, dtype=kind) for count in (4, 2)]
        backend().reduce_scatter_tensor_coalesced(found, given, ReduceScatterOptions()).wait()
        for one in found:
            assert one.eq(world * (world + 1) // 2).all(), found
    halves = [dist.new_group(list(range(first, world, 2))) for first in (0, 1)]
    own = torch.full((2,), float(rank))
    dist.all_reduce(own, group=halves[rank % 2])
    return own[0].item()


def refused(kind, call, line=""):
    try:
        call()
    except kind as error:
        assert line in str(error), (line, str(error))
        return
    raise AssertionError(f"{call} is not refused")


def sizes():
    """Tensors that do not fit each other are refused before the call starts, by all ranks alike."""
    two, three, wide = torch.ones(2), torch.ones(3), torch.ones(4)
    whole = torch.ones(4, dtype=torch.int32)
    for line, call in {
        "all_gather: 1 tensors are given: 2 are": partial(dist.all_gather, [two], two),
        "all_gather: 3 tensors are": partial(dist.all_gather, [two] * 3, two),
        "all_gather: a tensor has 3 elements": partial(dist.all_gather, [two, three], two),
        "2 of torch.float32 are expected": partial(dist.all_gather, [wide, wide], two),
        "has 3 elements of torch.float32: 4 of": partial(dist.all_gather_into_tensor, three, two),
        "4 elements of torch.int32: 4 of torch.float32": partial(
            dist.all_gather_into_tensor, whole, two
        ),
        "reduce_scatter: 1 tensors are": partial(dist.reduce_scatter, two, [two]),
        "reduce_scatter: a tensor has 3": partial(dist.reduce_scatter, two, [three, torch.ones(1)]),
    }.items():
        refused(gradwire.InvalidError, call, line)
    dist.all_reduce(two)
    return two[0].item()


def chained():
    """Functions that futures are given wait for further calls, as hooks do that compress."""

    def again(future):
        (tensor,) = future.value()
        return dist.all_reduce(tensor, async_op=True).get_future().wait()[0]

    ones = torch.ones(3)
    work = dist.all_reduce(ones, async_op=True)
    return work.get_future().then(again).then(lambda future: future.value()[0].item()).wait()


class CollectivesTest(GroupCase):
    def test_calls__are_those_of_gloo(self):
        for world, kinds in ((1, TYPES), (2, TYPES), (3, TYPES), (5, TYPES[4:5]), (8, TYPES[:1])):
            done = self.run_ranks(world, partial(compare, kinds))
            self.assertGreater(min(done), 50 * len(kinds))

    def test_calls__of_its_own(self):
        self.assertEqual(self.run_ranks(4, others), [2, 4, 2, 4])

    def test_sizes__that_do_not_fit_are_refused(self):
        self.assertEqual(self.run_ranks(2, sizes), [2, 2])

    def test_functions__of_futures_may_wait_for_calls(self):
        self.assertEqual(self.run_ranks(2, chained), [4, 4])

    def test_tensors__are_memory_of_a_job(self):
        with gradwire.Job(rank=0, world=1) as job:
            for shape in ((2, 0), (4, 0, 3), ()):
                job.allreduce(torch.zeros(shape))
            learnt = torch.zeros(3, requires_grad=True)
            with self.assertRaisesRegex(gradwire.InvalidError, "data is Tensor: .* gradient"):
                job.allreduce(learnt)


if __name__ == "__main__":
    unittest.main()
