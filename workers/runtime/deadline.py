"""The deadline of one store. An epoch is raised for all stores of the process at once; each ends by its own time.

Guarantees that guest code traps at the first epoch after its deadline, and goes on after every epoch before it.
"""

import ctypes
import time
from typing import Any

from wasmtime import Store, WasmtimeError
from wasmtime import _ffi as ffi

_NANOSECONDS = 1_000_000_000
_CONTINUE = 0  # WASMTIME_UPDATE_DEADLINE_CONTINUE, wasmtime/store.h


def set_deadline(store: Store, deadline: float) -> None:
    """Have the guest's code trap at the first epoch that is raised after `deadline` (time.monotonic)."""
    store.set_epoch_deadline(1)
    ffi.wasmtime_store_epoch_deadline_callback(store.ptr(), _on_epoch, int(deadline * _NANOSECONDS), _no_finalizer)


def _is_over(_context: Any, deadline: int | None, epochs: Any, update: Any) -> int:
    """Called in the guest's thread after an epoch was raised; `deadline` in nanoseconds of time.monotonic."""
    if time.monotonic_ns() >= (deadline or 0):
        return ctypes.cast(WasmtimeError("the call's time is over")._consume(), ctypes.c_void_p).value or 0
    epochs[0] = 1
    update[0] = _CONTINUE
    return 0


_Callback = ctypes.CFUNCTYPE(
    ctypes.c_size_t, ctypes.POINTER(ffi.wasmtime_context_t), ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64),
    ctypes.POINTER(ffi.wasmtime_update_deadline_kind_t),
)  # fmt: skip
_on_epoch = _Callback(_is_over)
"""Made when this is imported, before a fork: behind its walls a worker gets no executable memory for another one."""
_no_finalizer = ctypes.CFUNCTYPE(None, ctypes.c_void_p)()
