"""Contents that the repository must never have, and contents that it must have."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MACHINE_PATHS = re.compile(r"(?<![\w.])/(work|root|home)/[\w.-]")
LOCKS = ("requirements.lock", "sdk/requirements.lock", "requirements-dev.lock")
NEEDED = (
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "LICENSE",
    "Makefile",
    ".ci/run",
)


def tracked_texts() -> list[tuple[Path, str]]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=300,
    ).stdout.splitlines()  # fmt: skip
    texts = []
    for name in listed:
        path = ROOT / name
        if path.is_file() and path.suffix not in {".wasm", ".sqlite3"}:
            texts.append((path, path.read_text(encoding="utf-8")))
    return texts


def test_no_path_of_a_machine_stands_in_the_repository() -> None:
    broken = [
        f"{path.relative_to(ROOT)}:{number}"
        for path, text in tracked_texts()
        for number, line in enumerate(text.splitlines(), 1)
        if MACHINE_PATHS.search(line)
    ]
    assert not broken


def test_lock_files_name_packages_and_hashes_only() -> None:
    for name in LOCKS:
        text = (ROOT / name).read_text()
        assert "://" not in text
        assert "--index" not in text
        for block in re.split(r"\n(?=[a-z])", text):
            assert "--hash=sha256:" in block, block


@pytest.mark.parametrize("name", NEEDED)
def test_a_newcomer_finds_the_documents(name: str) -> None:
    assert (ROOT / name).is_file()


@pytest.mark.parametrize("lock", LOCKS)
def test_every_runtime_package_is_in_the_development_lock_with_the_same_version(lock: str) -> None:
    def versions(name: str) -> set[str]:
        return set(re.findall(r"^([a-z0-9._-]+==[^ ;\\]+)", (ROOT / name).read_text(), re.M))

    assert versions(lock) <= versions("requirements-dev.lock")


def test_an_installation_from_the_lock_can_export_spans() -> None:
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["otlp"]
    locked = re.findall(r"^([a-z0-9._-]+)==", (ROOT / "requirements.lock").read_text(), re.M)
    assert {re.split("[<>=]", one)[0] for one in wanted} <= set(locked)
