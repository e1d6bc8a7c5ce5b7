#!/usr/bin/env python3
"""Training over the backend: wrappers of PyTorch give the parameters that one process gives, and a
rank that dies is named."""

import datetime
import itertools
import math
import os
import socket
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from unittest import mock

import torch
import torch.distributed as dist
from groups import WAIT_S, GroupCase
from ports import free_port
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

import gradwire
from gradwire import staging, works
from gradwire.works import Outcome, agree, meet, meeting_place

WORLD = 2
HAS_SHARDS = not torch.__version__.startswith("1.")  # before, FSDP does not import on Python 3.11
STEPS = 5
BATCH = 8
DEVICE = os.environ.get("GRADWIRE_TEST_DEVICE", "cpu")  # of the hook's gradients


def network():
    torch.manual_seed(7)
    widths = (20, 50, 30)
    layers = [nn.Sequential(nn.Linear(*pair), nn.ReLU()) for pair in itertools.pairwise(widths)]
    return nn.Sequential(*layers, nn.Linear(widths[-1], 5))


def samples(step):
    drawn = torch.Generator().manual_seed(step)
    return torch.randn(BATCH, 20, generator=drawn), torch.randn(BATCH, 5, generator=drawn)


def train(model, optimizer, part=slice(None)):
    for step in range(STEPS):
        device = next(model.parameters()).device
        given, wanted = (each[part].to(device) for each in samples(step))
        optimizer.zero_grad()
        nn.functional.mse_loss(model(given), wanted).backward()
        optimizer.step()


def alone():
    model = network()
    train(model, torch.optim.Adam(model.parameters(), lr=0.01))
    return [value.detach().clone() for value in model.parameters()]


def own_part():
    each = BATCH // dist.get_world_size()
    return slice(dist.get_rank() * each, (dist.get_rank() + 1) * each)


def assert_as_alone(values):
    for value, expected in zip(values, alone(), strict=True):
        torch.testing.assert_close(value.detach().cpu(), expected)


def data_parallel():
    model = DistributedDataParallel(network(), bucket_cap_mb=0.005)  # several buckets
    train(model, torch.optim.Adam(model.parameters(), lr=0.01), own_part())
    assert_as_alone(model.parameters())


def sharded_optimizer():
    model = DistributedDataParallel(network())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
    train(model, optimizer, own_part())
    assert_as_alone(model.parameters())


def sharded_model():
    from torch.distributed.fsdp import fully_shard  # noqa: PLC0415 - old versions have none

    model = network()
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    train(model, torch.optim.Adam(model.parameters(), lr=0.01), own_part())
    assert_as_alone([value.full_tensor() for value in model.parameters()])


def hook(bound, **options):
    """Trains by the hook, beside a group of Gloo's; returns what was missing. Packets get lost."""
    os.environ["GRADWIRE_FAULTS"] = "lose=0.05,seed=7"
    group = dist.new_group(backend="gloo")
    model = network().to(DEVICE)
    model = DistributedDataParallel(model, process_group=group, bucket_cap_mb=0.005)
    state = gradwire.HookState(bound=bound, **options)
    model.register_comm_hook(state, gradwire.ddp_hook)
    train(model, torch.optim.Adam(model.parameters(), lr=0.01), own_part())
    if not bound:
        assert_as_alone(model.parameters())
    every = [None] * WORLD
    dist.all_gather_object(every, [value.tolist() for value in model.parameters()])
    assert all(each == every[0] for each in every), "replicas differ"
    state.close()
    return state.fragments, state.left_out, state.missing


def hooks_refused(wrongs):
    """Which of these options are."""
    refused = []
    for options in wrongs:
        try:
            gradwire.HookState(**options)
        except gradwire.InvalidError:
            refused.append(str(options))
    return refused


