"""The changes of a source that are tried: one at a time, each a mistake that a programmer might make.

Changed are numbers, words (a text that is one identifier: codes, names of events, members of JSON), truth values,
comparisons, `and` and `or`, `not`, and what a function returns. Left as they are: texts that people read, annotations,
docstrings, asserts (they state what the code around them guarantees), decorators, and parameters of classes.

A change is told by the function that it stands in and by its line before and after, not by the line's number, so that
its name outlives edits elsewhere in the file.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]+")
_COMPARISONS = {
    ast.Lt: (r"<", "<="), ast.LtE: (r"<=", "<"), ast.Gt: (r">", ">="), ast.GtE: (r">=", ">"),
    ast.Eq: (r"==", "!="), ast.NotEq: (r"!=", "=="), ast.Is: (r"\bis\b", "is not"), ast.IsNot: (r"\bis\s+not\b", "is"),
    ast.In: (r"\bin\b", "not in"), ast.NotIn: (r"\bnot\s+in\b", "in"),
}  # fmt: skip
_FACTOR = 10
"""A float is a measure: seconds, mostly. One that is ten times as long must be noticed, one that is 3 % longer not."""


@dataclass(frozen=True)
class Change:
    """One change of one file. `start` and `end` are offsets into its UTF-8 bytes; `where` is the qualified name of the
    function or class around it, or "module"; `nth` tells apart changes that look alike within it."""

    path: str
    line: int
    where: str
    before: str
    after: str
    start: int
    end: int
    text: str
    nth: int = 1

    @property
    def name(self) -> str:
        """What it is known by in results and in the list of those that are accepted."""
        nth = f" #{self.nth}" if self.nth > 1 else ""
        return f"{self.path} {self.where}{nth}: {self.before} => {self.after}"

    def apply(self, source: bytes) -> bytes:
        """The file with this change."""
        return source[: self.start] + self.text.encode() + source[self.end :]


def changes_of(path: str, source: bytes) -> list[Change]:
    """Every change of a file, in the order of its lines. Those that do not compile are none."""
    seen: Counter[str] = Counter()
    changes = []
    for change in sorted(_Reader(path, source).read(), key=lambda one: (one.start, one.end, one.text)):
        if _compiles(change.apply(source)):
            seen[change.name] += 1
            changes.append(replace(change, nth=seen[change.name]))
    return changes


def _compiles(source: bytes) -> bool:
    try:
        compile(source, "changed", "exec")
    except SyntaxError:
        return False
    return True


class _Reader:
    """Walks one syntax tree, and knows in which function it is."""

    def __init__(self, path: str, source: bytes) -> None:
        self._path = path
        self._source = source
        self._lines = source.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def read(self) -> Iterator[Change]:
        yield from self._walk(ast.parse(self._source), ())

    def _walk(self, node: ast.AST, where: tuple[str, ...]) -> Iterator[Change]:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                where = (*where, node.name)
                inner: list[ast.AST] = [*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body]
            case ast.ClassDef():
                where, inner = (*where, node.name), list(node.body)
            case ast.Assert() | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
                return
            case ast.Expr(value=ast.Constant()):
                return  # a docstring, of a constant or a field too
            case ast.AnnAssign():
                inner = [] if node.value is None else [node.value]
            case ast.Assign(targets=[ast.Name(id=name)]) if name.startswith("__"):
                return
            case _:
                inner = list(ast.iter_child_nodes(node))
        for start, end, text in self._of(node):
            yield self._change(where, start, end, text)
        for child in inner:
            yield from self._walk(child, where)

    def _of(self, node: ast.AST) -> Iterator[tuple[int, int, str]]:
        """(start, end, new text) of what is changed at this very node."""
        match node:
            case ast.Constant(value=bool(value)):
                yield (*self._span(node), str(not value))
            case ast.Constant(value=int(value)):
                yield (*self._span(node), str(value + 1))
            case ast.Constant(value=float(value)):
                yield (*self._span(node), repr(value * _FACTOR or 1.0))
            case ast.Constant(value=str(value)) if _WORD.fullmatch(value):
                yield (*self._span(node), repr(value + "_").replace("'", '"'))
            case ast.Compare():
                sides = [node.left, *node.comparators]
                for operator, left, right in zip(node.ops, sides, node.comparators, strict=False):
                    pattern, other = _COMPARISONS[type(operator)]
                    yield from self._between(left, right, pattern, other)
            case ast.BoolOp():
                old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
                for left, right in zip(node.values, node.values[1:], strict=False):
                    yield from self._between(left, right, rf"\b{old}\b", new)
            case ast.UnaryOp(op=ast.Not()):
                yield self._span(node)[0], self._span(node.operand)[0], ""
            case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
                yield (*self._span(value), "None")

    def _between(self, left: ast.expr, right: ast.expr, pattern: str, new: str) -> Iterator[tuple[int, int, str]]:
        start, end = self._span(left)[1], self._span(right)[0]
        if match := re.search(pattern.encode(), self._source[start:end]):
            yield start + match.start(), start + match.end(), new

    def _span(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self._starts[node.lineno - 1] + node.col_offset, self._starts[node.end_lineno - 1] + node.end_col_offset
        )  # fmt: skip

    def _change(self, where: tuple[str, ...], start: int, end: int, text: str) -> Change:
        line = next(number for number, after in enumerate(self._starts[1:], 1) if start < after)
        first = self._starts[line - 1]
        before = self._lines[line - 1]
        # Where what is changed goes on in other lines, the line ends with what takes its place.
        after = (
            before[: start - first] + text.encode() + (b"\n" if end > first + len(before) else before[end - first :])
        )
        return Change(
            self._path, line, ".".join(where) or "module", before.decode().strip(), after.decode().strip(),
            start, end, text,
        )  # fmt: skip
