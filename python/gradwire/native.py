"""The C library, as its own header describes it.

The header lies beside the library, so structures, words of enumerations and functions have no
second description here: what a later version adds is known at once.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cffi import FFI

from .errors import InvalidError

# Of DLPack 0.8, which every version since can still hand out.
_DLPACK = """
typedef struct {
    void *data;
    struct { int32_t device_type, device_id; } device;
    int32_t ndim;
    struct { uint8_t code, bits; uint16_t lanes; } dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} DLTensor;
"""


def _declarations(header: str) -> str:
    """What is left of a header behind the preprocessor."""
    text = re.sub(r"#ifdef __cplusplus.*?#endif", "", header, flags=re.S)
    return re.sub(r"^#.*$", "", text, flags=re.M).replace("GRADWIRE_API ", "")


_FOLDER = Path(__file__).parent
ffi: Any = FFI()
ffi.cdef(_declarations((_FOLDER / "gradwire.h").read_text(encoding="utf-8")) + _DLPACK)
# It stays when the interpreter ends: threads of jobs that nobody closed still run in it.
lib: Any = ffi.dlopen(str(_FOLDER / "libgradwire.so"), ffi.RTLD_NOW | ffi.RTLD_NODELETE)


def text_of(pointer: Any) -> str:
    """A text of the library's."""
    return str(ffi.string(pointer), errors="replace")


@functools.cache
def words(enumeration: str) -> dict[str, int]:
    """Words for the values of `enum gradwire_ENUMERATION`: GRADWIRE_VIA_RING is "ring"."""
    values = ffi.typeof(f"enum gradwire_{enumeration}").elements
    own = f"{enumeration.upper()}_"
    return {
        name.removeprefix("GRADWIRE_").removeprefix(own).lower(): value
        for value, name in sorted(values.items())
    }


def value_of(enumeration: str, word: str) -> int:
    """The value for a word."""
    known = words(enumeration)
    if not isinstance(word, str) or word not in known:
        raise InvalidError(f"{enumeration} is {word!r}: one of {', '.join(known)} is expected")
    return known[word]


def _converted(field: Any, value: Any, kept: list[Any]) -> Any:
    """A value in the type of its field. `kept` takes memory that must outlive the structure."""
    if field.type.kind == "enum":
        return value_of(field.type.cname.removeprefix("enum gradwire_"), value)
    if field.type.kind == "pointer" and field.type.item.cname == "char":
        text = os.fsencode(value)
        if b"\0" in text:  # C's would end there
            raise ValueError("a text without zero bytes is expected")
        kept.append(ffi.new("char[]", text))
        return kept[-1]
    return value


def fill(structure: Any, values: Mapping[str, Any]) -> list[Any]:
    """Sets fields of a structure; None leaves the default. Returns memory that must live as long.

    A field whose name is a word of C's, as `switch_` is, goes by that word.
    """
    kept: list[Any] = []
    fields = dict(ffi.typeof(structure).item.fields)
    del fields["size"]
    for name, value in values.items():
        own = name if name in fields else name + "_"
        if own not in fields:
            known = ", ".join(field.removesuffix("_") for field in fields)
            raise TypeError(f"there is no option {name!r}; there are {known}")
        if value is None:
            continue
        try:
            setattr(structure, own, _converted(fields[own], value, kept))
        except InvalidError:
            raise
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidError(f"{name} is {value!r}: {error}") from error
    return kept
