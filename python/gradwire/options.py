"""Options by keyword, for who checks types: names and words are those of the header.

What an option does is explained there. A new one works at once, by its name; a line here tells
type checkers, and a test compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from .parts import Parts

Op = Literal["sum", "average", "min", "max", "product"]
Via = Literal["ina", "ps", "ring", "default"]
Importance = Literal["all", "means", "values", "worth"]


class JobOptions(TypedDict, total=False):
    """Of a job; what is left out, or None, is as the environment says, or the default."""

    job: str | None
    rank: int | None
    world: int | None
    join: str | None
    server: str | None
    switch: str | None
    bind: str | None
    key_file: str | PathLike[str] | None
    authenticate: bool | None
    via: Via | None
    deadline_ms: int | None
    values: int | None
    window: int | None
    cc: str | None
    lb: str | None
    paths: int | None
    rate_bps: int | None
    announce: str | None
    signals: str | None
    largest: int | None
    insecure_key_file: bool | None
    encrypt: bool | None
    spin_us: int | None
    urgency: str | None
    multicast: str | None
    threads: int | None


class CallOptions(TypedDict, total=False):
    """Of one call; what is left out, or None, is the default."""

    via: Via | None
    bound: float | None
    bound_pull: float | None
    layer: int | None
    layers: int | None
    importance: Importance | None
    important_first: bool | None
    keeps_own: bool | None  # for experiments: what ranks get then differs
    worth: Sequence[float] | None  # of the fragments that this rank sends
    parts: Parts | None
