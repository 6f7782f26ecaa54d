"""The citations of docstrings, comments and documents exist: files, modules and errors of this repository, and sections
of documents.

A file is cited by its path from the root (`frontend/http/heads.py`), a section by the document and its heading
(`docs/decisions/identity.md, "DPoP"`, `[egress.md](egress.md), "Live sync"`).
"""

import ast
import builtins
import importlib.util
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.packages import PACKAGES

pytestmark = pytest.mark.large


ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "sdk/README.md"]
CITED_PATH = re.compile(
    r"(?<![\w./-])(?:contract|ipc|supervisor|frontend|notary|workers|providers|sdk|contrib|bench|tests|docs|scripts)/"
    r"[\w./-]*[\w/]"
)
CITED_SECTION = re.compile(r'((?:docs/(?:[\w-]+/)*|\b)[\w-]+\.md)[`)]*,?\s((?:(?: and|,)?\s?"[^"\n]+")+)')
CITING = re.compile(rf"{CITED_PATH.pattern}|\.md\b|nterface\b|nterface-")
"""A part of each citation, and of the words that must not be there: a file without it need not be read word by word."""
CITING_COMMENT = re.compile(rf"#.*(?:{CITING.pattern})")
RUN = re.compile(r"python3? -m ([a-z][\w.]*\w)")
MADE = {"bench/results/", "build/providers"}
"""Folders that a make target writes."""
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
RAISED = re.compile(r"\bRaises ([^.;:]+)")
NAMING = re.compile(r"^ *(?:class \w+|from \S+ import (?:\([^)]*\)|.*))", re.MULTILINE)
ERROR_NAME = re.compile(r"(?<![\w.])[A-Z][a-z]+(?:[A-Z][a-z]+)*\b")
OTHER_NAMES = frozenset({"Cancelled", "JavaScript", "PostgreSQL", "Unicode"})
DOCSTRING_OWNERS = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def sources() -> list[Path]:
    files = [path for package in (*PACKAGES, "sdk", "bench", "tests") for path in (ROOT / package).rglob("*.py")]
    return sorted(path for path in files if "__pycache__" not in path.parts and path != Path(__file__).resolve())


def prose_of(path: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of each docstring, those behind a constant or a field too, and of each comment block."""
    text = path.read_text()
    for node in ast.walk(ast.parse(text)):
        for statement in getattr(node, "body", ()) if isinstance(node, DOCSTRING_OWNERS) else ():
            value = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield statement.lineno, value.value
    if not CITING_COMMENT.search(text):
        return
    first = 0
    lines: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if lines and token.start[0] != first + len(lines):
                yield first, "\n".join(lines)
                lines = []
            first = first if lines else token.start[0]
            lines.append(token.string.lstrip("#: "))
    if lines:
        yield first, "\n".join(lines)


@cache
def citing_texts() -> tuple[tuple[Path, int, str], ...]:
    files = [path for path in sources() if CITING.search(path.read_text())]
    prose = [(path, line, text) for path in files for line, text in prose_of(path)]
    return (*prose, *((path, 1, path.read_text()) for path in DOCUMENTS))


@cache
def headings(path: Path) -> frozenset[str]:
    return frozenset(title.replace("`", "") for title in HEADING.findall(path.read_text()))


def document(name: str, cited_in: Path) -> Path:
    """The document that a name means: from the root, or beside the one that cites it."""
    beside = cited_in.parent / name
    return beside if cited_in.suffix == ".md" and beside.is_file() else ROOT / name


def test_citations_are_found_at_all() -> None:
    texts = [text for _, _, text in citing_texts()]
    assert sum(len(CITED_PATH.findall(text)) for text in texts) > 300
    assert sum(len(CITED_SECTION.findall(" ".join(text.split()))) for text in texts) > 50


def test_every_file_that_is_cited_exists() -> None:
    missing = [
        f"{path.relative_to(ROOT)}:{line} cites {cited}"
        for path, line, text in citing_texts()
        for cited in CITED_PATH.findall(text)
        if cited not in MADE and not (ROOT / cited).exists()
    ]
    assert not missing


def test_every_error_that_a_docstring_names_is_a_class_of_the_code() -> None:
    files = [path for path in sources() if "tests" not in path.parts]
    names = {name for path in files for found in NAMING.findall(path.read_text()) for name in re.findall(r"\w+", found)}
    names |= {*dir(builtins), *OTHER_NAMES}
    unknown = [
        f"{path.relative_to(ROOT)}:{line} raises {name}"
        for path in files
        if "Raises " in path.read_text()
        for line, text in prose_of(path)
        for told in RAISED.findall(text)
        for name in ERROR_NAME.findall(told)
        if name not in names
    ]
    assert not unknown


def test_every_section_that_is_cited_exists() -> None:
    missing = [
        f"{path.relative_to(ROOT)}:{line} cites {name}, {section}"
        for path, line, text in citing_texts()
        for name, quoted in CITED_SECTION.findall(" ".join(text.split()))
        for section in re.findall(r'"([^"]+)"', quoted)
        if not document(name, path).is_file() or section not in headings(document(name, path))
    ]
    assert not missing


def test_every_module_that_is_told_to_be_run_exists() -> None:
    told = {name for path in [*sources(), *DOCUMENTS] for name in RUN.findall(path.read_text())}
    assert len(told) > 40
    assert not [name for name in sorted(told) if name != "ziglang" and not importable(name)]


def importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize("text", ["interface specification", "Interface specification", "interface-spec"])
def test_only_documents_of_this_repository_are_cited(text: str) -> None:
    assert not [str(path.relative_to(ROOT)) for path, _, prose in citing_texts() if text in " ".join(prose.split())]
