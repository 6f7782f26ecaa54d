"""A program of the gateway that can't load its libraries says so in one sentence and has the exit code for it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ipc.process.exits import Exit

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with our start, a program, and beside it a folder of libraries."""
    shutil.copy(ROOT / "launch.py", tmp_path)
    (tmp_path / "ipc").symlink_to(ROOT / "ipc")
    (tmp_path / "libraries").mkdir()
    return tmp_path


def run(tree: Path, program: str) -> "subprocess.CompletedProcess[str]":
    """The program of this text."""
    (tree / "program.py").write_text(program)
    return subprocess.run(
        [sys.executable, str(tree / "launch.py"), "program"], capture_output=True, text=True, timeout=120, check=False,
        env=os.environ | {"PYTHONPATH": str(tree / "libraries"), "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip


def sentence(done: "subprocess.CompletedProcess[str]") -> str:
    (line,) = done.stderr.splitlines()
    return str(json.loads(line)["message"])


def test_a_library_that_is_not_there(tree: Path) -> None:
    done = run(tree, "import no_such_library.part\n")
    assert done.returncode == Exit.UNAVAILABLE
    assert sentence(done).startswith("program can't start: the library no_such_library can't be loaded.")


@pytest.mark.parametrize(
    "fault", ['raise OSError("cannot open shared object file")', 'raise RuntimeError("no such CPU")']
)
def test_a_library_whose_own_part_can_not_be_loaded(tree: Path, fault: str) -> None:
    (tree / "libraries" / "native.py").write_text(f"def load():\n    {fault}\nload()\n")
    done = run(tree, "def main():\n    import native\nmain()\n")
    assert done.returncode == Exit.UNAVAILABLE
    assert sentence(done).startswith("program can't start: the library native can't be loaded.")


@pytest.mark.parametrize(
    "program", ['raise OSError("ours")\n', "import ipc.no_such_module\n", "import json\njson.loads('')\n"]
)
def test_an_internal_error_keeps_its_traceback(tree: Path, program: str) -> None:
    done = run(tree, program)
    assert done.returncode == Exit.FAILED
    assert "Traceback" in done.stderr
