"""How the runtime calls a host function: what a guest hands over is measured before anything is made of it.

The Python interface of wasmtime makes an object of every item of a list before any code of ours runs, and no deadline
ends it: half a million empty headers take it many seconds. Guarantees that a host function never sees a list of more
than MAX_ITEMS, and that such a call traps at once. What texts and lists may hold together is bounded by the runtime.
"""

import ctypes
from collections.abc import Callable
from typing import Any

from wasmtime import WasmtimeError
from wasmtime import _ffi as ffi
from wasmtime.component import LinkerInstance
from wasmtime.component._linker import FUNCTIONS, func_finalize, func_impl

MAX_ITEMS = 1000
"""Of a list. The only ones that guests hand over are headers, of which far fewer are ever sent."""

_LIST = ffi.WASMTIME_COMPONENT_LIST.value
_RECORD = ffi.WASMTIME_COMPONENT_RECORD.value


def define(instance: LinkerInstance, name: str, act: Callable[..., Any]) -> None:
    """Like `LinkerInstance.add_func`, for a function of the provider interface. Raises WasmtimeError."""
    encoded = name.encode()
    error = ffi.wasmtime_component_linker_instance_add_func(
        instance.ptr(), ctypes.create_string_buffer(encoded), len(encoded), _measured, FUNCTIONS.allocate(act),
        func_finalize,
    )  # fmt: skip
    if error:
        raise WasmtimeError._from_ptr(error)


def _is_measured(value: Any) -> bool:
    """True unless an argument, or a field of one that is a record, is a list that is too long."""
    if value.kind == _LIST:
        return bool(value.of.list.size <= MAX_ITEMS)
    if value.kind == _RECORD:
        record = value.of.record
        return all(_is_measured(record.data[at].val) for at in range(record.size))
    return True


@ffi.wasmtime_component_func_callback_t  # type: ignore[untyped-decorator]
def _measured(
    data: Any, context: Any, kind: Any, arguments: Any, count: int, results: Any, result_count: int
) -> int:  # fmt: skip
    if all(_is_measured(arguments[at]) for at in range(count)):
        return func_impl(data, context, kind, arguments, count, results, result_count) or 0
    refused = WasmtimeError(f"a host call was given a list of more than {MAX_ITEMS} items")
    return ctypes.cast(refused._consume(), ctypes.c_void_p).value or 0
