"""What tests of the package share: ranks of a job, as threads of this process or as processes."""

import multiprocessing
import os
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor

from ports import free_port

import gradwire

WAIT_S = 120  # guards against hanging only

_in_memory = threading.Lock()


def in_threads(world, body, **options):
    """Runs body(job) as each rank, all of them threads without sockets; returns what they return.

    If one raises, it is that error, rather than what its end has done to the others.
    """

    def rank(number):
        with gradwire.Job(rank=number, world=world, join="127.0.0.1:4790", **options) as job:
            return body(job)

    with _in_memory:
        os.environ["GRADWIRE_DATAPATH"] = "memory"
        try:
            with ThreadPoolExecutor(world) as pool:
                futures = [pool.submit(rank, number) for number in range(world)]
                errors = [error for error in (each.exception() for each in futures) if error]
                own = [error for error in errors if not isinstance(error, gradwire.Error)]
                for error in own + errors:
                    raise error
                return [future.result() for future in futures]
        finally:
            del os.environ["GRADWIRE_DATAPATH"]


def _run(body, options, ends):
    """A rank in a process of its own: says how it has ended."""
    try:
        with gradwire.Job(**options) as job:
            ends.send(body(job, ends))
    except BaseException as error:
        ends.send(error)


class ProcessCase(unittest.TestCase):
    """Ranks that are processes, over sockets of this machine."""

    def start(self, world, body, **options):
        """Starts body(job, pipe) as each rank, and returns processes and pipes.

        At the end the pipe has what it has returned, or the exception that ended it.
        """
        context = multiprocessing.get_context("spawn")
        join = f"127.0.0.1:{free_port()}"
        processes, pipes = [], []
        for rank in range(world):
            ours, theirs = context.Pipe()
            own = {"rank": rank, "world": world, "join": join, **options}
            process = context.Process(target=_run, args=(body, own, theirs))
            process.start()
            theirs.close()
            self.addCleanup(process.join)
            self.addCleanup(process.kill)
            processes.append(process)
            pipes.append(ours)
        return processes, pipes

    def receive(self, pipe):
        self.assertTrue(pipe.poll(WAIT_S), "a rank says nothing")
        return pipe.recv()

    def run_ranks(self, world, body, **options):
        """What each rank returns."""
        _, pipes = self.start(world, body, **options)
        ends = [self.receive(pipe) for pipe in pipes]
        for end in ends:
            if isinstance(end, BaseException):
                raise end
        return ends
