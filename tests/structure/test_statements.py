"""SQL names no values: Python 3.14 refuses a statement with `?1` or `:name` whose values come as a sequence, and one
with `?` whose values come as a mapping; 3.12 warns of it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.packages import PACKAGES

ROOT = Path(__file__).resolve().parents[2]
SQL = re.compile(r"\b(SELECT|INSERT INTO|INSERT OR|UPDATE|DELETE FROM|VALUES|WHERE|LIMIT)\b")
NAMED = re.compile(r"\?\d|(?<![\w:'\"$])[:@$][A-Za-z_]\w*")
QUOTED = re.compile(r"'[^']*'")


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every text of a module with its line; one with values in it as what stands around them."""
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, "…".join(str(one.value) for one in node.values if isinstance(one, ast.Constant))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.lineno, node.value


def may_name(source: str) -> bool:
    """Whether there is a word of SQL and a thing like a name: a file without them need not be parsed."""
    return bool(SQL.search(source) and NAMED.search(source))


def named_in_text(tree: ast.AST) -> list[int]:
    """Lines of statements that name values."""
    return [line for line, text in texts(tree) if SQL.search(text) and NAMED.search(QUOTED.sub("", text))]


def named_values(source: str) -> list[int]:
    """Lines of statements that name values, and of those whose values are a mapping."""
    tree = ast.parse(source)
    lines = named_in_text(tree)
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute))
    return (
        lines
        + [
            call.lineno
            for call in calls
            if call.func.attr in ("execute", "executemany")  # type: ignore[attr-defined]
            and any(isinstance(value, ast.Dict | ast.DictComp) for value in call.args[1:])
        ]
    )


@pytest.mark.parametrize("package", [*PACKAGES, "bench"])
def test_no_statement_names_its_values(package: str) -> None:
    files = [file for file in (ROOT / package).rglob("*.py") if file != Path(__file__)]
    lines_of = {str(file.relative_to(ROOT)): named_values(file.read_text()) for file in files}
    assert files
    assert {name: lines for name, lines in lines_of.items() if lines} == {}


@pytest.mark.large
def test_no_statement_of_the_tests_does() -> None:
    """They have things called `execute` that take mappings."""
    files = [file for file in (ROOT / "tests").rglob("*.py") if file != Path(__file__)]
    sources = {str(file): file.read_text() for file in files}
    assert [name for name, text in sources.items() if may_name(text) and named_in_text(ast.parse(text))] == []


@pytest.mark.parametrize(("source", "is_named"), [
    ("x = 'SELECT 1 FROM t WHERE a = ?'", False),
    ("x = 'SELECT 1 FROM t WHERE a = ?1'", True),
    ("x = f'SELECT {n} FROM t WHERE a = :name'", True),
    ("x = 'INSERT INTO t VALUES (@a, $b)'", True),
    ("x = \"SELECT json_extract(v, '$.seq') FROM t WHERE a = ':x'\"", False),
    ("c.execute(text, {'a': 1})", True),
    ("c.execute(text, (1,))", False),
    ("x = 'say :name to ?1'", False),
])  # fmt: skip
def test_statements_that_do_are_found(source: str, is_named: bool) -> None:
    assert bool(named_values(source)) is is_named
