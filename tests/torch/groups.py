"""Ranks of PyTorch as processes, for tests: each joins a group, and runs a function."""

import os
import unittest

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from ports import free_port

WAIT_S = 120  # guards against hanging only


def _run(rank, world, port, body, ends):
    import gradwire.torch  # noqa: F401, PLC0415 - registers the backend

    names = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    names |= {"RANK": rank, "WORLD_SIZE": world, "LOCAL_WORLD_SIZE": world}
    os.environ |= {name: str(value) for name, value in names.items()}
    torch.set_num_threads(1)
    dist.init_process_group("gradwire")
    try:
        ends.put((rank, body()))
    except BaseException as error:
        ends.put((rank, error))
        raise
    dist.destroy_process_group()


class GroupCase(unittest.TestCase):
    def start(self, world, body):
        """Starts body() as each rank; returns the processes, and where they put how they ended."""
        context = processes.get_context("spawn")
        ends, port, ranks = context.Queue(), free_port(), []
        for rank in range(world):
            process = context.Process(target=_run, args=(rank, world, port, body, ends))
            process.start()
            self.addCleanup(process.join)
            self.addCleanup(process.kill)
            ranks.append(process)
        return ranks, ends

    def run_ranks(self, world, body):
        """What each rank returns."""
        ranks, ends = self.start(world, body)
        said = dict(ends.get(timeout=WAIT_S) for _ in range(world))
        for end in said.values():
            if isinstance(end, BaseException):
                raise end
        for process in ranks:
            process.join(WAIT_S)
            self.assertEqual(process.exitcode, 0)
        return [said[rank] for rank in range(world)]
