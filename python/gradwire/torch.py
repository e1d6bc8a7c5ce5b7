"""torch.distributed over Gradwire: a process-group backend for tensors on the CPU.

    import gradwire.torch
    torch.distributed.init_process_group("gradwire")

A group opens its job at its first call, so that subsets which never speak cost nothing. One thread
of each group finishes calls in the order in which they end, and completes their futures: it copies
results to where they belong, and then tells who waits. What the library does not do goes to a Gloo
group inside, which is made when it is first needed and named in the log.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from .errors import InvalidError, UnsupportedError
from .job import Call, Job
from .options import JobOptions, Op
from .works import Finisher, Outcome, Work, agree, deadline_ms, meet, say_once, tell_where

_OPS: dict[Op, Any] = {
    "sum": dist.ReduceOp.SUM,
    "average": dist.ReduceOp.AVG,
    "min": dist.ReduceOp.MIN,
    "max": dist.ReduceOp.MAX,
    "product": dist.ReduceOp.PRODUCT,
}
_TYPES = {
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.int32,
    torch.int64,
    torch.uint8,
}
# What goes to Gloo altogether, by the names that versions of PyTorch have for it, and Gloo's own.
_DELEGATED = {
    "all_to_all_single": "alltoall_base",
    "allgather_coalesced": "allgather_coalesced",
    "alltoall": "alltoall",
    "alltoall_base": "alltoall_base",
    "gather": "gather",
    "scatter": "scatter",
}
_TAGS_END = 1 << 16  # of PyTorch; the library's have 8 bits more, to tell messages of one tag apart
_MESSAGES = 1 << 8


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory, or a copy if that is not contiguous, or is to be read with other signs."""
    if tensor.layout != torch.strided or tensor.is_quantized:
        raise InvalidError(f"a tensor is {tensor.dtype}, {tensor.layout}: a dense one is expected")
    dense = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return dense.as_strided((dense.numel(),), (1,))  # of one element it may have been any


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """For what is only moved, which may be of any type."""
    return _flat(tensor).view(torch.uint8)


def _put_back(flats: list[torch.Tensor], tensors: list[torch.Tensor]) -> None:
    """Copies results to those tensors that have other memory."""
    for flat, tensor in zip(flats, tensors, strict=True):
        if flat.data_ptr() != tensor.data_ptr():
            tensor.detach().copy_(flat.view(tensor.dtype).view(tensor.shape))


