"""Host functions over wasmtime's C interface, by their types in `workers/interfaces.py`.

The Python interface of wasmtime asks for a function's type at each call and makes an object of each part of it, which
took most of the time of a host call. Here each type is read once. SECURITY: sound because the types of a module are
compared with these very texts before it is mapped (workers/runtime/contract.py).
"""

import ctypes
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from wasmtime import WasmtimeError
from wasmtime import _ffi as ffi
from wasmtime.component import LinkerInstance
from wasmtime.component._linker import FUNCTIONS as _ACTS
from wasmtime.component._linker import func_finalize

from workers.host.values import ENUM, GENERIC, NOTHING, SCALARS, Reader, Shape, Writer, record_shape
from workers.interfaces import FUNCTIONS

_TOKEN = re.compile(r"[a-z0-9_][a-z0-9-]*|->|[^\s]")


class FunctionType(NamedTuple):
    """A function of the interface; `write` is None where it answers nothing."""

    reads: tuple[Reader, ...]
    write: Writer | None


def define(instance: LinkerInstance, interface: str, name: str, act: Callable[..., Any]) -> None:
    """Add `act` as a function of the interface (short name). `act` must raise nothing but WasmtimeError, which ends the
    call with a trap; a `ProviderFailure` that it returns is the function's error. Raises WasmtimeError."""
    encoded = name.encode()
    error = ffi.wasmtime_component_linker_instance_add_func(
        instance.ptr(), ctypes.create_string_buffer(encoded), len(encoded), _CALLBACKS[interface, name],
        _ACTS.allocate(act), func_finalize,
    )  # fmt: skip
    if error:
        raise WasmtimeError._from_ptr(error)


def _callback(signature: FunctionType) -> Any:
    """The C function of a signature. It finds the `act` of the linker that calls it by a number."""
    reads, write = signature

    def called(number: Any, _context: Any, _kind: Any, arguments: Any, _given: int, results: Any, _wanted: int) -> int:
        try:
            answer = _ACTS.get(number or 0)(*[read(arguments[at].of) for at, read in enumerate(reads)])
            if write is not None:
                write(results[0], answer)
        except WasmtimeError as error:
            return _trap(error)
        except BaseException:  # SECURITY: what left this function would go on with a result that was never written.
            return _trap(WasmtimeError("a host call failed"))
        return 0

    return ffi.wasmtime_component_func_callback_t(called)


def _trap(error: WasmtimeError) -> int:
    return ctypes.cast(error._consume(), ctypes.c_void_p).value or 0


def signature_of(text: str) -> FunctionType:
    """Read the type of a function, as `workers/interfaces.py` writes it. Raises ValueError."""
    types = _Types(_TOKEN.findall(text))
    types.expect("func", "(")
    reads = []
    while not types.skip(")"):
        types.next()  # a name
        types.expect(":")
        reads.append(types.shape().read)
        types.skip(",")
    return FunctionType(tuple(reads), types.shape().write if types.skip("->") else None)


class _Types:
    """Reads types from tokens, left to right."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens[::-1]

    def next(self) -> str:
        return self._tokens.pop()

    def skip(self, token: str) -> bool:
        """True when this token comes next; it is read."""
        if not self._tokens or self._tokens[-1] != token:
            return False
        self._tokens.pop()
        return True

    def expect(self, *tokens: str) -> None:
        for token in tokens:
            if not self.skip(token):
                raise ValueError(f"{token!r} is missing in a type")

    def shape(self) -> Shape:
        name = self.next()
        match name:
            case "record":
                return record_shape(self._fields())
            case "enum":
                self.expect("{")
                while not self.skip("}"):
                    self.next()
                return ENUM
            case "list" | "tuple" | "option" | "result":
                return GENERIC[name](*self._parts())
            case "_":
                return NOTHING
        return SCALARS[name]

    def _fields(self) -> list[tuple[str, Shape]]:
        fields = []
        self.expect("{")
        while not self.skip("}"):
            name = self.next()
            self.expect(":")
            fields.append((name, self.shape()))
            self.skip(",")
        return fields

    def _parts(self) -> list[Shape]:
        parts = []
        self.expect("<")
        while not self.skip(">"):
            parts.append(self.shape())
            self.skip(",")
        return parts


_CALLBACKS = {
    (interface, name): _callback(signature_of(text))
    for interface, functions in FUNCTIONS.items()
    for name, text in functions.items()
}
"""Made when this is imported, before a fork: behind its walls a worker gets no executable memory for another one."""
