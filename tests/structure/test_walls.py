"""Which process may import which, which room stands above which, and how large a room may be: held by syntax trees.

A room is a folder, or a file beside folders: `frontend/http/` and `frontend/clock.py` are rooms of the front. Arrows
count wherever an import stands, in functions too.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from tests.support.packages import PACKAGES

ROOT = Path(__file__).resolve().parents[2]
OURS = (*PACKAGES, "bench", "tests", "gateway_client")
MAY_IMPORT = {
    "contract": {"contract"},
    "ipc": {"ipc", "contract"},
    "supervisor": {"supervisor", "ipc"},
    "frontend": {"frontend", "ipc", "contract"},
    "notary": {"notary", "ipc", "contract"},
    "workers": {"workers", "ipc"},
    "serving": {"serving", "frontend"},
    "witness": {"witness", "serving", "ipc", "frontend", "notary"},
    "console": {"console", "serving", "ipc", "frontend"},
    "bridge": {"bridge", "serving", "ipc", "frontend"},
    "edge": {"edge", "serving", "ipc", "frontend", "gateway_client"},
    "importing": {"importing", "ipc", "frontend"},
    "broker": {"broker", "ipc", "frontend"},
    "exporter": {"exporter", "ipc", "frontend"},
}
"""A package that is not there (yet) breaks no wall."""
OF_OTHERS = {
    "serving": ("frontend.errors", "frontend.http.answers", "frontend.http.requests", "frontend.telemetry.logs"),
    "witness": (
        "frontend.http.answers",
        "frontend.http.requests",
        "frontend.telemetry.logs",
        "notary.tree.",
        "serving.",
    ),
    "console": (
        "frontend.http.answers",
        "frontend.http.client_bodies",
        "frontend.http.requests",
        "frontend.telemetry.logs",
        "serving.",
    ),
    "bridge": ("frontend.http.answers", "frontend.http.requests", "frontend.telemetry.logs", "serving."),
    "edge": ("frontend.telemetry.logs", "serving.", "gateway_client."),
    "importing": ("frontend.manifests.", "frontend.schemas.", "frontend.files.problems"),
    "broker": (
        "frontend.http.client_bodies",
        "frontend.supervised",
        "frontend.telemetry.logs",
        "frontend.webhooks.network",
    ),
    "exporter": (
        "frontend.clock",
        "frontend.http.client_bodies",
        "frontend.notary",
        "frontend.supervised",
        "frontend.telemetry.logs",
        "frontend.webhooks.network",
        "frontend.webhooks.outcome",
    ),
}
"""The modules that a package may import of another one where only a few are allowed."""
NEVER = {
    "contract": {"hypercorn", "wasmtime", "cryptography", "jwt", "h11", "structlog", "trio", "anyio"},
    "ipc": {"hypercorn", "wasmtime", "cryptography", "jwt", "h11", "structlog"},
    "supervisor": {"h11", "hypercorn", "http", "httpx", "wasmtime", "cryptography", "jwt", "regopy", "yaml", "sqlite3"},
    "frontend": {"wasmtime", "regopy", "hypercorn", "h11", "sqlite3"},
    "notary": {"trio", "h11", "hypercorn", "httpcore", "httpx", "wasmtime", "regopy", "yaml"},
    "workers": {"trio", "h11", "hypercorn", "sqlite3"},
    "serving": {"h11", "httpcore", "httpx", "wasmtime", "cryptography", "jwt", "regopy", "yaml", "sqlite3"},
    "witness": {"h11", "httpcore", "httpx", "wasmtime", "regopy", "yaml", "sqlite3", "jwt"},
    "broker": {"h11", "hypercorn", "httpx", "wasmtime", "cryptography", "jwt", "regopy", "yaml", "sqlite3"},
    "exporter": {"h11", "hypercorn", "httpx", "wasmtime", "cryptography", "jwt", "regopy", "yaml", "sqlite3"},
    "console": {"h11", "httpx", "wasmtime", "cryptography", "jwt", "regopy", "yaml", "sqlite3"},
    "bridge": {"h11", "httpcore", "httpx", "wasmtime", "cryptography", "jwt", "regopy", "yaml", "sqlite3"},
    "edge": {"h11", "httpx", "wasmtime", "cryptography", "jwt", "regopy", "yaml", "sqlite3"},
    "importing": {"h11", "hypercorn", "httpx", "wasmtime", "cryptography", "jwt", "regopy", "sqlite3"},
}
FLOORS: dict[str, tuple[tuple[str, ...], ...]] = {
    "frontend": (
        ("main",),
        ("front",),
        ("compose", "api"),
        ("services",),
        ("calls", "configuration", "action_tests"),
        ("egress",),
        ("actions",),
        ("manifests", "policy", "webhooks", "witnesses", "health", "contract"),
        ("auth",),
        ("http", "notary"),
    ),
    "supervisor": (
        ("attached", "cli"),
        ("commands",),
        ("dev",),
        ("launch",),
        ("supervise",),
        ("life",),
        ("keepers",),
        ("state",),
        ("systemd",),
        ("sockets",),
        ("settings",),
        ("children", "state_dir"),
    ),
    "notary": (
        ("main", "reader", "programs"),
        ("opening", "service", "walls"),
        ("peers", "servers"),
        ("operations", "remote_units", "upkeep", "checkpoints", "sealing"),
        ("units",),
        ("state",),
        ("reading", "checkpoint_file"),
        ("signing",),
        ("ledger",),
        ("tree",),
        ("backends", "store"),
        ("database",),
    ),
    "serving": (("server",), ("application",), ("connections",)),
    "witness": (("main",), ("judge",)),
    "console": (("main",), ("forwarding",)),
    "bridge": (("main",), ("endpoint",), ("sessions",), ("session",)),
    "edge": (("main",), ("serving",), ("application",), ("mcp",), ("gateway",)),
    "importing": (("mcp",), ("openapi",), ("folder", "manifest_text")),
    "exporter": (("main",), ("process",)),
    "broker": (("main",), ("process",), ("tokens", "walls"), ("token_server",)),
    "workers": (
        ("template", "check", "examiner"),
        ("loading", "worker"),
        ("cache", "compile", "crew", "renewals", "worker_loop"),
        ("runtime",),
        ("verifiers",),
        ("host",),
    ),
    "ipc": (
        ("protocols",),
        ("channel",),
        ("messages",),
        ("keys", "operations", "reloadable"),
        ("backends", "network"),
        ("settings",),
        ("verifiers", "walls"),
        ("approvals", "expected", "process"),
    ),
}
"""Rooms of a package from the top floor down; what is not named stands on the lowest. Arrows go down or stay on their
floor."""
MAX_LINES = 400
MAX_FUNCTION_LINES = 60


SOURCES = ROOT / "workers" / "providers" / "src"
"""Tools that run where providers are built: no process of the gateway."""


def files_of(package: str) -> list[Path]:
    found = (ROOT / package).rglob("*.py")
    return sorted(path for path in found if "__pycache__" not in path.parts and not path.is_relative_to(SOURCES))


@dataclass(frozen=True, slots=True)
class Module:
    """Facts of a file for these rules; its syntax tree is made once and not kept."""

    imports: tuple[tuple[int, str], ...]
    """Lines and modules, at any place in the file."""
    deep_imports: tuple[tuple[str, ...], ...]
    """For each import, what may be modules: for `from a import b` first `a`, then `a.b`."""
    first_imports: tuple[tuple[str, ...], ...]
    """The same, of the imports that tie a process at run time: not those under TYPE_CHECKING or in a function."""
    lines: int
    function_lines: tuple[tuple[int, str, int], ...]
    """Line, name and length."""
    has_docstring: bool


@cache
def module_of(path: Path) -> Module:
    text = path.read_text()
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    imports: list[tuple[int, str]] = []
    for node in nodes:
        imports += [(node.lineno, names[0]) for names in _names_of(path, node)]  # type: ignore[attr-defined]
    return Module(
        tuple(imports),
        tuple(names for node in nodes for names in _names_of(path, node)),
        tuple(names for node in tree.body for names in _names_of(path, node)),
        text.count("\n"),
        tuple(
            (node.lineno, node.name, (node.end_lineno or 0) - node.lineno)
            for node in nodes
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ),
        ast.get_docstring(tree) is not None,
    )


def _names_of(path: Path, node: ast.AST) -> list[tuple[str, ...]]:
    if isinstance(node, ast.Import):
        return [(alias.name,) for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        module = _from(path, node)
        return [(module, *(f"{module}.{alias.name}" for alias in node.names))]
    return []


def _from(path: Path, node: ast.ImportFrom) -> str:
    """The module that names are imported from. `contract/` has two names, and so imports itself relatively."""
    is_of_contract = path.parent == ROOT / "contract"
    assert node.level == (1 if is_of_contract and node.level else 0), f"{path}:{node.lineno} imports relatively"
    return f"contract.{node.module}" if node.level else node.module or ""


@cache
def file_of(name: str) -> Path | None:
    """The file of a module of the repository."""
    if name.split(".")[0] not in OURS:
        return None
    target = ROOT / Path(*name.split("."))
    return next((one for one in (target.with_suffix(".py"), target / "__init__.py") if one.is_file()), None)


def reached_from(path: Path, seen: set[Path]) -> Iterator[tuple[Path, int, str]]:
    """Every import of a file and, recursively, of the repository's files that it imports."""
    if path in seen:
        return
    seen.add(path)
    for line, name in module_of(path).imports:
        yield path, line, name
        target = file_of(name)
        if target is not None:
            yield from reached_from(target, seen)


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_process_imports_only_itself_and_the_contract(package: str) -> None:
    broken = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in files_of(package)
        for line, name in module_of(path).imports
        if name.split(".")[0] in OURS and name.split(".")[0] not in MAY_IMPORT[package]
    ]
    assert not broken


