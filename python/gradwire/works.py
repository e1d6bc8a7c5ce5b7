"""What the backend and the communication hook share: works, which end with their calls, and the
place where the ranks of a group meet."""

from __future__ import annotations

import atexit
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
_PAIR = 2
_LOOK_S = 0.005
_EXIT_S = 5.0
_FOREVER = timedelta(0)  # as PyTorch says it
_NO_WORD = "-"
_TELLERS_MAX = 1024
_said: set[str] = set()
_held: dict[str, socket.socket] = {}  # by place: our port there, until the job opens it

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
    here = os.environ.get("LOCAL_WORLD_SIZE")
    is_alone = here is not None and here == os.environ.get("WORLD_SIZE")
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


def _take_port() -> socket.socket:
    """A port that nobody has, where the job will take it: at all addresses, or at the named one."""
    address = os.environ.get("GRADWIRE_BIND") or "0.0.0.0"
    taken = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        taken.bind((address, 0))
    except OSError as error:
        taken.close()
        raise InvalidError(f"rank 0: our address is {address}: {error.strerror}") from error
    return taken


def meeting_place() -> str:
    """Of a new job, which this rank begins: its name, and where the others join it.

    Until meet() the port is held, so that nobody else is given it; else call leave().
    """
    taken = _take_port()
    place = f"{uuid.uuid4().hex} {_own_address()}:{taken.getsockname()[1]}"
    _held[place] = taken
    return place


def leave(place: str) -> None:
    """The port of the place, if it is held here, may be anybody's."""
    taken = _held.pop(place, None)
    if taken:
        taken.close()


def agree(store: Any, rank: int, world: int, timeout: timedelta) -> str:
    """The place of a new job, which all ranks have, in a store that may still hold an older one's.

    Each rank asks with a word of its own. Rank 0 says the words that it has heard, with the place
    once there are all, or else with who is missing, until every rank has answered with the job's
    name. Raises TimedOutError.
    """
    place = meeting_place() if rank == 0 else ""
    try:
        return _agree_on(place, store, rank, world, timeout)
    except BaseException:
        leave(place)
        raise


def _agree_on(place: str, store: Any, rank: int, world: int, timeout: timedelta) -> str:
    own = uuid.uuid4().hex
    job, before, missing = place.split(" ", maxsplit=1)[0], "", "rank 0"
    end = time.monotonic() + timeout.total_seconds()
    if rank:
        _say(store, f"gradwire/{rank}", own)
    while time.monotonic() < end:
        if rank:
            said = _heard(store, rank, "gradwire").split()
            if own in said[2:] and said[0] != _NO_WORD:
                _say(store, f"gradwire/{rank}", said[0])
                return " ".join(said[:2])
            missing = _ranks(said[1]) if own in said[2:] else "rank 0"
        else:
            words = [_heard(store, 0, f"gradwire/{i}") or _NO_WORD for i in range(1, world)]
            late = [str(i) for i, word in enumerate(words, 1) if word != job]
            if not late:
                return place
            silent = ",".join(str(i) for i, word in enumerate(words, 1) if word == _NO_WORD)
            missing = _ranks(silent or ",".join(late))
            say = " ".join([f"{_NO_WORD} {silent}" if silent else place, *words])
            if say != before:
                _say(store, "gradwire", before := say)
        time.sleep(_LOOK_S)
    raise TimedOutError(f"rank {rank}: no word of {missing}")


def _ranks(numbers: str) -> str:
    return f"rank{'s' * (',' in numbers)} {numbers.replace(',', ', ')}"


def _say(store: Any, key: str, text: str) -> None:
    store.set(key, text)
    store.add(f"{key}/said", 1)


def _heard(store: Any, rank: int, key: str) -> str:
    """What has been said, or nothing. It never waits in the store, which serves one thread of this
    process at a time: another may have to say there what others wait for."""
    try:
        return str(store.get(key).decode()) if store.add(f"{key}/said", 0) else ""
    except RuntimeError as error:
        raise TimedOutError(f"rank {rank}: no word of the store where ranks meet") from error


def meet(place: str, options: JobOptions) -> JobOptions:
    """The options of a job that is there, which rank 0 opens at once."""
    job, join = place.split()
    if options.get("rank") == 0:
        leave(place)
    options = {**options, "job": job}
    if not os.environ.get("GRADWIRE_SERVER"):
        options.setdefault("join", join)
    return options


def say_once(what: str, line: str = "") -> None:
    """A line that a user should see, but not twice: `what` it says, or this one, which says it."""
    if what not in _said:
        _said.add(what)
        _log.warning(line or what)


def tell_where(job: Job, options: JobOptions) -> None:
    """Says by one rank what was chosen; not again where only rank 0's port is another."""

    def chosen(name: Literal["server", "switch", "via"], otherwise: str) -> str:
        return options.get(name) or os.environ.get(f"GRADWIRE_{name.upper()}") or otherwise

    if job.rank == 0:
        own = f"in rank 0, at {options.get('join')}"
        server, switch = chosen("server", own), chosen("switch", "the server's own")
        way = chosen("via", "default")
        if way == "default" and (chosen("server", "") or chosen("switch", "")):
            way = "ina"
        elif way == "default":
            way = "ring" if job.world <= _PAIR else "ina, large ones via ring"
        line = f"{job.world} ranks; server: {server}; switch: {switch}; sums via {way}"
        say_once(line.replace(own, ""), line)


def deadline_ms(timeout: timedelta) -> int:
    """What the library takes for a deadline of PyTorch."""
    return max(100, min(int(timeout.total_seconds() * 1000), _DEADLINE_MAX_MS))
