"""The names in the documents exist: files, names in files, fields of a manifest."""

import ast
import re
from pathlib import Path

import pytest

from frontend.actions.registry import load_manifests
from frontend.files.problems import Report
from frontend.manifests.reading import manifest_of, read_bytes

ROOT = Path(__file__).resolve().parents[2]
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text()
MANIFESTS = (ROOT / "docs" / "manifests.md").read_text()
CODE = re.compile(r"`([^`\n]+)`")
FOLDERS = "|".join(path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith("."))
PATH = re.compile(rf"(?:{FOLDERS})/[\w./-]*|[A-Z]+\.md")


def spans() -> list[tuple[str, list[str]]]:
    """Every path in backticks, with the names in backticks that follow it before the next path."""
    pairs: list[tuple[str, list[str]]] = []
    for paragraph in re.split(r"\n\n|\n(?=\|)", re.sub(r"```.*?```", "", ARCHITECTURE, flags=re.DOTALL)):
        current: list[str] | None = None
        end = 0
        for match in CODE.finditer(paragraph):
            # Names belong to a path only as long as nothing but a few words stands between them.
            if current is not None and len(paragraph[end : match.start()].split()) > 2:
                current = None
            text, end = match[1], match.end()
            if PATH.fullmatch(text):
                current = []
                pairs.append((text, current))
            elif current is not None and re.fullmatch(r"[A-Za-z_]\w*", text):
                current.append(text)
    return pairs


def names_in(path: Path) -> set[str]:
    """Classes, functions, methods and constants of a module."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


def settings_of(page: Path) -> list[tuple[int, str]]:
    """Number of the table and first cell, of every row that begins with a name in backticks."""
    rows, table = [], 0
    for line in page.read_text().splitlines():
        if not line.startswith("|"):
            table += 1
        elif (cell := line.split("|")[1].strip()).startswith("`"):
            rows.append((table, cell))
    return rows


@pytest.mark.parametrize("page", ["configuration", "gatectl", "manifests", "metrics"])
def test_a_table_says_only_once_what_a_name_means(page: str) -> None:
    rows = settings_of(ROOT / "docs" / f"{page}.md")
    assert len(rows) > 20
    assert [row for row in rows if rows.count(row) > 1] == []


def test_every_file_that_the_architecture_names_exists() -> None:
    named = [path for path, _ in spans()]
    assert len(named) > 80
    assert not [path for path in named if not (ROOT / path).exists()]


def test_every_name_stands_in_the_file_that_the_architecture_says() -> None:
    wrong = [
        f"{path} {name}"
        for path, names in spans()
        if path.endswith(".py")
        for name in names
        if name not in names_in(ROOT / path)
    ]
    assert not wrong


TITLES = ("front 1", "policy 1", "template", "deliverer", "broker", "exporter", "worker http 1")


@pytest.mark.parametrize("title", TITLES)
def test_the_architecture_shows_every_kind_of_process(title: str) -> None:
    tree = ARCHITECTURE.partition("gateway: supervisor")[2].partition("```")[0]
    assert title in re.split(r",? *\n[ |]*\\_ |, |\n", tree)


def test_the_manifest_in_the_document_loads(tmp_path: Path) -> None:
    blocks = re.findall(r"```yaml\n(action_id.*?)```", MANIFESTS, re.DOTALL)
    assert blocks
    for number, block in enumerate(blocks):
        (tmp_path / f"{number}.yaml").write_text(block)
    manifests, problems = load_manifests(tmp_path, has_proxy=False)
    assert not problems
    assert len(manifests) == len(blocks)


_SECRET = [
    "secrets:", "- zzz: 1", "  inject: {zzz: 1, basic: {zzz: 1}, oauth2_client_credentials: {zzz: 1}}"
]  # fmt: skip


def test_every_field_that_a_manifest_may_have_is_documented() -> None:
    """The reader itself says what it knows, when it is asked for what it does not know."""
    sections = ("resource_limits", "io", "egress", "template", "mcp", "fs", "verification_config")
    lines = ["zzz: 1", "verifier_kind: fs_hash", *_SECRET]
    lines += [f"{name}: {{zzz: 1}}" for name in sections]
    report = Report("m.yaml")
    tree = read_bytes("\n".join(lines).encode(), report)
    assert tree is not None
    manifest_of(tree, report, has_proxy=False)
    known = [problem.mend for problem in report.problems if problem.message.startswith('unknown field "zzz"')]
    assert len(known) == len(sections) + 5
    fields = {name for mend in known for name in mend.removeprefix("Known here: ").rstrip(".").split(", ")}
    assert len(fields) > 40
    dotted = re.findall(r"`(\w+(?:\.\w+)*)`", MANIFESTS)
    documented = {word for name in dotted for word in name.split(".")}
    assert not fields - documented


BOUNDS = re.findall(r"^\| `(\w+)` \| integer \| (\d+) \| ([\d^]+) to ([\d^]+)", MANIFESTS, re.MULTILINE)


def number(text: str) -> int:
    base, _, power = text.partition("^")
    return int(base) ** int(power) if power else int(base)


@pytest.mark.parametrize(("name", "default", "low", "high"), BOUNDS, ids=[row[0] for row in BOUNDS])
def test_the_bounds_of_a_number_are_those_that_the_document_says(name: str, default: str, low: str, high: str) -> None:
    def problem(value: int) -> str:
        report = Report("m.yaml")
        text = "\n".join(f"{section}: {{{name}: {value}}}" for section in ("resource_limits", "io", "fs"))
        tree = read_bytes(text.encode(), report)
        assert tree is not None
        manifest_of(tree, report, has_proxy=False)
        return "".join(entry.message + entry.mend for entry in report.problems if f"{name} = {value}:" in entry.message)

    assert not problem(number(low))
    assert not problem(number(high))
    assert f"must be {number(low)} or more.The default is {default}." in problem(number(low) - 1)
    assert f"must be {number(high)} or less.The default is {default}." in problem(number(high) + 1)


def test_every_number_has_its_bounds_in_the_document() -> None:
    assert {row[0] for row in BOUNDS} == {
        "fuel", "memory_mb", "max_io_calls", "max_request_bytes", "max_response_bytes", "max_file_bytes",
        "max_total_bytes", "max_files",
    }  # fmt: skip
