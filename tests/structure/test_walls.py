"""The walls of the house, held by the syntax trees of its files."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OURS = ("ipc", "supervisor", "frontend", "workers", "contrib", "bench", "tests", "gateway_client")
MAY_IMPORT = {
    "ipc": {"ipc"},
    "supervisor": {"supervisor", "ipc"},
    "frontend": {"frontend", "ipc"},
    "workers": {"workers", "ipc"},
}
NEVER = {
    "ipc": {"hypercorn", "wasmtime", "cryptography", "jwt", "h11", "structlog"},
    "supervisor": {"h11", "hypercorn", "http", "httpx", "wasmtime", "cryptography", "jwt", "regopy", "yaml", "sqlite3"},
    "frontend": {"wasmtime", "regopy", "hypercorn", "h11"},
    "workers": {"trio", "h11", "hypercorn", "sqlite3"},
}
MAX_LINES = 400
MAX_FUNCTION_LINES = 60


def files_of(package: str) -> list[Path]:
    return sorted(path for path in (ROOT / package).rglob("*.py") if "__pycache__" not in path.parts)


@cache
def imports_of(path: Path) -> tuple[tuple[int, str], ...]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            found.append((node.lineno, node.module or ""))
    return tuple(found)


@cache
def file_of(name: str) -> Path | None:
    """The file of a module of ours."""
    if name.split(".")[0] not in OURS:
        return None
    target = ROOT / Path(*name.split("."))
    return next((one for one in (target.with_suffix(".py"), target / "__init__.py") if one.is_file()), None)


def reached_from(path: Path, seen: set[Path]) -> Iterator[tuple[Path, int, str]]:
    """Every import of a file and, recursively, of the files of ours that it imports."""
    if path in seen:
        return
    seen.add(path)
    for line, name in imports_of(path):
        yield path, line, name
        target = file_of(name)
        if target is not None:
            yield from reached_from(target, seen)


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_process_imports_only_itself_and_the_contract(package: str) -> None:
    broken = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in files_of(package)
        for line, name in imports_of(path)
        if name.split(".")[0] in OURS and name.split(".")[0] not in MAY_IMPORT[package]
    ]
    assert not broken


@pytest.mark.parametrize("package", NEVER)
def test_a_process_never_reaches_a_library_it_must_do_without(package: str) -> None:
    broken = set()
    for start in files_of(package):
        for path, line, name in reached_from(start, set()):
            if name.split(".")[0] in NEVER[package]:
                broken.add(f"{start.relative_to(ROOT)} reaches {name} at {path.relative_to(ROOT)}:{line}")
    assert not broken


def test_no_circle_of_imports() -> None:
    arrows: dict[Path, set[Path]] = {}
    for package in MAY_IMPORT:
        for path in files_of(package):
            found = arrows.setdefault(path, set())
            for node in ast.parse(path.read_text()).body:
                if not isinstance(node, ast.Import | ast.ImportFrom):
                    continue  # imports under TYPE_CHECKING tie no process at run time
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
                if isinstance(node, ast.ImportFrom):
                    names += [f"{node.module}.{alias.name}" for alias in node.names]
                for name in names:
                    target = (ROOT / Path(*name.split("."))).with_suffix(".py")
                    if target.is_file():
                        found.add(target)
    done: set[Path] = set()

    def visit(path: Path, trail: tuple[Path, ...]) -> None:
        assert path not in trail, " -> ".join(str(p.relative_to(ROOT)) for p in (*trail, path))
        if path in done:
            return
        for target in arrows.get(path, ()):
            visit(target, (*trail, path))
        done.add(path)

    for path in list(arrows):
        visit(path, ())


@pytest.mark.parametrize("package", [*MAY_IMPORT, "contrib", "bench"])
def test_rooms_stay_small(package: str) -> None:
    crowded = []
    for path in files_of(package):
        text = path.read_text()
        if text.count("\n") > MAX_LINES:
            crowded.append(f"{path.relative_to(ROOT)} has {text.count(chr(10))} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno
                if lines > MAX_FUNCTION_LINES:
                    crowded.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name} has {lines} lines")
    assert not crowded


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_every_room_says_what_it_owns(package: str) -> None:
    silent = [
        str(path.relative_to(ROOT)) for path in files_of(package) if not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert not silent
