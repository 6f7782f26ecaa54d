"""A change of a function put into modules that are loaded: its code is exchanged, nothing is loaded anew.

Only functions can be exchanged so. What ran while modules were loaded has left its traces: such a change is told apart,
and has to be tried on modules that are loaded with it.
"""

import gc
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

from mutants.changes import Change


class Loaded:
    """What is loaded of a tree. `profile` is set as the profiler of the process while its modules are loaded."""

    def __init__(self, tree: Path) -> None:
        self._tree = tree
        self._ran: set[tuple[str, int, str]] = set()
        self._functions: defaultdict[str, list[FunctionType]] = defaultdict(list)

    def profile(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Note what runs."""
        if event == "call":
            self._ran.add(_place(frame.f_code))

    def find_functions(self) -> None:
        """Call it when everything is loaded."""
        gc.unfreeze()  # tests/conftest.py freezes what is collected, and of that gc tells nothing
        for one in gc.get_objects():
            if isinstance(one, FunctionType):
                self._functions[one.__code__.co_filename].append(one)

    def exchange(self, change: Change, source: bytes) -> bool:
        """Put in a change of a file that read `source`; False if it can't be, and then nothing is changed."""
        name = str(self._tree / change.path)
        old, new = (compile(text, name, "exec", dont_inherit=True) for text in (source, change.apply(source)))
        pairs = list(_different(old, new))
        if any(_own(one) != _own(other) and _place(one) in self._ran for one, other in pairs):
            return False
        codes = dict(pairs)
        functions = [one for one in self._functions[name] if one.__code__ in codes]
        if not functions or any(one.__code__.co_freevars != codes[one.__code__].co_freevars for one in functions):
            return False
        for function in functions:
            function.__code__ = codes[function.__code__]
        return True


def _place(code: CodeType) -> tuple[str, int, str]:
    return code.co_filename, code.co_firstlineno, code.co_name


def _own(code: CodeType) -> object:
    """What a code is, without the codes within it and without numbers of lines."""
    constants = [repr(one) for one in code.co_consts if not isinstance(one, CodeType)]
    return (
        code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_flags,
        code.co_exceptiontable,
    )  # fmt: skip


def _different(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Codes that differ, with what takes their place, the outermost first."""
    if old == new:
        return
    yield old, new
    inner = [[one for one in code.co_consts if isinstance(one, CodeType)] for code in (old, new)]
    if len(inner[0]) == len(inner[1]):
        for pair in zip(*inner, strict=True):
            yield from _different(*pair)
