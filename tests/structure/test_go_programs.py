"""scripts/go_programs.sh, with a Go that the test makes: what is built, once, and what is said where nothing can be."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.go_programs import VERSION
from tests.support.manifests import REPOSITORY

SCRIPT = REPOSITORY / "scripts" / "go_programs.sh"
BUILDS = """\
echo "$*" >&2
for last; do :; done
name=$(basename "${last%@*}")
printf '#!/bin/sh\\necho built\\n' > "$GOBIN/$name"
chmod 755 "$GOBIN/$name"
"""


NEEDED = ("bash", "basename", "chmod", "flock", "mkdir", "mktemp", "mv", "nice", "realpath", "rm", "rmdir", "sh")


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """All that is on the PATH: what the script itself needs, and each program but opa."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in (
        "bash",
        "basename",
        "chmod",
        "flock",
        "mkdir",
        "mktemp",
        "mv",
        "nice",
        "realpath",
        "rm",
        "rmdir",
        "sh",
    ):
        program = shutil.which(name)
        assert program is not None
        (folder / name).symlink_to(program)
    for name in VERSION.keys() - {"opa"}:
        put(folder / name, "exit 0")
    return folder


def put(path: Path, lines: str) -> None:
    """A program."""
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)


def run(tools: Path, folder: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    kept = {name: value for name, value in os.environ.items() if name != "CI"}
    return subprocess.run(
        [str(tools / "bash"), str(SCRIPT), str(folder)], env=kept | {"PATH": str(tools)} | environment,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_what_is_missing_is_built_once(tools: Path, tmp_path: Path) -> None:
    put(tools / "go", BUILDS)
    done = run(tools, tmp_path / "go")
    assert done.returncode == 0, done.stderr
    assert "install -trimpath -ldflags=-s -w github.com/open-policy-agent/opa@v" in done.stderr
    assert [one.name for one in (tmp_path / "go").iterdir()] == ["opa"]
    put(tools / "go", "exit 1")
    done = run(tools, tmp_path / "go")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_program_is_named_as_tests_ask_for_it(tools: Path, tmp_path: Path) -> None:
    put(tools / "opa", "exit 0")
    (tools / "openid-provider").unlink()
    put(tools / "go", BUILDS)
    assert run(tools, tmp_path / "go").returncode == 0
    assert [one.name for one in (tmp_path / "go").iterdir()] == ["openid-provider"]


def test_what_is_installed_is_used_if_it_runs(tools: Path, tmp_path: Path) -> None:
    put(tools / "opa", "exit 0")
    done = run(tools, tmp_path / "go")
    assert (done.returncode, done.stderr, (tmp_path / "go").exists()) == (0, "", False)
    put(tools / "opa", "exit 1")
    put(tools / "go", BUILDS)
    assert run(tools, tmp_path / "go").returncode == 0
    assert (tmp_path / "go" / "opa").is_file()


@pytest.mark.parametrize(
    "go", ["exit 1", BUILDS.replace("echo built", "exit 1")], ids=["the build fails", "what was built does not run"]
)
def test_what_can_not_be_built_leaves_nothing_behind(tools: Path, tmp_path: Path, go: str) -> None:
    put(tools / "go", go)
    done = run(tools, tmp_path / "go")
    assert done.returncode == 1
    assert "opa could not be built" in done.stderr.splitlines()[-1]
    assert list((tmp_path / "go").iterdir()) == []


@pytest.mark.parametrize(("environment", "code"), [({}, 0), ({"CI": "true"}, 1)])
def test_without_go_tests_are_left_out_and_in_ci_that_is_a_failure(
    tools: Path, tmp_path: Path, environment: dict[str, str], code: int
) -> None:
    done = run(tools, tmp_path / "go", **environment)
    assert (done.returncode, "no opa found, and no Go" in done.stderr) == (code, True)