class ProcessGroupGradwire(dist.ProcessGroup):
    """A group of ranks that are a job. Its methods are those that torch.distributed calls."""

    def __init__(self, store: dist.Store, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        self._store = store
        self._rank = rank
        self._size = size
        self._timeout = timeout
        self._finisher: Finisher | None = None
        self._opening = threading.Lock()
        self._gloo_group: Any = None
        self._name = ""
        self._description = ""
        self._messages: dict[tuple[str, int, int], int] = {}  # by direction, rank and tag

    # Who we are.

    def rank(self) -> int:
        return self._rank

    def size(self) -> int:
        return self._size

    def name(self) -> str:
        return "gradwire"

    getBackendName = name  # noqa: N815
    getRank = rank  # noqa: N815
    getSize = size  # noqa: N815

    def getGroupName(self) -> str:  # noqa: N802
        return self._name

    def setGroupName(self, name: str) -> None:  # noqa: N802
        self._name = name

    def getGroupDesc(self) -> str:  # noqa: N802
        return self._description

    def setGroupDesc(self, text: str) -> None:  # noqa: N802
        self._description = text

    @property
    def group_name(self) -> str:
        return self._name

    @property
    def group_desc(self) -> str:
        return self._description

    _set_group_name = setGroupName
    _set_group_desc = setGroupDesc

    @functools.cached_property
    def job(self) -> Job:
        """Opened at the first call, where the group's rank 0 says in the store."""
        options: JobOptions = {"rank": self._rank, "world": self._size}
        options["deadline_ms"] = deadline_ms(self._timeout)
        place = agree(self._store, self._rank, self._size, self._timeout)
        options = meet(place, options)
        job = Job(**options)
        tell_where(job, options)
        return job

    def shutdown(self) -> None:
        """Leaves the job; what is in work is finished first."""
        if self._finisher:
            self._finisher.close()
            self.job.close()
            self._finisher = None

    def abort(self) -> None:
        """Leaves the job at once."""
        if self._finisher:
            self.job.close()
            self._finisher.close()
            self._finisher = None

    # How calls go.

    def _run(
        self,
        calls: Callable[[], Sequence[Call]],
        tensors: Any,
        finish: Callable[[], None] = lambda: None,
    ) -> Work:
        with self._opening:  # of two threads one opens the job
            if not self._finisher:
                self._finisher = Finisher(self.job)

        def begin() -> Work:
            started = calls()
            name = started[0].name if started else ""
            return Work(started, Outcome(name, tensors), finish)

        return self._finisher.start(begin)

    @property
    def _gloo(self) -> Any:
        if self._gloo_group is None:
            self.barrier().wait()  # names who is lost, which the store does not
            store = dist.PrefixStore("gloo", self._store)
            self._gloo_group = dist.ProcessGroupGloo(store, self._rank, self._size, self._timeout)
        return self._gloo_group

    def _delegate(self, name: str, *arguments: Any, **more: Any) -> Any:
        say_once(f"{name} goes to Gloo")
        return getattr(self._gloo, name)(*arguments, **more)

    def _expect(self, call: str, tensor: torch.Tensor, count: int, kind: torch.dtype) -> None:
        if tensor.numel() != count or tensor.dtype != kind:
            raise InvalidError(
                f"rank {self._rank}: {call}: a tensor has {tensor.numel()} elements of"
                f" {tensor.dtype}: {count} of {kind} are expected"
            )

    def _expect_each(self, call: str, tensors: list[torch.Tensor], own: torch.Tensor) -> None:
        """A tensor for each rank, as large as our own."""
        if len(tensors) != self._size:
            raise InvalidError(
                f"rank {self._rank}: {call}: {len(tensors)} tensors are given:"
                f" {self._size} are expected, one for each rank"
            )
        for tensor in tensors:
            self._expect(call, tensor, own.numel(), own.dtype)

    # Collectives.

    def allreduce(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        return self._all_reduced("allreduce", tensors, opts)

    def allreduce_coalesced(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        return self._all_reduced("allreduce_coalesced", tensors, opts)

    def _all_reduced(self, name: str, tensors: list[torch.Tensor], opts: Any) -> Any:
        op = _op_of(opts, tensors)
        if op is None:
            return self._delegate(name, tensors, opts)
        flats = [_flat(tensor) for tensor in tensors]
        return self._run(
            lambda: [self.job.start_allreduce(flat, op=op) for flat in flats],
            tensors,
            lambda: _put_back(flats, tensors),
        )

    def reduce(self, tensors: list[torch.Tensor], opts: Any) -> Any:
        (tensor,), op = tensors, _op_of(opts, tensors)
        if op is None:
            return self._delegate("reduce", tensors, opts)
        flat, root = _flat(tensor), opts.rootRank
        return self._run(
            lambda: [self.job.start_reduce(flat, root=root, op=op)],
            tensors,
            lambda: _put_back([flat], tensors),
        )

    def broadcast(self, tensors: list[torch.Tensor], opts: Any) -> Any:
        (tensor,) = tensors
        flat, root = _bytes(tensor), opts.rootRank
        return self._run(
            lambda: [self.job.start_broadcast(flat, root=root)],
            tensors,
            lambda: _put_back([flat], tensors),
        )

    def allgather(
        self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any = None
    ) -> Any:
        (parts,), (given,) = outputs, inputs
        self._expect_each("all_gather", parts, given)
        every = torch.empty((self._size, *given.shape), dtype=given.dtype)

        def finish() -> None:
            for part, own in zip(parts, every, strict=True):
                part.detach().copy_(own.view(part.shape))

        return self._run(
            lambda: [self.job.start_allgather(_bytes(given), _bytes(every))], outputs, finish
        )

    def all_gather_single(self, output: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Any:
        return self.all_gather_single_coalesced([output], [given], opts)

    def all_gather_single_coalesced(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None
    ) -> Any:
        for output, given in zip(outputs, inputs, strict=True):
            self._expect("all_gather", output, self._size * given.numel(), given.dtype)
        flats = [_bytes(output) for output in outputs]
        pairs = list(zip(inputs, flats, strict=True))

        return self._run(
            lambda: [self.job.start_allgather(_bytes(given), flat) for given, flat in pairs],
            outputs,
            lambda: _put_back(flats, outputs),
        )

    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def reduce_scatter(
        self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any = None
    ) -> Any:
        (output,), (parts,) = outputs, inputs
        if _op_of(opts, outputs) is None:
            return self._delegate("reduce_scatter", outputs, inputs, opts)
        self._expect_each("reduce_scatter", parts, output)
        return self.reduce_scatter_single(output, torch.cat([_flat(part) for part in parts]), opts)

    def reduce_scatter_single(
        self, output: torch.Tensor, given: torch.Tensor, opts: Any = None
    ) -> Any:
        return self.reduce_scatter_single_coalesced([output], [given], opts)

    def reduce_scatter_single_coalesced(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None
    ) -> Any:
        op = _op_of(opts, outputs)
        if op is None:
            for output, given in zip(outputs[:-1], inputs[:-1], strict=True):
                self._delegate("_reduce_scatter_base", output, given, opts).wait()
            return self._delegate("_reduce_scatter_base", outputs[-1], inputs[-1], opts)
        flats = [_flat(output) for output in outputs]
        pairs = list(zip(inputs, flats, strict=True))

        return self._run(
            lambda: [
                self.job.start_reduce_scatter(_flat(given), flat, op=op) for given, flat in pairs
            ],
            outputs,
            lambda: _put_back(flats, outputs),
        )

    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def barrier(self, opts: Any = None) -> Any:
        return self._run(lambda: [self.job.start_barrier()], [])

    # Messages. Those of one tag between two ranks arrive in their order.

    def send(self, tensors: list[torch.Tensor], to: int, tag: int = 0) -> Any:
        (tensor,) = tensors
        if tensor.numel() == 0:
            return self._run(lambda: [], tensors)
        flat, own = _bytes(tensor), self._tag("send", to, tag)
        return self._run(lambda: [self.job.start_send(flat, to, own)], tensors)

    def recv(self, tensors: list[torch.Tensor], source: int, tag: int = 0) -> Any:
        (tensor,) = tensors
        if tensor.numel() == 0:
            return self._run(lambda: [], tensors)
        flat, own = _bytes(tensor), self._tag("receive", source, tag)
        return self._run(
            lambda: [self.job.start_receive(flat, source, own)],
            tensors,
            lambda: _put_back([flat], tensors),
        )

    def recv_anysource(self, tensors: list[torch.Tensor], tag: int = 0) -> Any:
        raise UnsupportedError(f"rank {self._rank}: recv from anybody: name the source")

    def _tag(self, direction: str, other: int, tag: int) -> int:
        if not 0 <= tag < _TAGS_END:
            raise InvalidError(f"rank {self._rank}: tag is {tag}: 0 to {_TAGS_END - 1}")
        key = (direction, other, tag)
        number = self._messages.get(key, 0)
        self._messages[key] = (number + 1) % _MESSAGES
        return tag * _MESSAGES + number


def _delegated(name: str) -> Callable[..., Any]:
    def method(self: ProcessGroupGradwire, *arguments: Any, **more: Any) -> Any:
        return self._delegate(name, *arguments, **more)

    return method


for _name, _own in _DELEGATED.items():
    setattr(ProcessGroupGradwire, _name, _delegated(_own))


def _op_of(opts: Any, tensors: list[torch.Tensor]) -> Op | None:
    """What the library calls the operation; None: it has none such, or not for such tensors."""
    if any(tensor.dtype not in _TYPES or tensor.layout != torch.strided for tensor in tensors):
        return None
    wanted = dist.ReduceOp.SUM if opts is None else opts.reduceOp
    return next((name for name, op in _OPS.items() if wanted == op), None)


def _create(store: dist.Store, rank: int, size: int, timeout: timedelta) -> ProcessGroupGradwire:
    return ProcessGroupGradwire(store, rank, size, timeout)


# PyTorch 1.13 has no word for devices yet.
_parameters = inspect.signature(dist.Backend.register_backend).parameters
_devices = {"devices": "cpu"} if "devices" in _parameters else {}
dist.Backend.register_backend("gradwire", _create, **_devices)
