"""Every `pip install` in a document or a text of a program names what the repository builds or a lock file pins."""

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
LINE = re.compile(r"\bpip install ([^`#&\"\n]+)")
WORD = re.compile(r"'([^']*)'|([^\s'),;]+)")
FLAGS = {"--require-hashes", "--no-deps", "--upgrade", "-r"}
LOCK = (ROOT / "requirements-dev.lock").read_text()
PINS = {canonicalize_name(name): version for name, version in re.findall(r"^([\w.-]+)==(\S+)", LOCK, re.MULTILINE)}
PROJECTS = {path: tomllib.loads((ROOT / path / "pyproject.toml").read_text())["project"] for path in (".", "./sdk")}
VERSION = PROJECTS["."]["version"]
BUILT = {f"dist/{one['name'].replace('-', '_')}-{VERSION}-py3-none-any.whl" for one in PROJECTS.values()}


def texts() -> Iterator[Path]:
    """Documents, and files whose words a user reads."""
    for suffix in ("*.md", "*.py", "contrib/*.sh"):
        listed = subprocess.run(["git", "ls-files", suffix], cwd=ROOT, capture_output=True, text=True, check=True)
        yield from (ROOT / name for name in listed.stdout.splitlines() if not name.startswith("tests/"))


def words(rest: str) -> tuple[str, ...]:
    """The arguments of a line: a sentence may go on behind them."""
    found: list[str] = []
    for quoted, plain in WORD.findall(rest):
        word = quoted or plain
        if any(not one.startswith("-") for one in found) and re.fullmatch(r"[a-z]+", word):
            break
        found.append(word)
    return tuple(found)


LINES = sorted({
    (str(path.relative_to(ROOT)), words(rest)) for path in texts() for rest in LINE.findall(path.read_text())
})  # fmt: skip


def why_not(word: str) -> str | None:
    """Why pip would not find this, or None."""
    path, _, extras = word.rstrip("]").partition("[")
    if path in PROJECTS:
        optional = PROJECTS[path].get("optional-dependencies", {})
        if unknown := [extra for extra in extras.split(",") if extra and extra not in optional]:
            return f"{path} has no extra {unknown}"
        wanted = [one for extra in extras.split(",") for one in optional.get(extra, ())]
        needed = [*PROJECTS[path]["dependencies"], *wanted]
        return next((f"no lock file pins {one}" for one in needed if not is_pinned(Requirement(one))), None)
    if word.endswith(".whl"):
        return None if word in BUILT else f"a release builds {BUILT}"
    if word.endswith(".lock"):
        return None if (ROOT / word).is_file() else "there is no such file"
    return None if is_pinned(Requirement(word)) else "no index has it that a lock file knows"


def is_pinned(needed: Requirement) -> bool:
    version = PINS.get(canonicalize_name(needed.name))
    return version is not None and needed.specifier.contains(version, prereleases=True)


@pytest.mark.parametrize(("page", "arguments"), LINES)
def test_a_line_installs_what_there_is(page: str, arguments: tuple[str, ...]) -> None:
    options = {word for word in arguments if word.startswith("-")}
    assert options <= FLAGS, f"{page}: {options - FLAGS}"
    assert ("-r" in options) == ("--require-hashes" in options), f"{page}: a lock file is installed by its hashes"
    named = [word for word in arguments if not word.startswith("-")]
    assert named, page
    assert [(word, why) for word in named if (why := why_not(word))] == [], page


def test_lines_are_found_in_documents_programs_and_scripts() -> None:
    assert {".md", ".py", ".sh"} <= {Path(page).suffix for page, _ in LINES}
    assert ("docs/desk.md", ("./sdk[desk]",)) in LINES


WRONG = ["./sdk[nothing]", "action-gateway", "dist/action_gateway-9.9.9-py3-none-any.whl", "no.lock"]


@pytest.mark.parametrize("word", WRONG)
def test_a_line_about_something_else_is_found(word: str) -> None:
    assert why_not(word) is not None
