"""Which tests run which lines: told by the trial without a change, so that a change is tried on those tests alone.

A test that never runs a changed line can't notice it, nor one that runs no line which uses a changed constant.
Whatever else runs when a module is loaded (defaults, fields, a constant that another one is made of) belongs to every
test of the room. What a test does in another process is not seen: no room has such tests of its own code.
"""

import ast
import json
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeGuard

import pytest

MAX_LINES = 500
"""More than any file has."""
MAX_CALLS = 300
"""Of a function that one test calls more often, the first ones tell enough: to trace is slow."""


class Recorder:
    """A plugin of pytest: writes down, test by test, the lines that it ran of these files."""

    def __init__(self, tree: Path, paths: Iterable[str], out: Path) -> None:
        self._paths = {str(tree / path): path for path in paths}
        self._out = out
        self._seen: set[tuple[str, int]] = set()
        self._calls: Counter[CodeType] = Counter()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._seen = set()
        self._calls.clear()
        threading.settrace(self._call)
        sys.settrace(self._call)
        is_whole = False
        try:
            yield
        finally:
            is_whole = sys.gettrace() == self._call
            sys.settrace(None)
            threading.settrace(None)
        lines: defaultdict[str, list[int]] = defaultdict(list)
        for path, line in self._seen:
            lines[path].append(line)
        if not is_whole:  # Python stops tracing where the stack is full: any other line of the same files may have run
            lines = defaultdict(list, {path: [*range(1, MAX_LINES)] for path in lines})
        with self._out.open("a") as out:
            out.write(json.dumps([function_of(item.nodeid), lines]) + "\n")

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        path = self._paths.get(frame.f_code.co_filename)
        if path is None:
            return None
        self._calls[frame.f_code] += 1
        if self._calls[frame.f_code] > MAX_CALLS:
            return None

        def line(frame: FrameType, _event: str, _argument: Any) -> Any:
            self._seen.add((path, frame.f_lineno))
            return line

        return line(frame, event, argument)


class Lines:
    """What a Recorder wrote down."""

    def __init__(self, out: Path) -> None:
        self._tests: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
        for entry in out.read_text().splitlines() if out.is_file() else []:
            test, lines = json.loads(entry)
            for path, numbers in lines.items():
                for number in numbers:
                    self._tests[path, number].add(test)

    def tests_of(self, path: str, lines: Iterable[int]) -> set[str]:
        """Tests that ran any of these lines."""
        return set().union(*(self._tests.get((path, line), ()) for line in lines))


def function_of(test: str) -> str:
    """A test without its parameters."""
    return test.partition("[")[0]


def lines_around(source: bytes, line: int) -> set[int] | None:
    """The lines of the statement that this line belongs to, without those within it. None outside of functions."""
    around: list[range] = [lines for _, lines in _statements(_parsed(source)) if line in lines]
    if not around:
        return None
    shortest: range = min(around, key=len)
    return set(shortest)


@cache
def lines_using(source: bytes, name: str) -> set[int] | None:
    """The lines of statements within functions that use a constant, of this module or of the one that it is imported
    from; None where what runs as the module is loaded uses it, or where it has another name there."""
    tree = _parsed(source)
    used, inner = set[int](), set[ast.AST]()
    for statement, lines in _statements(tree):
        inner |= {*ast.walk(statement)}
        if any(_is_use(one, name) and one.lineno in lines for one in ast.walk(statement)):
            used |= set(lines)
    for node in ast.walk(tree):
        is_renamed = isinstance(node, ast.alias) and node.name == name and node.asname is not None
        if is_renamed or (node not in inner and _is_use(node, name)):
            return None
    return used


def _is_use(node: ast.AST, name: str) -> TypeGuard[ast.expr]:
    match node:
        case ast.Name(id=used, ctx=ast.Load()) | ast.Attribute(attr=used, ctx=ast.Load()):
            return used == name
    return False


def constant_at(source: bytes, line: int) -> str | None:
    """The constant of the module that is set in this line."""
    for node in _parsed(source).body:
        if node.lineno <= line <= (node.end_lineno or node.lineno):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                    return name
    return None


@cache
def _parsed(source: bytes) -> ast.Module:
    return ast.parse(source)


@cache
def _statements(tree: ast.Module) -> tuple[tuple[ast.stmt, range], ...]:
    """Statements within functions, and their lines without those of what is within them."""
    return tuple(_within_functions(tree))


def _within_functions(tree: ast.Module) -> Iterator[tuple[ast.stmt, range]]:
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(ast.Module(function.body, [])):
            if isinstance(node, ast.stmt):
                body = getattr(node, "body", None)
                end = body[0].lineno - 1 if isinstance(body, list) else node.end_lineno or node.lineno
                yield node, range(node.lineno, max(end, node.lineno) + 1)
