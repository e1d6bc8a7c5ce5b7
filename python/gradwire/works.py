"""What the backend and the communication hook share: works, which end with their calls, and the
place where the ranks of a group meet."""

from __future__ import annotations

import atexit
import functools
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, Literal

import torch
from torch._C._distributed_c10d import Work as _Work
from torch.profiler import record_function

from .errors import InvalidError, TimedOutError
from .job import Call, Job
from .options import JobOptions

_log = logging.getLogger("gradwire")
_DEADLINE_MAX_MS = 3600 * 1000
_LOOK_S = 0.005
_EXIT_S = 5.0
_FOREVER = timedelta(0)  # as PyTorch says it
_TELLERS_MAX = 1024

# Threads that complete futures, and so run the functions that wait for these, which may wait for
# further calls. One more is made only when none is idle.
_tellers = ThreadPoolExecutor(_TELLERS_MAX, "gradwire")


class Outcome:
    """How a call of PyTorch's ends, and a future of its tensors, which may be on some devices."""

    def __init__(self, name: str, tensors: Any, devices: Sequence[torch.device] = ()) -> None:
        self.name = name
        self.tensors = tensors
        self.error: BaseException | None = None
        self.is_over = threading.Event()
        self._devices = list(devices)
        self._turn = threading.Lock()
        self._ended: torch.futures.Future[None] | None = None
        self._future: Any = None  # of what came of it; made for who asks
        self.is_profiled = bool(name) and torch.autograd._profiler_enabled()
        if self.is_profiled:
            with record_function(f"gradwire:{name}") as span:
                self._future = span._call_end_callbacks_on_future(self.future)

    @property
    def future(self) -> Any:
        with self._turn:
            if self._future is None:
                self._ended = torch.futures.Future(devices=self._devices)
                # A future fails for C++ too when what makes its value raises.
                self._future = self._ended.then(self._value)
                if self.is_over.is_set():
                    self._ended.set_result(None)
            return self._future

    def end(self, error: BaseException | None = None) -> None:
        """Tells everybody."""
        with self._turn:
            self.error = error
            self.is_over.set()
            ended = self._ended
        if ended is None:
            return
        try:
            _tellers.submit(ended.set_result, None)
        except RuntimeError:  # the interpreter ends, and starts no threads
            ended.set_result(None)

    def _value(self, _: Any) -> Any:
        if self.error:
            raise self.error
        return self.tensors


class Work(_Work):
    """Calls of the library that are one call of PyTorch's, and what to do when they have ended."""

    def __init__(self, calls: Sequence[Call], outcome: Outcome, finish: Callable[[], None]) -> None:
        super().__init__()
        self.calls = calls
        self._outcome = outcome
        self._finish = finish

    def end(self) -> None:
        """Finishes, now that all calls have ended, and tells everybody."""
        error = None
        try:
            for call in self.calls:
                call.wait()
            self._finish()
        except Exception as raised:
            error = raised
        self._outcome.end(error)

    def wait(self, timeout: timedelta = _FOREVER) -> bool:
        patience_s = timeout.total_seconds()
        if not self._outcome.is_over.wait(patience_s or None):
            who = f"rank {self.calls[0].rank}: {self._outcome.name}"
            raise TimedOutError(f"{who}: no end within {patience_s:g} s")
        if self._outcome.error:
            raise self._outcome.error
        if self._outcome.is_profiled:
            self._outcome.future.wait()  # the profile then has the end of the call, too
        return True

    def is_completed(self) -> bool:
        return self._outcome.is_over.is_set()

    def is_success(self) -> bool:
        return self._outcome.is_over.is_set() and self._outcome.error is None

    def get_future(self) -> Any:
        return self._outcome.future

    def result(self) -> Any:
        return self._outcome.tensors


