"""Calling `run` of one instance: a text in, a text or a provider-error out.

Speaks to wasmtime's C interface directly, because the Python one reads the function's type anew on every call (two
thirds of a call's time). Sound because a module's `run` was held against the interface when it was mapped. Every value
that the C side allocates is given back on every path.
"""

import ctypes
from typing import Any

from wasmtime import Store, WasmtimeError
from wasmtime import _ffi as ffi
from wasmtime.component import Func

from ipc.messages.calling import ProviderFailure

MAX_MESSAGE_BYTES = 2000
MAX_DETAILS_BYTES = 4000

_STRING = ffi.WASMTIME_COMPONENT_STRING.value


class TooLong(Exception):
    """The provider's answer has more bytes than the caller takes; it was not read."""


def call_entry(store: Store, entry: Func, text: str, max_bytes: int) -> str | ProviderFailure:
    """Run to the end. Raises WasmtimeError for a trap of any kind, TooLong for an answer over `max_bytes`."""
    argument = ffi.wasmtime_component_val_t()
    result = ffi.wasmtime_component_val_t()
    data = text.encode()
    argument.kind = _STRING
    ffi.wasm_byte_vec_new(ctypes.byref(argument.of.string), len(data), _bytes_of(data))
    try:
        error = ffi.wasmtime_component_func_call(
            ctypes.byref(entry._func), store._context(), ctypes.byref(argument), 1, ctypes.byref(result), 1
        )
    finally:
        ffi.wasmtime_component_val_delete(ctypes.byref(argument))
    if error:
        raise WasmtimeError._from_ptr(error)
    try:
        payload = result.of.result.val.contents.of
        if result.of.result.is_ok:
            if payload.string.size > max_bytes:
                raise TooLong
            return _text(payload.string, max_bytes)
        return _failure(payload.record)
    finally:
        ffi.wasmtime_component_val_delete(ctypes.byref(result))


def _bytes_of(data: bytes) -> Any:
    return (ctypes.c_ubyte * len(data)).from_buffer_copy(data)


def _text(name: Any, cap: int) -> str:
    """A string of the C interface, cut at `cap` bytes. Empty ones have no address to read."""
    size = min(name.size, cap)
    return ctypes.string_at(name.data, size).decode("utf-8", "ignore") if size else ""


def _failure(record: Any) -> ProviderFailure:
    """provider-error: kind, message, details, retryable, in the order of the WIT."""
    kind, message, details, retryable = (record.data[index].val.of for index in range(4))
    shown = None
    if details.option:
        given = details.option.contents.of.string
        shown = _text(given, MAX_DETAILS_BYTES) if given.size <= MAX_DETAILS_BYTES else None
    return ProviderFailure(
        kind=_text(kind.enumeration, 64),
        message=_text(message.string, MAX_MESSAGE_BYTES),
        details=shown,
        retryable=bool(retryable.boolean),
    )