@pytest.mark.parametrize("package", OF_OTHERS)
def test_a_process_takes_of_another_one_only_what_is_named(package: str) -> None:
    broken = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in files_of(package)
        for line, name in module_of(path).imports
        if name.split(".")[0] in MAY_IMPORT[package] - {package, "ipc"} and not name.startswith(OF_OTHERS[package])
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
            targets = arrows.setdefault(path, set())
            for name in chain.from_iterable(module_of(path).first_imports):
                target = (ROOT / Path(*name.split("."))).with_suffix(".py")
                if target.is_file():
                    targets.add(target)
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


@cache
def modules_of(path: Path) -> tuple[Path, ...]:
    """The repository's files that a file imports, at any place in it."""
    files: list[Path] = []
    for module, *deeper in module_of(path).deep_imports:
        names = [name if file_of(name) else module for name in deeper] or [module]
        files += (target for target in map(file_of, names) if target is not None)
    return tuple(files)


def arrows_in(folder: Path) -> dict[Path, set[Path]]:
    """For each room that lies in `folder`, the other rooms there that its files import."""
    arrows: dict[Path, set[Path]] = {}
    for path in folder.rglob("*.py"):
        room = folder / path.relative_to(folder).parts[0]
        for target in modules_of(path):
            if target.is_relative_to(folder) and target != folder / "__init__.py":
                arrows.setdefault(room, set()).add(folder / target.relative_to(folder).parts[0])
    return {room: targets - {room} for room, targets in arrows.items()}


