"""A job, and its calls; what each does is in gradwire.h and docs/library.md.

Every call is one method, `start_NAME`, which returns a Call at once; `NAME` is made of it, and
waits. All of them wait by the job's descriptor rather than in the library, so that signals, and
other threads, come in between.

The library takes calls of one thread at a time, so all go by one lock, which nobody holds while he
waits: one thread polls for all that wait, and tells them.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import select
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from .errors import BusyError, ClosedError, Error, ForkedError, InvalidError, error_of
from .memory import BYTES, Array, Memory
from .native import ffi, fill, lib, text_of, value_of
from .options import CallOptions, JobOptions, Op, Via
from .parts import Told, Worth

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

_LOOK_MS = 500  # how often who waits looks whether another thread has closed the job
_HURRY_S = 0.3  # for a farewell when somebody has pressed Ctrl-C
_TAGS = 1 << 24
_KEYS = 1 << 64

P = ParamSpec("P")
T = TypeVar("T")


def _apart(function: Callable[[], T]) -> Future[T]:
    """Runs it in a thread of its own: who waits for the future can be interrupted."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="gradwire", daemon=True).start()
    return future


def _close_late(opened: Future[Any]) -> None:
    """Nobody waits any longer for what has been opened."""
    if not opened.exception():
        lib.gradwire_close(opened.result())


@dataclass
class _How:
    """Options of a call as the library takes them, and what must live as long as it."""

    options: Any = ffi.NULL
    kept: list[Any] = field(default_factory=list)
    told: Told | None = None
    worth: Worth | None = None


class Call:
    """A call that was started, of this name. Its memory is the job's until it has ended."""

    def __init__(self, job: Job, name: str, memories: list[Memory], how: _How) -> None:
        self.name = name
        self.rank = job.rank
        self._job = job
        self._memories = memories
        self._how = how
        self._number = ffi.new("gradwire_call *")  # 0 until the library has it
        self._has_ended = False
        self._error: Error | None = None

    def wait(self) -> None:
        """Waits until it has ended; raises what went wrong, each time."""
        self._job._wait_until(lambda: self._has_ended)
        if self._error:
            raise self._error

    def done(self) -> bool:
        """Whether it has ended; wait() then does not wait."""
        return self._job._look(self)

    def _end(self, error: Error | None) -> None:
        if self._how.told:
            self._how.told.end(has_failed=error is not None)
        for memory in self._memories:
            memory.release()
        self._how = _How()
        self._error = error
        self._has_ended = True


def _has_any_ended(calls: list[Call]) -> bool:
    return any(call._has_ended for call in calls)


def _waiting(start: Callable[Concatenate[Job, P], Call]) -> Callable[Concatenate[Job, P], None]:
    """The form of a call that waits."""

    @functools.wraps(start)
    def call(self: Job, /, *args: P.args, **options: P.kwargs) -> None:
        start(self, *args, **options).wait()

    call.__name__ = start.__name__.removeprefix("start_")
    return call


