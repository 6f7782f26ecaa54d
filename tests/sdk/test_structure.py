"""The library stands alone, stays small, and says what everything in it is for."""

import ast
import inspect
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gateway_client
import pytest

SDK = Path(__file__).resolve().parents[2] / "sdk"
FILES = sorted(path for path in (SDK / "gateway_client").rglob("*.py") if "__pycache__" not in path.parts)
LIBRARY = [path for path in FILES if "cli" not in path.relative_to(SDK).parts]
OUTSIDE = {"anyio", "cryptography", "h11", "httpcore", "httpx", "msgspec", "rfc8785"}
FOR_THE_COMMAND_LINE = {"click", "rich"}
EXTRAS = {"mcp_server": {"mcp", "mcp_types"}, "langchain.py": {"langchain_core"}, "cli/tui": {"textual"},
          "cli/evidence_export": {"pyarrow"}}  # fmt: skip
"""Packages that an extra of the distribution brings, for these rooms alone."""
MAX_LINES, MAX_FUNCTION_LINES = 400, 60


def imports_of(path: Path) -> set[str]:
    packages: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            packages |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            packages.add((node.module or "").split(".")[0])
    return packages


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SDK)))
def test_nothing_of_the_gateway_is_imported_and_nothing_that_is_not_declared(path: Path) -> None:
    allowed = OUTSIDE | {"gateway_client"} | set(sys.stdlib_module_names)
    if path not in LIBRARY:
        allowed |= FOR_THE_COMMAND_LINE
    room = str(path.relative_to(SDK / "gateway_client"))
    allowed |= {one for name, packages in EXTRAS.items() if f"{room}/".startswith(f"{name}/") for one in packages}
    assert not imports_of(path) - allowed


def test_the_gateway_imports_nothing_of_the_library() -> None:
    broken = [
        str(path.relative_to(SDK.parent))
        for package in ("ipc", "supervisor", "frontend", "workers")
        for path in (SDK.parent / package).rglob("*.py")
        if "gateway_client" in imports_of(path)
    ]
    assert not broken


def test_the_library_works_where_only_what_it_needs_is_installed() -> None:
    """httpx takes click and rich by itself where they are, so that only their absence tells."""
    absent = {"click", "rich", "trio", "contract", "ipc", "frontend", "supervisor", "workers", "tests", "pytest"}
    code = f"""
import sys
for name in {sorted(absent)}:
    sys.modules[name] = None
import gateway_client
assert "gateway_client.cli" not in sys.modules
gateway_client.AgentClient("http://localhost").close()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300, cwd="/")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SDK)))
def test_rooms_stay_small_and_say_what_they_own(path: Path) -> None:
    text = path.read_text()
    tree = ast.parse(text)
    assert ast.get_docstring(tree)
    assert text.count("\n") <= MAX_LINES
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno <= MAX_FUNCTION_LINES, node.name


def test_no_circle_of_imports() -> None:
    arrows: dict[str, set[str]] = {}
    for path in LIBRARY:
        name = ".".join(path.relative_to(SDK).with_suffix("").parts)
        arrows[name] = {
            node.module or "" for node in ast.parse(path.read_text()).body if isinstance(node, ast.ImportFrom)
        }
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join((*trail, name))
        if name not in done:
            for target in arrows.get(name, ()):
                visit(target, (*trail, name))
            done.add(name)

    for name in arrows:
        visit(name, ())


def documented(owner: Any) -> list[str]:
    """Public things of a class or module that have no documentation."""
    missing = []
    for name, one in vars(owner).items():
        if name.startswith("_") or not (inspect.isfunction(one) or isinstance(one, property) or inspect.isclass(one)):
            continue
        if not inspect.getdoc(one):
            missing.append(f"{owner.__name__}.{name}")
    return missing


def test_everything_public_is_documented() -> None:
    missing = []
    for name in gateway_client.__all__:
        one = getattr(gateway_client, name)
        if inspect.isclass(one) or inspect.isfunction(one):
            assert inspect.getdoc(one), name
        if inspect.isclass(one):
            missing += documented(one)
    assert not missing


def test_the_version_is_one_and_types_are_shipped() -> None:
    assert gateway_client.__version__ == version("action-gateway-client")
    project = tomllib.loads((SDK / "pyproject.toml").read_text())
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "gateway_client.version.__version__"}
    assert (SDK / "gateway_client" / "py.typed").is_file()
    declared = {one.partition(">")[0] for one in project["project"]["dependencies"]}
    assert declared == OUTSIDE | FOR_THE_COMMAND_LINE
    assert project["project"]["optional-dependencies"].keys() == {"desk", "langchain", "mcp", "parquet"}


def test_only_the_commands_that_need_an_extra_import_its_package() -> None:
    code = """
import sys
import gateway_client.cli.main
assert not [name for name in sys.modules if name.partition(".")[0] in {"mcp", "mcp_types", "pyarrow", "textual"}]
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300, cwd="/")