class Late:
    """Stands in for staging.Device where there is none: its copies end long after they began."""

    after_s = 0.005

    def __init__(self, device):
        pass

    def outcome(self, name, tensor):
        return Outcome(name, tensor)

    def memory(self, tensor):
        return torch.full_like(tensor, math.nan)

    def fetch(self, tensor, host):
        host.fill_(math.nan)
        copy = threading.Timer(self.after_s, host.copy_, (tensor,))
        copy.start()
        return copy.join

    def put(self, host, tensor):
        tensor.fill_(math.nan)
        time.sleep(self.after_s)
        tensor.copy_(host)


def on_device(body):
    """Runs body() as if every second bucket were on a device."""
    turns = itertools.count()
    with (
        mock.patch.object(staging, "Device", Late),
        mock.patch.object(staging, "is_on_host", lambda _: next(turns) % 2 == 1),
    ):
        return body()


def dies():
    dist.barrier()
    if dist.get_rank() == 1:
        os._exit(1)
    try:
        dist.all_reduce(torch.ones(3))
    except gradwire.Error as error:
        os._exit(0 if isinstance(error, gradwire.PeerError) and "rank 1" in str(error) else 2)


def dies_before_what_goes_to_gloo():
    dist.barrier()
    if dist.get_rank() == 1:
        os._exit(1)
    try:
        dist.all_reduce(torch.ones(3, dtype=torch.int8))
    except gradwire.PeerError as error:
        os._exit(0 if "rank 1" in str(error) else 2)


def dies_while_training(has_hook=False):
    model = DistributedDataParallel(network())
    if has_hook:
        model.register_comm_hook(gradwire.HookState(), gradwire.ddp_hook)
    loss = model(torch.ones(1, 20)).sum()
    if dist.get_rank() == 1:
        os._exit(1)
    try:
        loss.backward()
    except Exception as error:
        os._exit(0 if "rank 1" in str(error) else 2)


def say(store, key, text):
    """As ranks do."""
    store.set(key, text)
    store.add(f"{key}/said", 1)


class MeetingTest(unittest.TestCase):
    def test_ranks__do_not_meet_where_they_met_before(self):
        """A store outlives the ranks that torchrun starts again."""
        store = dist.HashStore()
        say(store, "gradwire", "old 127.0.0.1:1 word another")
        say(store, "gradwire/1", "old")
        patience = datetime.timedelta(seconds=WAIT_S)
        with ThreadPoolExecutor() as pool:
            said = list(pool.map(lambda rank: agree(store, rank, 3, patience), range(3)))
        self.assertNotIn("old", said[0])
        self.assertEqual(said, [said[0]] * 3)

    def test_ranks__meet_in_two_groups_at_a_time(self):
        """Each begins with another, in one store, which serves one of its threads at a time."""
        port, patience = free_port(), datetime.timedelta(seconds=WAIT_S)

        def both(rank):
            store = dist.TCPStore("127.0.0.1", port, 2, rank == 0, patience, False)
            with ThreadPoolExecutor() as pool:
                ends = {}
                for name in "ab" if rank else "ba":
                    group = dist.PrefixStore(name, store)
                    ends[name] = pool.submit(agree, group, rank, 2, patience)
                    time.sleep(0.05)
                return ends["a"].result(), ends["b"].result()

        with ThreadPoolExecutor() as pool:
            one, other = pool.map(both, range(2))
        self.assertEqual(one, other)

    def test_ranks__that_do_not_come_are_named(self):
        store, patience = dist.HashStore(), datetime.timedelta(seconds=0.2)
        with ThreadPoolExecutor() as pool:
            for end in [pool.submit(agree, store, rank, 3, patience) for rank in (0, 1)]:
                with self.assertRaisesRegex(gradwire.TimedOutError, "no word of rank 2"):
                    end.result()
        say(store, "gradwire/2", "old")
        with self.assertRaisesRegex(gradwire.TimedOutError, "no word of ranks 1, 2"):
            agree(store, 0, 3, patience)

    def test_port__is_nobody_elses_until_the_job_opens_it(self):
        def is_held(place):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
                try:
                    other.bind(("127.0.0.1", int(place.rpartition(":")[2])))
                except OSError:
                    return True
            return place in works._held

        place = meeting_place()
        self.assertTrue(is_held(place))
        meet(place, {"rank": 1, "world": 2})
        self.assertTrue(is_held(place))
        meet(place, {"rank": 0, "world": 2})
        self.assertNotIn(place, works._held)

    def test_port__is_anybodys_when_ranks_do_not_come(self):
        with self.assertRaises(gradwire.TimedOutError):
            agree(dist.HashStore(), 0, 2, datetime.timedelta(0))
        self.assertEqual(works._held, {})

    def test_address__that_is_not_ours_is_named(self):
        with (
            mock.patch.dict(os.environ, GRADWIRE_BIND="192.0.2.77"),
            self.assertRaisesRegex(gradwire.InvalidError, "192.0.2.77"),
        ):
            meeting_place()

    def test_address__is_one_that_the_others_reach(self):
        class Probe:
            def __init__(self, *_):
                self.own = ""

            def __enter__(self):
                return self

            def __exit__(self, *_):
                pass

            def connect(self, other):
                self.own = "127.0.1.1" if other[0] in {"here", "127.0.0.1"} else "10.0.0.5"

            def getsockname(self):
                return (self.own, 9)

        outside, alone = "10.0.0.5", "127.0.1.1"
        for environment, expected in (
            ({}, outside),
            ({"MASTER_ADDR": "here"}, outside),
            ({"MASTER_ADDR": "here", "WORLD_SIZE": "4"}, outside),
            ({"MASTER_ADDR": "here", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}, outside),
            ({"MASTER_ADDR": "here", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "4"}, alone),
        ):
            with (
                mock.patch.dict(os.environ, environment, clear=True),
                mock.patch.object(socket, "socket", Probe),
            ):
                self.assertEqual(works._own_address(), expected, environment)


