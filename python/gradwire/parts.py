"""What a call with a bound has lost, and what its fragments are worth."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from .errors import InvalidError
from .native import ffi

_BITS = 64  # of a word of `arrived`


class Parts:
    """Where a call says what is missing; told when that has ended, if it has not failed.

    Of one call at a time: another that is started meanwhile is refused.
    """

    def __init__(self) -> None:
        self.fragment = 0  # elements of a fragment (of a message: bytes)
        self.count = 0  # fragments of the tensor, or of the message as it was sent
        self.missing = 0  # of these
        self._arrived: list[int] = []
        self.contributors: list[int] = []  # to each: ranks or pushes; of a message nobody counts
        self._in_work = threading.Lock()  # held from the start of a call to its end

    @property
    def arrived(self) -> list[bool]:
        """Whether each fragment is there that this rank gets; of a send or push nothing."""
        return [bool(self._arrived[i // _BITS] >> i % _BITS & 1) for i in range(self.count)]


class Told:
    """What the library writes for `parts` while a call is in work; whose that is keeps this."""

    def __init__(self, parts: Parts, room: int) -> None:
        """Makes room for so many fragments."""
        if not isinstance(parts, Parts):
            raise InvalidError(f"parts is {type(parts).__name__}: a Parts is expected")
        self._arrays = (ffi.new("uint64_t[]", -(-room // _BITS)), ffi.new("uint16_t[]", room))
        arrived, contributors = self._arrays
        self.struct: Any = ffi.new(
            "struct gradwire_parts *",
            {"room": room, "arrived": arrived, "contributors": contributors},
        )
        if not parts._in_work.acquire(blocking=False):
            raise InvalidError("parts is of another call, which has not ended")
        self._parts = parts

    def end(self, has_failed: bool) -> None:
        """Hands over what the call has told, and lets others have the parts."""
        parts, told = self._parts, self.struct
        if not has_failed:
            parts.fragment, parts.count, parts.missing = told.fragment, told.count, told.missing
            parts._arrived, parts.contributors = (list(array) for array in self._arrays)
            del parts.contributors[parts.count :]
        parts._in_work.release()


class Worth:
    """What each fragment is worth, in numbers that are there before the library asks for them."""

    def __init__(self, worth: Sequence[float], count: int) -> None:
        try:
            given = len(worth)
        except TypeError as error:
            raise InvalidError(
                f"worth is {type(worth).__name__}: a sequence of numbers is expected"
            ) from error
        if given != count:
            raise InvalidError(f"worth is of {given} fragments: this rank sends {count}")
        numbers = self._numbers = ffi.new("double[]", count)
        for i in range(count):
            try:
                numbers[i] = worth[i]
            except (TypeError, ValueError, OverflowError) as error:
                raise InvalidError(f"worth of fragment {i} is no number: {error}") from error
        self.interrupt: BaseException | None = None  # Ctrl-C, in the middle of the call's start
        self.function = ffi.callback(
            "gradwire_worth *",
            lambda fragment, size, index, context: numbers[index],
            onerror=self._note,
        )

    def _note(self, kind: type[BaseException], error: BaseException, trace: Any) -> None:
        self.interrupt = error
