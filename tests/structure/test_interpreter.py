"""scripts/interpreter.sh: which Python the virtual environment is built with, and what it says."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.manifests import REPOSITORY

SCRIPT = REPOSITORY / "scripts" / "interpreter.sh"
OPTIMISED, PLAIN, DEBIAN = "'--enable-optimizations' '--enable-shared'", "'--enable-shared'", "debian"


def a_python(folder: Path, build: str, *, version: tuple[int, int, int] = (3, 11, 9), has_venv: bool = True) -> Path:
    """A python3 in a folder of its own: this interpreter, that tells another build of itself."""
    changes = [
        "import sys, sysconfig",
        f"sys.version_info = {version}",
        f"sysconfig.get_config_var = {{'CONFIG_ARGS': {build!r}}}.get",
        f"sysconfig.get_scheme_names = lambda: ({('deb_system' if build == DEBIAN else 'posix_prefix')!r},)",
        "" if has_venv else "sys.modules['ensurepip'] = None",
        "exec(sys.argv[1])",
    ]
    folder.mkdir()
    program = folder / "python3"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c {shlex.quote(chr(10).join(changes))} "$2"\n')
    program.chmod(0o755)
    return program


def chosen(*programs: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """The script's answer with these programs on the PATH, in this order, and a shell."""
    bash = shutil.which("bash")
    assert bash is not None
    path = os.pathsep.join(str(program.parent) for program in programs)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHON"}
    return subprocess.run(
        [bash, str(SCRIPT)], env={**kept, "PATH": path, **environment}, capture_output=True, text=True, timeout=60
    )  # fmt: skip


@pytest.mark.parametrize("build", [OPTIMISED, DEBIAN])
def test_an_optimised_build_is_taken_before_an_earlier_one_without(tmp_path: Path, build: str) -> None:
    first, second = a_python(tmp_path / "a", PLAIN), a_python(tmp_path / "b", build)
    answer = chosen(first, second)
    assert (answer.returncode, answer.stdout) == (0, f"{second}\n")
    assert answer.stderr == f"setup: taking {second} (Python 3.11.9, an optimised build)\n"


def test_the_first_of_several_optimised_builds_is_taken(tmp_path: Path) -> None:
    first, second = a_python(tmp_path / "a", OPTIMISED, version=(3, 12, 1)), a_python(tmp_path / "b", DEBIAN)
    assert chosen(first, second).stdout == f"{first}\n"


def test_a_single_build_without_optimisation_is_taken(tmp_path: Path) -> None:
    only = a_python(tmp_path / "a", PLAIN)
    answer = chosen(only)
    assert (answer.returncode, answer.stdout) == (0, f"{only}\n")
    assert answer.stderr == f"setup: taking {only} (Python 3.11.9, built without optimisation)\n"


def test_an_optimised_build_without_venv_is_passed_over_and_named(tmp_path: Path) -> None:
    plain, bare = a_python(tmp_path / "a", PLAIN), a_python(tmp_path / "b", DEBIAN, has_venv=False)
    answer = chosen(plain, bare)
    assert (answer.returncode, answer.stdout) == (0, f"{plain}\n")
    assert f"{bare} is an optimised build, but comes without venv" in answer.stderr


def test_a_build_without_venv_is_taken_where_it_is_the_only_one(tmp_path: Path) -> None:
    bare = a_python(tmp_path / "a", DEBIAN, has_venv=False)
    answer = chosen(bare)
    assert (answer.returncode, answer.stdout) == (0, f"{bare}\n")


def test_an_optimised_build_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old, plain = a_python(tmp_path / "a", OPTIMISED, version=(3, 10, 13)), a_python(tmp_path / "b", PLAIN)
    assert chosen(old, plain).stdout == f"{plain}\n"


def test_where_every_python_is_too_old_its_version_is_told(tmp_path: Path) -> None:
    answer = chosen(a_python(tmp_path / "a", OPTIMISED, version=(3, 10, 13)))
    assert (answer.returncode, answer.stdout) == (1, "")
    assert "Python 3.10.13 is too old; Python 3.11 or later is needed" in answer.stderr


def test_without_any_python_it_says_what_to_install(tmp_path: Path) -> None:
    broken = tmp_path / "a" / "python3"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    answer = chosen(broken)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert "install Python 3.11 or later" in answer.stderr


def test_the_python_that_is_named_is_taken_whatever_its_build(tmp_path: Path) -> None:
    optimised, named = a_python(tmp_path / "a", OPTIMISED), a_python(tmp_path / "b", PLAIN)
    answer = chosen(optimised, PYTHON=str(named))
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, f"{named}\n", "")


def test_a_named_python_that_is_missing_or_too_old_is_refused(tmp_path: Path) -> None:
    present = a_python(tmp_path / "a", OPTIMISED)
    old = a_python(tmp_path / "b", OPTIMISED, version=(3, 10, 13))
    for named in (str(tmp_path / "missing"), str(old)):
        assert chosen(present, PYTHON=named).returncode == 1


def test_this_interpreter_answers_the_question_itself(tmp_path: Path) -> None:
    (tmp_path / "python3").symlink_to(sys.executable)
    answer = chosen(tmp_path / "python3")
    assert (answer.returncode, answer.stdout) == (0, f"{tmp_path / 'python3'}\n")
