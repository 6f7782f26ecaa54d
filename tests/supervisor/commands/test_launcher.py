"""Commands that were started in odd surroundings: they do without, or say so in one sentence."""

import os
import pwd
import resource
import signal
import subprocess
from pathlib import Path

import pytest

from ipc.process.exits import Exit
from supervisor.cli import main
from supervisor.dev.settings import default_state_dir
from supervisor.refusal import Refused
from tests.support.gateway import PROGRAM, START_SECONDS, STOP_SECONDS, gateway, wait_for
from tests.support.processes import family

GATEWAY = PROGRAM[-1]
GATECTL = str(Path(GATEWAY).with_name("gatectl"))


def shell(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command line of bash, in which $GATEWAY and $GATECTL are the programs."""
    return subprocess.run(
        ["bash", "-c", command], capture_output=True, timeout=START_SECONDS, cwd=folder, check=False,
        env=os.environ | {"GATEWAY": GATEWAY, "GATECTL": GATECTL} | environment,
    )  # fmt: skip


def open_files(pid: int) -> int:
    """The soft limit of a process."""
    (line,) = [one for one in Path(f"/proc/{pid}/limits").read_text().splitlines() if one.startswith("Max open files")]
    return int(line.split()[3])


@pytest.mark.parametrize(
    "inherited",
    ["--block-signal", "--block-signal --ignore-signal=TERM", "--ignore-signal=CHLD --ignore-signal=HUP"],
)
def test_a_gateway_that_inherited_odd_signals_serves_and_ends_when_it_is_asked_to(
    tmp_path: Path, inherited: str
) -> None:
    with gateway(tmp_path, program=("/usr/bin/env", *inherited.split(), *PROGRAM)) as gate:
        assert gate.agent().execute("text_digest", {"text": "x"}).status_code == 200
        notary = gate.child("notary")
        notary.kill()  # its end is reported, and it has a successor
        wait_for(lambda: [one for one in gate.children("notary") if one.pid != notary.pid], "the next notary")
        assert gate.agent().execute("text_digest", {"text": "x"}).status_code == 200
        gate.process.send_signal(signal.SIGTERM)
        assert gate.process.wait(STOP_SECONDS) == Exit.OK


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
def test_a_gateway_with_closed_standard_streams_serves(tmp_path: Path, closed: str) -> None:
    with gateway(tmp_path, program=("bash", "-c", f'exec "$0" "$@" {closed}', *PROGRAM)) as gate:
        assert gate.agent().execute("text_digest", {"text": "x"}).status_code == 200
        opened = {os.readlink(f"/proc/{gate.process.pid}/fd/{one}") for one in range(3)}
        assert not any(one.startswith(("socket:", "anon_inode:")) for one in opened)


def test_the_soft_limit_of_open_files_is_raised_for_all_but_those_that_have_their_own(tmp_path: Path) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with gateway(tmp_path, program=("bash", "-c", 'ulimit -Sn 256; exec "$0" "$@"', *PROGRAM)) as gate:
        titles = {name.removeprefix("gateway: "): pid for pid, name in family(gate.process.pid).items()}
        assert [open_files(titles[name]) for name in ("front 1", "notary", "template")] == [hard] * 3
        workers = [pid for name, pid in titles.items() if name.startswith("worker")]
        assert workers
        wait_for(  # a worker has its title a moment before its walls
            lambda: all(open_files(pid) <= 128 for pid in workers), "workers that may open few files"
        )


@pytest.mark.parametrize("command", ["status", "ps", "dev", "check --dev", "policy check p", "logs", "keys list"])
def test_a_working_directory_that_is_gone_is_one_sentence(tmp_path: Path, command: str) -> None:
    done = shell(f"mkdir d && cd d && rmdir ../d && exec $GATEWAY {command}", tmp_path)
    assert done.stderr.count(b"\n") == 1 or b"usage: " in done.stderr
    assert b"Traceback" not in done.stderr
    assert done.returncode in (Exit.NO_PERMISSION, Exit.USAGE)


@pytest.mark.parametrize("command", ["status", "ps", "reload", "drain", "dev", "check --dev"])
def test_a_path_that_is_not_utf8_is_one_sentence(tmp_path: Path, command: str) -> None:
    done = shell(f"exec $GATEWAY {command} --state-dir $'s\\xff'", tmp_path)
    assert (done.returncode, done.stderr) == (Exit.USAGE, b"gateway: the argument b's\\xff' is not UTF-8.\n")
    done = shell("HOME=$'/h\\xff' XDG_STATE_HOME= exec $GATEWAY status", tmp_path)
    assert (done.returncode, done.stderr) == (Exit.USAGE, b"gateway: HOME b'/h\\xff' is not UTF-8.\n")


@pytest.mark.parametrize("command", ["--help", "schema", "check --dev", "doctor", "nonsense"])
def test_standard_output_that_is_gone_or_full_or_closed_is_no_traceback(tmp_path: Path, command: str) -> None:
    for target in ("| true", ">/dev/full", ">&-"):
        done = shell(f"set -o pipefail; $GATEWAY {command} {target}", tmp_path, HOME=str(tmp_path))
        assert b"Traceback" not in done.stderr
        assert b"Exception ignored" not in done.stderr
        assert target != ">/dev/full" or done.returncode != 0 or command == "--help"  # argparse ignores that


@pytest.mark.parametrize("command", ["--help", "--version", "context list", "nonsense"])
def test_gatectl_has_no_traceback_either(tmp_path: Path, command: str) -> None:
    for around in ("{} | true", "{} >/dev/full", "{} >&-", "{} <&- 2>&-", "mkdir d; cd d; rmdir ../d; {}"):
        done = shell(around.format(f"$GATECTL {command}"), tmp_path, HOME=str(tmp_path))
        assert b"Traceback" not in done.stderr, around
        assert b"Exception ignored" not in done.stderr, around


def test_a_user_without_a_home_folder_is_told_to_name_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unknown(_: int) -> None:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    with pytest.raises(Refused, match="Name a folder: --state-dir DIR"):
        default_state_dir({})
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert main(["status"]) == Exit.NO_PERMISSION
    assert "has no home folder" in capsys.readouterr().err