class TrainingTest(GroupCase):
    def test_wrappers__train_as_one_process(self):
        for body in (data_parallel, sharded_optimizer, *[sharded_model] * HAS_SHARDS):
            with self.subTest(body.__name__):
                self.run_ranks(WORLD, body)

    def test_hook__trains_as_one_process(self):
        exact = partial(hook, 0.0)
        for body in (exact, partial(on_device, exact)):
            with self.subTest(body.func.__name__):
                self.assertEqual(self.run_ranks(WORLD, body), [(0, 0, 0)] * WORLD)

    def test_hook__keeps_to_its_bound(self):
        bound = 0.2
        for said in self.run_ranks(WORLD, partial(hook, bound, via="ring", values=16)):
            fragments, left_out, missing = said
            self.assertGreater(left_out, 0)
            self.assertLessEqual(left_out, bound * fragments * WORLD)
            self.assertEqual(missing, 0)

    def test_hook__that_is_none_is_refused(self):
        wrongs = [{"bound": value} for value in (math.nan, -0.1, 0.7)]
        wrongs += [{"bound": 0.1, "importance": "most"}, {"importance": "most"}]
        for said in self.run_ranks(2, partial(hooks_refused, wrongs)):
            self.assertEqual(said, list(map(str, wrongs)))

    def test_device__without_streams_is_refused(self):
        with self.assertRaisesRegex(gradwire.InvalidError, "are on meta"):
            staging.Device(torch.device("meta"))

    def test_dead_rank__is_named(self):
        with_hook = partial(dies_while_training, True)
        bodies = [dies, dies_before_what_goes_to_gloo, dies_while_training]
        for body in (*bodies, with_hook, partial(on_device, with_hook)):
            with self.subTest(body):
                ranks, _ = self.start(WORLD, body)
                for process in ranks:
                    process.join(WAIT_S)
                self.assertEqual([process.exitcode for process in ranks], [0, 1])


if __name__ == "__main__":
    unittest.main()
