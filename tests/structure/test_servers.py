"""scripts/servers.sh: what it takes for the programs of tests, what it says without one, and that it leaves nothing
half made."""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import squid

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "servers.sh"
NEEDED = (
    "basename",
    "bash",
    "cat",
    "chmod",
    "dirname",
    "flock",
    "id",
    "mkdir",
    "mktemp",
    "mv",
    "nice",
    "readlink",
    "realpath",
    "rm",
    "sh",
)
"""Tools that every system has."""


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """All that is on the PATH: a strace, a browser, and a squid that does not run, whatever else this machine
    has."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in NEEDED:
        program = shutil.which(name)
        assert program is not None
        (folder / name).symlink_to(program)
    put(folder / "squid", "exit 1")
    put(folder / "strace", "exit 0")
    put(folder / "redis-server", "exit 0")
    put(folder / "chromium", "exit 0")
    return folder


def put(path: Path, lines: str) -> None:
    """A program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)


def run(tools: Path, folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(tools / "bash"), str(SCRIPT), str(folder)], env=os.environ | {"PATH": str(tools)}, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip


def test_an_installed_squid_is_used_as_it_is(tools: Path, tmp_path: Path) -> None:
    put(tools / "squid", "exit 0")
    done = run(tools, tmp_path / "servers")
    assert (done.returncode, done.stderr, (tmp_path / "servers").exists()) == (0, "", False)


def test_one_that_was_fetched_is_used_again(tools: Path, tmp_path: Path) -> None:
    put(tmp_path / "servers" / "bin" / "squid", "exit 0")
    done = run(tools, tmp_path / "servers")
    assert (done.returncode, done.stderr) == (0, "")


def test_without_apt_it_says_what_to_install(tools: Path, tmp_path: Path) -> None:
    done = run(tools, tmp_path / "servers")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "servers: no squid found, and no apt-get to fetch it with; install the package squid (a service need not run)"
    ]


def test_a_fetch_that_fails_is_said_and_leaves_nothing(tools: Path, tmp_path: Path) -> None:
    put(tools / "dpkg", "exit 0")
    put(tools / "apt-get", "echo 'E: no network' >&2; exit 100")
    done = run(tools, tmp_path / "made" / "servers")
    assert done.returncode == 1
    assert "squid could not be fetched" in done.stderr
    assert list((tmp_path / "made").iterdir()) == []


def test_what_was_fetched_is_put_there_whole_and_runs(tools: Path, tmp_path: Path) -> None:
    put(tools / "apt-get", 'while [ "$1" != -c ]; do shift; done; cd "$(dirname "$2")/archives" && : > squid_1_all.deb')
    put(
        tools / "dpkg",
        'mkdir -p "$3/usr/sbin"; printf "#!/bin/sh\\necho ran\\n" > "$3/usr/sbin/squid"; chmod 755 "$3/usr/sbin/squid"',
    )
    folder = tmp_path / "made" / "servers"
    (folder.parent / "servers.AbCdEf" / "lists").mkdir(parents=True)  # of one that was killed
    done = run(tools, folder)
    assert done.returncode == 0, done.stderr
    assert subprocess.run([folder / "bin" / "squid"], capture_output=True, text=True, check=True).stdout == "ran\n"
    assert [one.name for one in folder.parent.iterdir()] == ["servers"]
    assert sorted(one.name for one in folder.iterdir()) == ["bin", "root"]


def test_what_is_missing_is_fetched_together_and_runs(tools: Path, tmp_path: Path) -> None:
    put(tools / "strace", "exit 1")
    put(tmp_path / "servers" / "bin" / "squid", "exit 0")  # fetched before a strace was wanted
    put(
        tools / "apt-get",
        'echo "$*" >&2; while [ "$1" != -c ]; do shift; done; cd "$(dirname "$2")/archives" && : > strace_1_all.deb',
    )
    put(
        tools / "dpkg",
        'mkdir -p "$3/usr/sbin" "$3/usr/bin"; for one in usr/sbin/squid usr/bin/strace; do'
        ' printf "#!/bin/sh\\necho ran\\n" > "$3/$one"; chmod 755 "$3/$one"; done',
    )
    done = run(tools, tmp_path / "servers")
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("servers: fetching squid and strace for the tests")
    assert "install squid strace" in done.stderr
    for name in ("squid", "strace"):
        program = tmp_path / "servers" / "bin" / name
        assert subprocess.run([program], capture_output=True, text=True, check=True).stdout == "ran\n"


@pytest.mark.parametrize("name", ["chromium-headless-shell", "google-chrome"])
def test_any_browser_that_runs_will_do_and_one_that_does_not_is_fetched(tools: Path, tmp_path: Path, name: str) -> None:
    put(tools / "squid", "exit 0")
    put(tools / "chromium", "exit 1")  # some systems have a program in its place that only says where to get one
    put(tools / name, "exit 0")
    done = run(tools, tmp_path / "servers")
    assert (done.returncode, done.stderr) == (0, "")
    put(tools / name, "exit 1")
    put(
        tools / "apt-get",
        'while [ "$1" != -c ]; do shift; done; cd "$(dirname "$2")/archives" && : > chromium-headless-shell_1_all.deb',
    )
    put(
        tools / "dpkg",
        'mkdir -p "$3/usr/lib/chromium" "$3/usr/lib/x86_64-linux-gnu/pulseaudio"; cd "$3/usr/lib/chromium"; '
        'printf "#!/bin/sh\necho \\$LD_LIBRARY_PATH\n" > chromium-headless-shell; chmod 755 *',
    )
    done = run(tools, tmp_path / "servers")
    assert done.returncode == 0, done.stderr
    program = tmp_path / "servers" / "bin" / "chromium-headless-shell"
    told = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    assert "/usr/lib/x86_64-linux-gnu/pulseaudio" in told, "where a library lies that another one needs"


def test_of_two_at_once_one_fetches_and_the_other_takes_that(tools: Path, tmp_path: Path) -> None:
    put(tools / "dpkg", "exit 0")
    put(tools / "apt-get", "echo 'E: asked' >&2; exit 100")
    lock = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with subprocess.Popen(
        [str(tools / "bash"), str(SCRIPT), str(tmp_path / "servers")], env=os.environ | {"PATH": str(tools)},
        stderr=subprocess.PIPE, text=True,
    ) as second:  # fmt: skip
        try:
            assert second.stderr is not None
            assert second.stderr.readline().startswith("servers: fetching")
            put(tmp_path / "servers" / "bin" / "squid", "exit 0")
            os.close(lock)
            said = second.communicate(timeout=60)[1]
        finally:
            second.kill()
    assert (second.returncode, said) == (0, "")


def test_tests_run_the_squid_that_was_found_to_run(
    tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = tmp_path / "servers"
    put(fetched / "bin" / "squid", "exit 0")
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    assert squid.program(fetched)[0] == str(fetched / "bin" / "squid")
    put(tools / "squid", "exit 0")
    assert squid.program(fetched) == (str(tools / "squid"), None)
