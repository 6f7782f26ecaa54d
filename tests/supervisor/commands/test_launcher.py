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
from tests.support.gateway import PROGRAM, START_SECONDS, STOP_SECONDS, Gateway, gateway, wait_for
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


def test_a_gateway_that_was_started_in_odd_surroundings_serves_and_ends_when_it_is_asked_to(tmp_path: Path) -> None:
    signals = ("--block-signal", "--ignore-signal=TERM", "--ignore-signal=CHLD", "--ignore-signal=HUP")
    odd = ("bash", "-c", 'ulimit -Sn 256; exec /usr/bin/env "$@" <&- 2>&-', "bash", *signals)
    with gateway(tmp_path, program=(*odd, *PROGRAM)) as gate:
        assert gate.agent().execute("text_digest", {"text": "x"}).status_code == 200
        opened = {os.readlink(f"/proc/{gate.process.pid}/fd/{one}") for one in range(3)}
        assert not any(one.startswith(("socket:", "anon_inode:")) for one in opened)
        check_open_files(gate)
        notary = gate.child("notary")
        notary.kill()  # its end is reported, and it has a successor
        wait_for(lambda: [one for one in gate.children("notary") if one.pid != notary.pid], "the next notary")
        assert gate.agent().execute("text_digest", {"text": "x"}).status_code == 200
        gate.process.send_signal(signal.SIGTERM)
        assert gate.process.wait(STOP_SECONDS) == Exit.OK


def check_open_files(gate: Gateway) -> None:
    """The soft limit is raised for all but those that have their own."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    titles = {name.removeprefix("gateway: "): pid for pid, name in family(gate.process.pid).items()}
    assert [open_files(titles[name]) for name in ("front 1", "notary", "template")] == [hard] * 3
    workers = [pid for name, pid in titles.items() if name.startswith("worker")]
    assert workers
    wait_for(  # a worker has its title a moment before its walls
        lambda: all(open_files(pid) <= 128 for pid in workers), "workers that may open few files"
    )


def test_a_working_directory_that_is_gone_is_one_sentence(tmp_path: Path) -> None:
    done = shell("mkdir d && cd d && rmdir ../d && exec $GATEWAY status", tmp_path)
    assert (done.returncode, done.stderr.count(b"\n")) == (Exit.NO_PERMISSION, 1), done.stderr


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("$GATEWAY check --dev --state-dir $'s\\xff'", "the argument b's\\xff'"),
        ("HOME=$'/h\\xff' XDG_STATE_HOME= $GATEWAY status", "HOME b'/h\\xff'"),
    ],
)
def test_a_path_that_is_not_utf8_is_one_sentence(tmp_path: Path, command: str, what: str) -> None:
    done = shell(command, tmp_path)
    assert (done.returncode, done.stderr.decode()) == (Exit.USAGE, f"gateway: {what} is not UTF-8.\n")


GONE, FULL, CLOSED = "{} | true", "{} >/dev/full", "{} >&-"
DOCUMENT = (
    '{"openapi": "3.0.3", "info": {"title": "t", "version": "1"}, "servers": [{"url": "https://a.example"}], '
    '"paths": {"/a": {"get": {"operationId": "a", "responses": {"200": {"description": "x"}}}}}}'
)


@pytest.mark.parametrize(
    ("command", "surroundings"),
    [
        ("$GATEWAY --help", (GONE, FULL, CLOSED)),
        ("$GATEWAY schema config", (GONE, FULL, CLOSED)),  # more than is written at once
        ("$GATEWAY schema manifest", (GONE, "{} | head -1", FULL, CLOSED)),
        ("$GATEWAY doctor", (GONE, FULL, CLOSED)),
        (f"echo '{DOCUMENT}' >d; $GATEWAY import openapi d --out o --force", (GONE, FULL, CLOSED)),
        ("mkdir -p p; $GATEWAY policy test p", (GONE, FULL, CLOSED)),
        ("$GATEWAY new action a >&2 --from github_issue; $GATEWAY test actions my-gateway/actions", (GONE, FULL)),
        ("$GATECTL --help", (GONE, FULL, CLOSED)),
        ("$GATECTL context list", (GONE, FULL, CLOSED, "mkdir d; cd d; rmdir ../d; {}")),
        ("$GATECTL nonsense", ("{} <&- 2>&-",)),
    ],
)
def test_standard_streams_that_are_gone_or_full_or_closed_are_no_traceback(
    tmp_path: Path, command: str, surroundings: tuple[str, ...]
) -> None:
    for around in surroundings:
        done = shell(f"set -o pipefail; {around.format(command)}", tmp_path, HOME=str(tmp_path))
        assert b"Traceback" not in done.stderr, around
        assert b"Exception ignored" not in done.stderr, around
        # argparse ignores that
        assert around != FULL or done.returncode != 0 or command == "$GATEWAY --help"


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