class Finisher:
    """The thread that ends works of a job as soon as their calls have ended."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._works: list[Work] = []
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="gradwire", daemon=True)
        self._thread.start()
        # A thread that Python stops where PyTorch has called it ends the process by SIGABRT.
        atexit.register(self.close, _EXIT_S)

    def start(self, begin: Callable[[], Work]) -> Work:
        """Starts calls. None of them is seen to have ended before the thread knows the work."""
        with self._job._turn:
            work = begin()
            self._works.append(work)
            self._job._turn.notify_all()
        return work

    def close(self, patience_s: float | None = None) -> None:
        """Ends the thread, once the works that are under way have ended."""
        atexit.unregister(self.close)
        with self._job._turn:
            self._is_closed = True
            self._job._turn.notify_all()
        self._thread.join(patience_s)

    def _take(self) -> list[Work]:
        """Works whose calls have all ended."""
        with self._job._turn:
            ended = [each for each in self._works if all(call._has_ended for call in each.calls)]
            self._works = [each for each in self._works if each not in ended]
        return ended

    def _has_any(self) -> bool:
        return any(all(call._has_ended for call in each.calls) for each in self._works)

    def _run(self) -> None:
        while True:
            with self._job._turn:
                self._job._turn.wait_for(lambda: self._works or self._is_closed)
                if not self._works:
                    return
            self._job._wait_until(self._has_any)
            for work in self._take():
                work.end()


def _own_address() -> str:
    """An address of this machine by which the others reach it."""
    named = os.environ.get("GRADWIRE_BIND")
    if named:
        return named
    is_alone = os.environ.get("LOCAL_WORLD_SIZE") == os.environ.get("WORLD_SIZE")
    outside = "192.0.2.1"  # of nobody: only the route to it is asked for, and nothing is sent
    for other in (os.environ.get("MASTER_ADDR", "127.0.0.1"), outside):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((other, 9))
            except OSError:
                continue
            own = str(probe.getsockname()[0])
        if is_alone or not own.startswith("127."):
            return own
    return "127.0.0.1"


def _free_port(address: str) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError as error:
            raise InvalidError(f"rank 0: our address is {address}: {error.strerror}") from error
        return int(probe.getsockname()[1])


def meeting_place() -> str:
    """Of a new job, which this rank begins: its name, and where the others join it."""
    address = _own_address()
    return f"{uuid.uuid4().hex} {address}:{_free_port(address)}"


def agree(store: Any, rank: int, world: int, timeout: timedelta) -> str:
    """The place of a new job, which all ranks have, in a store that may still hold an older one's.

    Each rank asks with a word of its own; rank 0 says the place together with the words that it has
    heard, until every rank has answered with the job's name. Raises TimedOutError.
    """
    own = uuid.uuid4().hex
    place = meeting_place() if rank == 0 else ""
    job, before, missing = place.split(" ")[0], "", "rank 0"
    end = time.monotonic() + timeout.total_seconds()
    if rank:
        store.set(f"gradwire/{rank}", own)
    while time.monotonic() < end:
        if rank:
            said = _get(store, "gradwire", rank, "rank 0").split()
            if own in said[2:]:
                store.set(f"gradwire/{rank}", said[0])
                return " ".join(said[:2])
        else:
            words = [_get(store, f"gradwire/{i}", 0, f"rank {i}") for i in range(1, world)]
            late = [i for i, word in enumerate(words, 1) if word != job]
            missing = f"ranks {late}"
            if not late:
                return place
            if (say := " ".join([place, *words])) != before:
                store.set("gradwire", before := say)
        time.sleep(_LOOK_S)
    raise TimedOutError(f"rank {rank}: no word of {missing}")


def _get(store: Any, key: str, rank: int, whose: str) -> str:
    """What is there, or will be within the time that the store waits."""
    try:
        return str(store.get(key).decode())
    except RuntimeError as error:
        raise TimedOutError(f"rank {rank}: no word of {whose}") from error


def meet(place: str, options: JobOptions) -> JobOptions:
    """The options of a job that is there."""
    job, join = place.split()
    options = {**options, "job": job}
    if not os.environ.get("GRADWIRE_SERVER"):
        options.setdefault("join", join)
    return options


@functools.cache
def say_once(text: str) -> None:
    """A line that a user should see, but not twice."""
    _log.warning(text)


def tell_where(job: Job, options: JobOptions) -> None:
    """Says once, by one rank, what was chosen."""

    def chosen(name: Literal["server", "switch", "via"], otherwise: str) -> str:
        return options.get(name) or os.environ.get(f"GRADWIRE_{name.upper()}") or otherwise

    server = chosen("server", f"in rank 0, at {options.get('join')}")
    switch = chosen("switch", "the server's own")
    if job.rank == 0:
        way = chosen("via", "ina")
        say_once(f"{job.world} ranks; server: {server}; switch: {switch}; sums via {way}")


def deadline_ms(timeout: timedelta) -> int:
    """What the library takes for a deadline of PyTorch."""
    return max(100, min(int(timeout.total_seconds() * 1000), _DEADLINE_MAX_MS))
