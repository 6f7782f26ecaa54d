"""The types of the provider interface: each reads and writes its values in wasmtime's C structures.

A record is read as a dictionary with `_` for `-` in its names, and written from an object with such attributes; of a
result, a `ProviderFailure` is the error. A list of more than MAX_ITEMS traps before an item of it is read: half a
million empty headers take many seconds, which no deadline of a guest ends. Strings of a guest are UTF-8: the runtime
holds them against it.
"""

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

from wasmtime import WasmtimeError
from wasmtime import _ffi as ffi

from ipc.messages.calling import ProviderFailure

MAX_ITEMS = 1000
"""The bound of a list. Guests hand over only lists of headers, which are far shorter."""

Reader = Callable[[Any], Any]
"""Makes a Python value of the union of a C value. Raises WasmtimeError for a list that is too long."""
Writer = Callable[[Any, Any], None]
"""Fills a C value from a Python one."""

_byref, _string_at = ctypes.byref, ctypes.string_at
_BYTES = ctypes.POINTER(ctypes.c_ubyte)
_Value = ffi.wasmtime_component_val_t
_new_value = ffi.wasmtime_component_val_new


class Shape(NamedTuple):
    """A type: how it is read, and how it is written."""

    read: Reader
    write: Writer


def _put(bytes_of: Any, data: bytes) -> None:
    """Copy into a byte vector, which the C side owns."""
    ffi.wasm_byte_vec_new(_byref(bytes_of), len(data), ctypes.cast(ctypes.c_char_p(data), _BYTES))


def _text(kind: Any, member: str) -> Shape:
    number = kind.value

    def read(of: Any) -> str:
        given = getattr(of, member)
        size = given.size
        return _string_at(given.data, size).decode() if size else ""

    def write(value: Any, text: str) -> None:
        data = text.encode()
        value.kind = number
        _put(getattr(value.of, member), data)

    return Shape(read, write)


def _scalar(kind: Any, member: str) -> Shape:
    number = kind.value

    def write(value: Any, given: Any) -> None:
        value.kind = number
        setattr(value.of, member, given)

    return Shape(lambda of: getattr(of, member), write)


def _list(item: Shape) -> Shape:
    number = ffi.WASMTIME_COMPONENT_LIST.value

    def read(of: Any) -> list[Any]:
        given = of.list
        size = given.size
        if size > MAX_ITEMS:
            raise WasmtimeError(f"a host call was given a list of more than {MAX_ITEMS} items")
        data, one = given.data, item.read
        return [one(data[at].of) for at in range(size)]

    def write(value: Any, items: Any) -> None:
        made = value.of.list
        ffi.wasmtime_component_vallist_new_uninit(_byref(made), len(items))
        data, one = made.data, item.write
        for at, given in enumerate(items):
            one(data[at], given)
        value.kind = number

    return Shape(read, write)


def _tuple(*parts: Shape) -> Shape:
    number, size = ffi.WASMTIME_COMPONENT_TUPLE.value, len(parts)
    reads, writes = [part.read for part in parts], [part.write for part in parts]

    def read(of: Any) -> tuple[Any, ...]:
        data = of.tuple.data
        return tuple([one(data[at].of) for at, one in enumerate(reads)])

    def write(value: Any, items: Any) -> None:
        made = value.of.tuple
        ffi.wasmtime_component_valtuple_new_uninit(_byref(made), size)
        data = made.data
        for at, one in enumerate(writes):
            one(data[at], items[at])
        value.kind = number

    return Shape(read, write)


def record_shape(fields: list[tuple[str, Shape]]) -> Shape:
    number, size = ffi.WASMTIME_COMPONENT_RECORD.value, len(fields)
    reads = [(name.replace("-", "_"), part.read) for name, part in fields]
    writes = [(name.encode(), name.replace("-", "_"), part.write) for name, part in fields]

    def read(of: Any) -> dict[str, Any]:
        data = of.record.data
        return {name: one(data[at].val.of) for at, (name, one) in enumerate(reads)}

    def write(value: Any, given: Any) -> None:
        made = value.of.record
        ffi.wasmtime_component_valrecord_new_uninit(_byref(made), size)
        data = made.data
        for at, (encoded, name, one) in enumerate(writes):
            entry = data[at]
            _put(entry.name, encoded)
            one(entry.val, getattr(given, name))
        value.kind = number

    return Shape(read, write)


def _option(part: Shape) -> Shape:
    number = ffi.WASMTIME_COMPONENT_OPTION.value

    def read(of: Any) -> Any:
        given = of.option
        return part.read(given.contents.of) if given else None

    def write(value: Any, given: Any) -> None:
        value.of.option = None if given is None else _boxed(part.write, given)
        value.kind = number

    return Shape(read, write)


def _result(ok: Shape, err: Shape) -> Shape:
    number = ffi.WASMTIME_COMPONENT_RESULT.value

    def write(value: Any, given: Any) -> None:
        is_ok = not isinstance(given, ProviderFailure)
        part = ok if is_ok else err
        made = value.of.result
        made.val = None if part is NOTHING else _boxed(part.write, given)
        made.is_ok = is_ok
        value.kind = number

    return Shape(_unread, write)


def _boxed(write: Writer, given: Any) -> Any:
    """A value on the heap of the C side, which owns it."""
    made = _Value()
    write(made, given)
    return _new_value(_byref(made))


def _unread(_of: Any) -> Any:
    raise WasmtimeError("no host function is given a value of this type")


NOTHING = Shape(_unread, lambda _value, _given: None)
ENUM = _text(ffi.WASMTIME_COMPONENT_ENUM, "enumeration")
GENERIC: dict[str, Callable[..., Shape]] = {"list": _list, "tuple": _tuple, "option": _option, "result": _result}
SCALARS = {
    "string": _text(ffi.WASMTIME_COMPONENT_STRING, "string"),
    "bool": _scalar(ffi.WASMTIME_COMPONENT_BOOL, "boolean"),
    "u16": _scalar(ffi.WASMTIME_COMPONENT_U16, "u16"),
    "u32": _scalar(ffi.WASMTIME_COMPONENT_U32, "u32"),
    "u64": _scalar(ffi.WASMTIME_COMPONENT_U64, "u64"),
}
