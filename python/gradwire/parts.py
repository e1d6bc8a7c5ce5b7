"""What a call with a bound has lost, and what its fragments are worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .errors import InvalidError
from .native import ffi

_BITS = 64  # of a word of `arrived`


class Parts:
    """Where a call says what is missing; of one call at a time, and told when that has ended."""

    def __init__(self) -> None:
        self.fragment = 0  # elements of a fragment (of a message: bytes)
        self.count = 0  # fragments of the tensor, or of the message as it was sent
        self.missing = 0  # of these
        self._arrived: list[int] = []
        self.contributors: list[int] = []  # to each: ranks or pushes; of a message nobody counts
        self._struct: Any = None
        self._arrays: tuple[Any, Any] = (None, None)

    @property
    def arrived(self) -> list[bool]:
        """Whether each fragment is there that this rank gets; of a send or push nothing."""
        return [bool(self._arrived[i // _BITS] >> i % _BITS & 1) for i in range(self.count)]

    def begin(self, room: int) -> Any:
        """Makes room for so many fragments, and hands out the library's structure."""
        self._arrays = (ffi.new("uint64_t[]", -(-room // _BITS)), ffi.new("uint16_t[]", room))
        arrived, contributors = self._arrays
        self._struct = ffi.new(
            "struct gradwire_parts *",
            {"room": room, "arrived": arrived, "contributors": contributors},
        )
        return self._struct

    def end(self) -> None:
        """Takes over what the call has told."""
        told = self._struct
        self.fragment, self.count, self.missing = told.fragment, told.count, told.missing
        self._arrived, self.contributors = (list(array) for array in self._arrays)
        del self.contributors[self.count :]


def worth_callback(worth: Sequence[float], count: int) -> Any:
    """The library's function for what each of `count` fragments is worth."""
    if len(worth) != count:
        raise InvalidError(f"worth is of {len(worth)} fragments: this rank sends {count}")
    return ffi.callback("gradwire_worth *", lambda fragment, size, index, context: worth[index])