class Job:
    """A job that this process has opened. Options are those of `struct gradwire_options`.

    What is not given comes from the environment, as torchrun, mpirun, srun and GRADWIRE_... set it.
    Leaving the `with` block closes the job. Threads may share it.
    """

    def __init__(self, **options: Unpack[JobOptions]) -> None:
        given = ffi.new("struct gradwire_options *")
        lib.gradwire_options_init(given, ffi.sizeof("struct gradwire_options"))
        kept = fill(given, options)
        self._turn = threading.Condition()
        self._is_polled = False  # some thread does so for all
        self._calls: dict[Call, None] = {}  # in work, in the order of their starts
        self._world: int = given.world
        self._rank: int = given.rank
        self._job: Any = None
        future = _apart(lambda: self._open(given, kept))
        try:
            self._job = future.result()
        except (KeyboardInterrupt, SystemExit):
            future.add_done_callback(_close_late)
            raise
        self._poll = select.poll()
        self._poll.register(self.fileno(), select.POLLIN)
        _open_jobs.add(self)

    @property
    def rank(self) -> int:
        """Our number, from 0."""
        return self._rank

    @property
    def world(self) -> int:
        """How many ranks there are."""
        return self._world

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        in_hurry = kind is not None and not issubclass(kind, Exception)
        self._close(_HURRY_S if in_hurry else None)

    def close(self) -> None:
        """Leaves the job. Calls in work fail, and with them the job of the others."""
        self._close(None)

    def fileno(self) -> int:
        """A descriptor for event loops, readable when a call may have ended: ask `done()` then."""
        with self._turn:
            return int(lib.gradwire_fd(self._opened()))

    def stats(self) -> dict[str, int]:
        """Counters since the job was opened; `struct gradwire_stats` explains them."""
        stats = ffi.new("struct gradwire_stats *", {"size": ffi.sizeof("struct gradwire_stats")})
        with self._turn:
            error = self._error(lib.gradwire_get_stats(self._opened(), stats))
        if error:
            raise error
        names = [name for name, _ in ffi.typeof("struct gradwire_stats").fields]
        return {name: getattr(stats, name) for name in names if name != "size"}

    def fragments(self, data: Array, via: Via = "default") -> int:
        """How many fragments an all-reduce of this data has; all other calls go via ring."""
        count, kind = Memory(data, "data").moved()
        return self._count_fragments(count, kind, value_of("via", via))

    # Collectives: all ranks start them in the same order, with equal arguments but for memory.

    def start_allreduce(
        self,
        data: Array,
        out: Array | None = None,
        *,
        op: Op = "sum",
        **options: Unpack[CallOptions],
    ) -> Call:
        """Collective. Sums the data of all ranks, or what `op` says, into `out`, else in place."""
        given, result = self._reduced(data, out)
        return self._collective(
            "allreduce", options, given, result, given.count, given.type, value_of("op", op)
        )

    def start_reduce(
        self,
        data: Array,
        out: Array | None = None,
        *,
        root: int = 0,
        op: Op = "sum",
        **options: Unpack[CallOptions],
    ) -> Call:
        """Collective. As allreduce, but only `root` gets the result, and needs an `out`."""
        root = self._number("reduce: root", root, self.world)
        is_root = root == self.rank
        given, result = self._reduced(data, out) if is_root else (Memory(data, "data"), ffi.NULL)
        return self._collective(
            "reduce", options, given, result, given.count, given.type, value_of("op", op), root
        )

    def start_broadcast(
        self, data: Array, *, root: int = 0, **options: Unpack[CallOptions]
    ) -> Call:
        """Collective. Every rank gets the data of `root`, bit by bit."""
        root = self._number("broadcast: root", root, self.world)
        memory = Memory(data, "data", writes=root != self.rank)
        return self._collective("broadcast", options, memory, *memory.moved(), root)

    def start_allgather(self, data: Array, out: Array, **options: Unpack[CallOptions]) -> Call:
        """Collective. `out` gets the data of all ranks, in their order, bit by bit."""
        given, result = Memory(data, "data"), Memory(out, "out", writes=True)
        result.must_fit(given, self.world)
        return self._collective("allgather", options, given, result, *given.moved())

    def start_reduce_scatter(
        self, data: Array, out: Array, *, op: Op = "sum", **options: Unpack[CallOptions]
    ) -> Call:
        """Collective. `out` gets this rank's part of what allreduce would give."""
        given, result = Memory(data, "data"), Memory(out, "out", writes=True)
        given.must_fit(result, self.world)
        return self._collective(
            "reduce_scatter", options, given, result, result.count, given.type, value_of("op", op)
        )

    def start_barrier(self, **options: Unpack[CallOptions]) -> Call:
        """Collective. Ends when all ranks have started it."""
        return self._start("barrier", options)

    # Messages, and values that ranks keep for each other: free of any order.

    def start_send(
        self, data: Array, to: int, tag: int = 0, **options: Unpack[CallOptions]
    ) -> Call:
        """Sends a message; ends when rank `to` has it, which calls receive with the same tag."""
        memory = Memory(data, "data")
        to = self._number("send: to", to, self.world)
        tag = self._number("send: tag", tag, _TAGS)
        return self._start("send", options, memory, memory.bytes, to, tag)

    def start_receive(
        self, data: Array, source: int, tag: int = 0, **options: Unpack[CallOptions]
    ) -> Call:
        """Ends when a message from rank `source` is there, which may be shorter than `data`."""
        memory = Memory(data, "data", writes=True)
        source = self._number("receive: source", source, self.world)
        tag = self._number("receive: tag", tag, _TAGS)
        return self._start("receive", options, memory, memory.bytes, source, tag)

    def start_push(self, key: int, data: Array, **options: Unpack[CallOptions]) -> Call:
        """Adds to the value with this key, which the first push makes."""
        memory = Memory(data, "data")
        key = self._number("push: key", key, _KEYS)
        return self._start("push", options, key, memory, memory.count, memory.type)

    def start_pull(self, key: int, data: Array, **options: Unpack[CallOptions]) -> Call:
        """Gets the value with this key, as it is then."""
        memory = Memory(data, "data", writes=True)
        key = self._number("pull: key", key, _KEYS)
        return self._start("pull", options, key, memory, memory.count, memory.type)

    allreduce = _waiting(start_allreduce)
    reduce = _waiting(start_reduce)
    broadcast = _waiting(start_broadcast)
    allgather = _waiting(start_allgather)
    reduce_scatter = _waiting(start_reduce_scatter)
    barrier = _waiting(start_barrier)
    send = _waiting(start_send)
    receive = _waiting(start_receive)
    push = _waiting(start_push)
    pull = _waiting(start_pull)

    # How a call goes.

    def _number(self, role: str, number: int, count: int) -> int:
        """An argument that counts from 0, of so many."""
        try:
            given = operator.index(number)
        except TypeError as error:
            raise InvalidError(
                f"rank {self.rank}: {role} is {type(number).__name__}: an integer is expected"
            ) from error
        if not 0 <= given < count:
            raise InvalidError(f"rank {self.rank}: {role} is {given}: 0 to {count - 1}")
        return given

    def _reduced(self, data: Array, out: Array | None) -> tuple[Memory, Memory]:
        """Memory of a sum and of its result, which may be the same."""
        if out is None:
            memory = Memory(data, "data", writes=True)
            return memory, memory
        given, result = Memory(data, "data"), Memory(out, "out", writes=True)
        result.must_fit(given)
        return given, result

    def _collective(self, name: str, options: CallOptions, given: Memory, *arguments: Any) -> Call:
        """Starts a collective. The library starts none of nothing; here it has ended at once."""
        return self._start(name, options, given, *arguments, is_empty=given.bytes == 0)

    def _start(
        self, name: str, options: CallOptions, *arguments: Any, is_empty: bool = False
    ) -> Call:
        """Starts gradwire_NAME_with(); while as many calls are in work as can be, it waits."""
        memories = [each for each in arguments if isinstance(each, Memory)]
        how = self._how(name, options, memories)
        call = Call(self, name, memories, how)
        values = [each.pointer if isinstance(each, Memory) else each for each in arguments]
        place = ffi.NULL if is_empty else call._number
        function = getattr(lib, f"gradwire_{name}_with")
        try:
            self._begin(call, lambda: function(self._opened(), *values, how.options, place))
            if is_empty:
                call._end(None)
            if how.worth and how.worth.interrupt:
                raise how.worth.interrupt
        finally:
            if how.told and not call._number[0] and not call._has_ended:
                how.told.end(has_failed=True)
        return call

    def _begin(self, call: Call, start: Callable[[], int]) -> None:
        """Starts a call of the library's, or raises why it is refused."""
        while True:
            with self._turn:
                in_work = list(self._calls)
                self._calls[call] = None
                try:
                    error = self._error(start())
                finally:
                    if not call._number[0]:
                        del self._calls[call]
            if not error:
                return
            if not isinstance(error, BusyError) or not in_work:
                raise error
            self._wait_until(functools.partial(_has_any_ended, in_work))

    def _how(self, name: str, options: CallOptions, memories: list[Memory]) -> _How:
        """Options as the library takes them."""
        values: dict[str, Any] = dict(options)
        if not values:
            return _How()
        parts, worth = values.pop("parts", None), values.pop("worth", None)
        given = ffi.new("struct gradwire_call_options *")
        lib.gradwire_call_options_init(given, ffi.sizeof("struct gradwire_call_options"))
        how = _How(given, fill(given, values))
        fragments = self._fragments(name, given, memories)
        if worth is not None:
            if values.get("importance") not in (None, "worth"):
                raise InvalidError(
                    f"importance is {values['importance']!r}: of a worth it is 'worth', or left out"
                )
            how.worth = Worth(worth, fragments * (self.world if name == "reduce_scatter" else 1))
            given.worth, given.importance = how.worth.function, value_of("importance", "worth")
        if parts is not None:
            how.told = Told(parts, fragments * (self.world if name == "allgather" else 1))
            given.parts = how.told.struct
        return how

    def _fragments(self, name: str, how: Any, memories: list[Memory]) -> int:
        """How many a call has; where some memory is of all ranks, in the part of each."""
        part = min(memories, key=lambda memory: memory.bytes, default=None)
        if part is None:
            return 0
        count, kind = (part.bytes, BYTES) if name in ("send", "receive") else part.moved()
        via = how.via if name == "allreduce" else value_of("via", "ring")
        return self._count_fragments(count, kind, via)

    def _count_fragments(self, count: int, kind: int, via: int) -> int:
        with self._turn:
            fragments = int(lib.gradwire_fragments(self._opened(), count, kind, via))
        if count and not fragments:  # of arguments that are right: this is a child of the process
            raise error_of(ForkedError.code, self.rank, text_of(lib.gradwire_last_error()))
        return fragments

    def _opened(self) -> Any:
        """The library's job."""
        if self._job is None:
            raise ClosedError(f"rank {self.rank}: the job was closed")
        return self._job

    def _error(self, code: int) -> Error | None:
        """What the library has just told this thread."""
        return error_of(code, self._rank, text_of(lib.gradwire_last_error())) if code else None

    def _take(self) -> None:
        """Ends the calls that have ended. With the lock."""
        done = ffi.new("int *")
        for call in list(self._calls):
            if call._number[0] and self._job is not None:
                error = self._error(lib.gradwire_test(self._job, call._number[0], done))
                if done[0] or error:
                    del self._calls[call]
                    call._end(error)

    def _look(self, call: Call) -> bool:
        with self._turn:
            self._take()
            return call._has_ended

    def _wait_until(self, is_over: Callable[[], bool]) -> None:
        """Takes what has ended until it is over; one thread polls, the others wait for it."""
        while True:
            with self._turn:
                self._take()
                if is_over():
                    return
                if self._is_polled:
                    self._turn.wait()
                    continue
                self._is_polled = True
            try:
                self._poll.poll(_LOOK_MS)
            finally:
                with self._turn:
                    self._is_polled = False
                    self._turn.notify_all()

    def _open(self, options: Any, kept: list[Any]) -> Any:
        """Opens the library's job; the line about what went wrong is of the thread that does so."""
        place = ffi.new("gradwire **")
        error = self._error(lib.gradwire_open(options, place))
        if error:
            raise error
        kept.clear()
        return place[0]

    def _close(self, patience_s: float | None) -> None:
        """Leaves; if it takes longer than that, somebody else waits for the end."""
        with self._turn:
            job, self._job = self._job, None
            calls, self._calls = self._calls, {}
        if job is None:
            return

        def leave() -> None:
            lib.gradwire_close(job)
            with self._turn:
                for call in calls:
                    call._end(ClosedError(f"rank {self.rank}: the job was closed"))
                self._turn.notify_all()
            _open_jobs.discard(self)

        with contextlib.suppress(FutureTimeoutError):
            _apart(leave).result(patience_s)


# Jobs live until they are closed: the library works with the memory of their calls.
_open_jobs: set[Job] = set()
