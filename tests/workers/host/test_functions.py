"""A host function that breaks ends the call with a trap, never with a result that was not written."""

import ctypes
from collections.abc import Callable

import pytest
from wasmtime import WasmtimeError
from wasmtime import _ffi as ffi
from wasmtime.component._linker import FUNCTIONS as ACTS

from workers.host.functions import _callback, signature_of


def broken() -> int:
    raise KeyboardInterrupt


@pytest.mark.parametrize("act", [broken, lambda: "no number"])
def test_a_function_that_breaks_ends_the_call_with_a_trap(act: Callable[[], object]) -> None:
    called = _callback(signature_of("func() -> u64"))
    number = ACTS.allocate(act)
    result = ffi.wasmtime_component_val_t()
    error = called(number, None, None, None, 0, ctypes.pointer(result), 1)
    ACTS.deallocate(number)
    assert error
    problem = WasmtimeError._from_ptr(ctypes.cast(error, ctypes.POINTER(ffi.wasmtime_error_t)))
    assert str(problem) == "a host call failed"


@pytest.mark.parametrize("text", ["func(a u8)", "record{a: u32}", "func(a: u32"])
def test_a_type_that_is_not_written_as_the_interface_writes_types_is_refused(text: str) -> None:
    with pytest.raises((ValueError, IndexError)):
        signature_of(text)
