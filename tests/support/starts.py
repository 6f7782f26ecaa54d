"""The tests that start processes, found from their code, so that no list of tests has to be kept. A test starts one
if its function, or a fixture that it uses, names `subprocess`, a fork, the gateway's code that starts processes, or a
helper or class of the tests or of the benchmark that does.
"""

import ctypes.util
import inspect
import subprocess
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from bridge.sessions import BridgeSessions
from ipc.walls import found
from supervisor.children.children import Children
from supervisor.children.helpers import Helpers
from supervisor.children.walls import find_walls, with_walls
from workers.compile import start_compilation

STARTERS = (
    subprocess, BridgeSessions, Children, Helpers, start_compilation, find_walls, with_walls, found.missing_walls,
    found.can_become, ctypes.util.find_library,
)  # fmt: skip
FORKS = "fork"
FOLLOWED = ("tests", "bench")


def starts_processes(functions: list[Any], module: str) -> bool:
    """Whether any of these functions starts processes, itself or by way of helpers in `module` or among the tests'."""
    seen: set[object] = set()
    waiting = list(functions)
    while waiting:
        one = waiting.pop()
        if any(one is starter for starter in STARTERS):
            return True
        one = inspect.unwrap(one) if callable(one) else one
        if (
            not isinstance(one, type | FunctionType)
            or one in seen
            or not (one.__module__ == module or _is_followed(one.__module__))
        ):
            continue
        seen.add(one)
        if isinstance(one, type):
            waiting += [getattr(member, "fget", member) for member in vars(one).values()] + list(one.__bases__)
            continue
        names = set(_names(one.__code__))
        if FORKS in names:
            return True
        waiting += _named(one.__globals__, names)
    return False


def _named(variables: dict[str, Any], names: set[str]) -> Iterator[Any]:
    """The values of these names among the globals of a function, and in test modules that it names."""
    for name in names & variables.keys():
        value = variables[name]
        yield value
        if value is ctypes:
            yield from (getattr(ctypes.util, member) for member in names if hasattr(ctypes.util, member))
        if isinstance(value, ModuleType) and _is_followed(value.__name__):
            yield from (getattr(value, member) for member in names if hasattr(value, member))


def _is_followed(module: str) -> bool:
    return module.partition(".")[0] in FOLLOWED


def _names(code: CodeType) -> Iterator[str]:
    """Names that a function uses, those of functions within it included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