def circle_of(arrows: dict[Path, set[Path]]) -> list[Path]:
    """The rooms of one circle, in order; empty without any."""
    done: set[Path] = set()

    def visit(room: Path, trail: tuple[Path, ...]) -> list[Path]:
        if room in trail:
            return [*trail[trail.index(room) :], room]
        if room in done:
            return []
        circle = next(filter(None, (visit(target, (*trail, room)) for target in sorted(arrows.get(room, ())))), [])
        done.add(room)
        return circle

    return next(filter(None, (visit(room, ()) for room in sorted(arrows))), [])


def folders_of(package: str) -> list[Path]:
    return sorted({path.parent for path in files_of(package)})


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_no_circle_between_rooms(package: str) -> None:
    circles = [" -> ".join(room.name for room in circle_of(arrows_in(folder))) for folder in folders_of(package)]
    assert not list(filter(None, circles))


def rising_arrows(package: str) -> set[tuple[str, str]]:
    floor = {name: number for number, names in enumerate(FLOORS[package]) for name in names}
    lowest = len(FLOORS[package])
    return {
        (str(room.relative_to(ROOT)), str(target.relative_to(ROOT)))
        for room, targets in arrows_in(ROOT / package).items()
        for target in targets
        if floor.get(target.stem, lowest) < floor.get(room.stem, lowest)
    }


@pytest.mark.parametrize("package", FLOORS)
def test_no_arrow_rises(package: str) -> None:
    assert not rising_arrows(package)


def test_every_room_of_the_floors_is_there() -> None:
    named = {f"{package}/{name}" for package, floors in FLOORS.items() for names in floors for name in names}
    missing = {name for name in named if not (ROOT / name).is_dir() and not (ROOT / f"{name}.py").is_file()}
    assert not missing


@pytest.mark.parametrize("package", [*MAY_IMPORT, "contrib", "bench"])
def test_rooms_stay_small(package: str) -> None:
    crowded = []
    for path in files_of(package):
        module, name = module_of(path), path.relative_to(ROOT)
        if module.lines > MAX_LINES:
            crowded.append(f"{name} has {module.lines} lines")
        crowded += [
            f"{name}:{line} {function} has {lines} lines"
            for line, function, lines in module.function_lines
            if lines > MAX_FUNCTION_LINES
        ]
    assert not crowded


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_every_room_says_what_it_owns(package: str) -> None:
    silent = [str(path.relative_to(ROOT)) for path in files_of(package) if not module_of(path).has_docstring]
    assert not silent
