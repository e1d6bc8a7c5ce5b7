"""Memory of the caller's, as the library takes it: address, size and type of elements.

Arrays come by the buffer protocol or, as tensors do, by DLPack; nothing is copied. Whoever holds a
Memory keeps the array from being freed or resized.
"""

from __future__ import annotations

import ctypes
import re
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from .errors import InvalidError
from .native import ffi, words

if TYPE_CHECKING:
    from typing_extensions import Buffer


class SupportsDLPack(Protocol):
    """An array of another library's, such as PyTorch's tensors."""

    def __dlpack__(self) -> Any: ...
    def __dlpack_device__(self) -> Any: ...


Array: TypeAlias = "Buffer | SupportsDLPack"

TYPES = words("type")
BYTES = TYPES["uint8"]

# What a format of the buffer protocol, or a type code of DLPack, is called before its bits.
_OF_FORMAT = dict.fromkeys("efd", "float") | dict.fromkeys("ilq", "int") | {"B": "uint"}
_OF_DLPACK = {0: "int", 1: "uint", 2: "float", 4: "bfloat"}

# In formats: names of fields, and elements that mean something to this process alone. Z is a text
# of ctypes, unless it makes the type behind it complex.
_FIELD = re.compile(":[^:]*:")
_POINTER = re.compile("[OPXz&]|Z(?![fdg])")

_DEVICES = (1, 3)  # of DLPack: the processor's memory, and that which a GPU has pinned

# Holds the interpreter's lock, as Python's own functions need it.
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_capsule_pointer.restype = ctypes.c_void_p


class Memory:
    """An array of the caller's. `role` is what messages call it."""

    def __init__(self, array: Array, role: str, *, writes: bool = False) -> None:
        self.role = role
        self.pointer: Any  # what the library gets
        self.bytes: int
        self._kept: Any  # the array stays where it is as long as this exists
        self._is_buffer = False
        try:
            with memoryview(array) as view:  # type: ignore[arg-type]
                name, item = self._take_buffer(view, array, writes)
        except InvalidError:
            raise
        except (TypeError, ValueError, BufferError) as error:
            if not hasattr(array, "__dlpack__"):
                raise InvalidError(
                    f"{role} is {type(array).__name__}: neither the buffer protocol nor DLPack"
                    f" gives access to it ({error})"
                ) from error
            name, item = self._take_tensor(array)
        self.count = self.bytes // item if item else 0
        self.name = name
        self._type = TYPES.get(name)

    def _take_buffer(self, view: memoryview, array: Array, writes: bool) -> tuple[str, int]:
        if writes and view.readonly:
            raise InvalidError(f"{self.role} is read-only")
        if not view.c_contiguous:
            raise InvalidError(f"{self.role} is not contiguous: copy it first")
        if _POINTER.search(_FIELD.sub("", view.format)):
            raise InvalidError(
                f"{self.role} has elements {view.format!r}: Python objects, or pointers, mean"
                " nothing to another process"
            )
        self.pointer = self._kept = ffi.from_buffer(array)
        self._is_buffer = True
        self.bytes = view.nbytes
        form = view.format.lstrip("@=<")
        kind = _OF_FORMAT.get(form)
        return (f"{kind}{8 * view.itemsize}" if kind else view.format), view.itemsize

    def _take_tensor(self, array: Any) -> tuple[str, int]:
        try:
            device = array.__dlpack_device__()[0]
            # Nobody renames the capsule, so it is what gives the tensor back, when it goes.
            self._kept = array.__dlpack__() if device in _DEVICES else None
        except Exception as error:  # each library has others
            raise InvalidError(
                f"{self.role} is {type(array).__name__}: DLPack gives no access to it ({error})"
            ) from error
        if self._kept is None:
            raise InvalidError(f"{self.role} is on device {int(device)} of DLPack: copy it first")
        tensor: Any = ffi.cast("DLTensor *", _capsule_pointer(self._kept, b"dltensor"))
        kind = tensor.dtype
        item, count, is_contiguous = kind.bits * kind.lanes // 8, 1, True
        for axis in reversed(range(tensor.ndim)):
            length = tensor.shape[axis]
            if tensor.strides and length > 1 and tensor.strides[axis] != count:
                is_contiguous = False
            count *= length
        if count and not is_contiguous:
            raise InvalidError(f"{self.role} is not contiguous: copy it first")
        self.pointer = ffi.cast("char *", tensor.data) + tensor.byte_offset
        self.bytes = count * item
        name = _OF_DLPACK.get(kind.code) if kind.lanes == 1 else None
        return (f"{name}{kind.bits}" if name else f"DLPack's type {kind.code}"), item

    @property
    def type(self) -> int:
        """The type of elements that are to be computed with."""
        if self._type is None:
            raise InvalidError(
                f"{self.role} has elements {self.name!r}: none of {', '.join(TYPES)}"
            )
        return self._type

    def moved(self) -> tuple[int, int]:
        """Count and type of elements that are only moved: of a type that is not known, of bytes."""
        return (self.bytes, BYTES) if self._type is None else (self.count, self._type)

    def must_fit(self, other: Memory, times: int = 1) -> None:
        """It holds `times` as much as the other, of the same type."""
        if self.name != other.name or self.bytes != times * other.bytes:
            raise InvalidError(
                f"{self.role} has {self.count} elements of {self.name}: {times * other.count} of"
                f" {other.name} are expected"
            )

    def release(self) -> None:
        """The array is the caller's again. The address must not be used any longer."""
        if self._is_buffer:
            ffi.release(self._kept)
        self.pointer = self._kept = None
        self._is_buffer = False

    # Before the collector breaks up a cycle that has both this and the array: there it would meet
    # an array that is still lent.
    __del__ = release
