"""One class for each error of the library.

A new error code is one class here; a test compares them with the header.
"""

from __future__ import annotations


class Error(Exception):
    """One line: what is wrong, and of what the library reports by which rank, and whom it is about.

    Each class is of one code of `enum gradwire_error`; those that Python has a like of are both.
    """

    code = 0


class InvalidError(Error, ValueError):
    """An argument or option is out of its range. Does no harm to the job."""

    code = -1


class NoMemoryError(Error, MemoryError):
    """Out of memory; of a push or pull, of the rank that the line names."""

    code = -2


class SystemRefusedError(Error, OSError):
    """The system refused something: a socket, a thread."""

    code = -3


class TimedOutError(Error, TimeoutError):
    """No progress for `deadline_ms`; of a job that opens, somebody did not come."""

    code = -4


class PeerError(Error, ConnectionError):
    """A worker, server or switch is lost, or refuses."""

    code = -5


class ResultOverflowError(Error, OverflowError):
    """A result of integers does not fit their type."""

    code = -6


class UnsupportedError(Error):
    """The package has no such call."""

    code = -7


class ClosedError(Error):
    """The job was closed, or an earlier failure has ended it."""

    code = -8


class ForkedError(Error):
    """Called in a child of the process that opened the job."""

    code = -9


class BusyError(Error):
    """Too many calls are in work. The package waits for one instead of raising it."""

    code = -10


CLASSES: dict[int, type[Error]] = {kind.code: kind for kind in Error.__subclasses__()}


def error_of(code: int, rank: int, text: str) -> Error:
    """An error of its class, or of the general one where a newer library has more codes.

    Before a job is open the rank may be what is wrong: then it is below 0, and nobody's.
    """
    return CLASSES.get(code, Error)(text if rank < 0 else f"rank {rank}: {text}")
