"""How our programs are started: with our code first, and with no code but ours."""

import os
import subprocess
from pathlib import Path

import pytest

from supervisor.programs import INTERPRETER, libraries

EVIL = "raise SystemExit('somebody else\\'s code ran')\n"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder with modules of names that we and the standard library use."""
    for name in ("ipc", "frontend", "supervisor", "json", "argparse", "sitecustomize", "usercustomize"):
        (tmp_path / f"{name}.py").write_text(EVIL)
    return tmp_path


def test_neither_a_current_directory_nor_a_variable_adds_code(elsewhere: Path) -> None:
    done = subprocess.run(
        [*INTERPRETER, "supervisor.cli", "--version"], capture_output=True, text=True, timeout=120, check=False,
        cwd=elsewhere, env=os.environ | {"PYTHONPATH": str(elsewhere), "PYTHONSTARTUP": str(elsewhere / "ipc.py")},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "gateway 0.1.0\n", "")


def test_no_pth_file_runs_code_in_a_program() -> None:
    done = subprocess.run([*INTERPRETER, "site"], capture_output=True, text=True, timeout=120, check=False, cwd="/")
    assert "site-packages" in done.stdout
    assert "__editable__" not in done.stdout


def test_a_program_finds_what_site_added_for_the_gateway_and_no_folder_of_a_user_or_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    standard = os.path.dirname(os.__file__)
    folders = {name: str(tmp_path / name) for name in ("variable", "installed", "added", "user", "users")}
    for folder in folders.values():
        os.mkdir(folder)
    monkeypatch.setattr("site.USER_SITE", folders["user"])
    monkeypatch.setattr("site.getsitepackages", lambda: [folders["installed"]])
    ours = [folders["installed"], folders["added"], "__editable__.finder.__path_hook__"]
    for users in ([], [folders["user"]], [folders["user"], folders["users"]]):  # what it added by a .pth file
        path = [folders["variable"], standard, f"{standard}/lib-dynload", *users, *ours]
        assert libraries(path) == ours[:2]


def test_a_program_is_main_with_its_own_arguments_and_exit_code(tmp_path: Path) -> None:
    command = [*INTERPRETER, "workers.template", "--no-such-option"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd="/")
    assert done.returncode != 0
    assert "usage: " in done.stderr
