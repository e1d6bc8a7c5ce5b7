"""Sums of gradients over the processes of a training job, added up inside the network.

    import gradwire

    with gradwire.Job() as job:
        job.allreduce(gradients, op="average")

Job is everything that a process can ask of the others; docs/python.md begins from nothing.
gradwire.torch is a backend of torch.distributed, ddp_hook carries the gradients of one model
(docs/pytorch.md); what needs PyTorch is imported when it is asked for.
"""

from typing import Any

from .errors import (
    BusyError,
    ClosedError,
    Error,
    ForkedError,
    InvalidError,
    NoMemoryError,
    PeerError,
    ResultOverflowError,
    SystemRefusedError,
    TimedOutError,
    UnsupportedError,
)
from .job import Call, Job
from .memory import Array
from .native import lib, text_of
from .options import CallOptions, Importance, JobOptions, Op, Via
from .parts import Parts

__version__ = text_of(lib.gradwire_version())

__all__ = [
    "Array",
    "BusyError",
    "Call",
    "CallOptions",
    "ClosedError",
    "Error",
    "ForkedError",
    "Importance",
    "InvalidError",
    "Job",
    "JobOptions",
    "NoMemoryError",
    "Op",
    "Parts",
    "PeerError",
    "ResultOverflowError",
    "SystemRefusedError",
    "TimedOutError",
    "UnsupportedError",
    "Via",
]


def __getattr__(name: str) -> Any:
    if name in ("HookState", "ddp_hook"):
        from . import hook  # noqa: PLC0415 - needs PyTorch

        return getattr(hook, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
