"""Tensors on a device, a GPU above all, take part in calls through memory of the host.

What the device has computed is copied out by a stream of its own, results are copied back by
another: beside what it computes, and beside the network's part of other tensors. No thread of the
caller waits for copies. Calls start in the order in which tensors were handed over, as they must on
all ranks alike.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from .errors import ClosedError, InvalidError
from .works import Outcome


def is_on_host(tensor: torch.Tensor) -> bool:
    return bool(tensor.device.type == "cpu")


class Device:
    """One device, and copies between it and pinned memory of the host."""

    def __init__(self, device: torch.device) -> None:
        module: Any = getattr(torch, device.type, None)
        if not hasattr(module, "Stream") or not hasattr(module, "current_stream"):
            raise InvalidError(f"gradients are on {device}, from where none can be sent")
        self.device = device
        self._module = module
        self._out = module.Stream(device)
        self._back = module.Stream(device)
        # Of CUDA's events, others would be waited for by a core that looks.
        self._how = {"blocking": True} if device.type == "cuda" else {}

    def outcome(self, name: str, tensor: torch.Tensor) -> Outcome:
        return Outcome(name, tensor, [self.device])

    def memory(self, tensor: torch.Tensor) -> torch.Tensor:
        """Of the host, for as many elements."""
        return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)

    def fetch(self, tensor: torch.Tensor, host: torch.Tensor) -> Callable[[], None]:
        """Begins to copy what the kernels so far will make of a tensor. What it returns waits."""
        self._out.wait_stream(self._module.current_stream(self.device))
        with self._module.stream(self._out):
            host.copy_(tensor, non_blocking=True)
        return self._end_of(self._out)

    def put(self, host: torch.Tensor, tensor: torch.Tensor) -> None:
        """Copies back, and waits, so that whatever reads the tensor from now on has the result."""
        with self._module.stream(self._back):
            tensor.copy_(host, non_blocking=True)
        self._end_of(self._back)()

    def _end_of(self, stream: Any) -> Callable[[], None]:
        """A function that waits for what the stream has been given so far."""
        event = stream.record_event(self._module.Event(**self._how))
        return event.synchronize  # type: ignore[no-any-return]


# Starts a call with a tensor of the host, whose end is told by the outcome after a last function.
Begin = Callable[[torch.Tensor, Outcome, Callable[[], None]], None]


class Staging:
    """Calls of one job with tensors wherever they are."""

    def __init__(self) -> None:
        self._turns = ThreadPoolExecutor(1, "gradwire")
        self._devices: dict[torch.device, Device] = {}
        self._free: dict[Any, list[torch.Tensor]] = {}

    def close(self) -> None:
        """After what was handed over."""
        self._turns.shutdown()

    def run(
        self, name: str, tensor: torch.Tensor, begin: Begin, finish: Callable[[], None]
    ) -> Outcome:
        """A call with a tensor, in its turn. The tensor has the result when the outcome is told."""
        if is_on_host(tensor):
            outcome = Outcome(name, tensor)
            if self._devices:
                self._submit(lambda: begin(tensor, outcome, finish), outcome)
            else:
                begin(tensor, outcome, finish)
            return outcome
        if tensor.device not in self._devices:
            self._devices[tensor.device] = Device(tensor.device)
        device = self._devices[tensor.device]
        outcome = device.outcome(name, tensor)
        free = self._free.setdefault((tensor.device, tensor.shape, tensor.dtype), [])
        host = free.pop() if free else device.memory(tensor)
        copied = device.fetch(tensor, host)

        def put_back() -> None:
            device.put(host, tensor)
            free.append(host)
            finish()

        def start() -> None:
            copied()
            begin(host, outcome, put_back)

        self._submit(start, outcome)
        return outcome

    def _submit(self, start: Callable[[], None], outcome: Outcome) -> None:
        try:
            self._turns.submit(self._start, start, outcome)
        except RuntimeError as error:
            raise ClosedError("the job was closed") from error

    def _start(self, start: Callable[[], None], outcome: Outcome) -> None:
        try:
            start()
        except Exception as error:
            outcome.end(error)
