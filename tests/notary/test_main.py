"""How the process of a notary ends, and what it says of it: its supervisor goes by the code, people by the line."""

import json
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from ipc.channel.framing import encode_frame
from ipc.limits import MAX_CONTROL_FRAME
from ipc.messages.notarising import AttachFront, StartNotary, StopNotary
from ipc.process.exits import Exit
from ipc.settings import LedgerSettings, Settings, StoreSettings
from ipc.walls.confining import WallRefused
from notary.main import run
from supervisor.programs import INTERPRETER
from tests.notary.running import ROOT, NotaryProcess, Running, settings_in
from tests.notary.test_checkpoints import grow
from tests.support.logs import capture_logs

SECONDS = 60.0
Spoil = Callable[[Settings, Path], Settings]


def ended(process: "subprocess.Popen[str]") -> tuple[int, list[dict[str, object]]]:
    """Its exit code and its log."""
    _, said = process.communicate(timeout=SECONDS)
    return process.returncode, [json.loads(line) for line in said.splitlines()]


def let_others_read(settings: Settings, folder: Path) -> Settings:
    (folder / "keys" / "grant.pem").chmod(0o644)
    return settings


def take_key(settings: Settings, folder: Path) -> Settings:
    (folder / "keys" / "grant.pem").unlink()
    return settings


def put_elsewhere(settings: Settings, folder: Path) -> Settings:
    return msgspec.structs.replace(settings, ledger=LedgerSettings(path=str(folder / "none" / "ledger.sqlite3")))


def take_checkpoints(settings: Settings, folder: Path) -> Settings:
    notary = Running(folder)
    grow(notary)
    notary.close()
    (folder / "checkpoints").unlink()
    return settings


def lock_checkpoints(settings: Settings, folder: Path) -> Settings:
    (folder / "checkpoints").mkdir()  # as a container's volume leaves one in the place of a file
    return settings


def with_redis(url: str) -> Spoil:
    return lambda settings, folder: msgspec.structs.replace(
        settings, store=StoreSettings(redis_url=url.format(folder=folder))
    )


FAULTS: dict[str, tuple[Spoil, Exit, str]] = {
    "a key that others may read": (let_others_read, Exit.CONFIG, "the notary can't start"),
    "a key that is not there": (take_key, Exit.NO_PERMISSION, "the notary can't start"),
    "a folder that is not there": (
        put_elsewhere, Exit.UNAVAILABLE, "the notary can't start: its database is not available"
    ),
    "a file of checkpoints that is gone": (
        take_checkpoints, Exit.ROLLED_BACK, "the notary can't start: its ledger was put back, cut or rewritten"
    ),
    "a file of checkpoints that can't be read": (lock_checkpoints, Exit.UNAVAILABLE, "the notary can't start"),
    "a Redis that nobody serves": (
        with_redis("unix://{folder}/none"), Exit.UNAVAILABLE, "the notary can't start: its store is not available"
    ),
    "a Redis whose name nobody knows": (
        with_redis("redis://no-such-name.invalid"), Exit.UNAVAILABLE,
        "the notary can't start: its store is not available",
    ),
    "an address of no Redis": (with_redis("gopher://host"), Exit.CONFIG, "the notary can't start"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_failed_start_has_an_exit_code_and_one_line_for_its_reason(tmp_path: Path, fault: str) -> None:
    spoil, code, words = FAULTS[fault]
    process = NotaryProcess(spoil(settings_in(tmp_path), tmp_path), stderr=subprocess.PIPE)
    try:
        exit_code, lines = ended(process.process)
        assert exit_code == code, lines
        (line,) = lines
        assert (line["level"], line["process"], line["message"]) == ("error", "notary", words)
        assert line["cause"]
    finally:
        process.end()


@contextmanager
def begun(*more: str) -> Iterator[tuple["subprocess.Popen[str]", socket.socket]]:
    """A notary that was sent nothing yet, and its supervisor's end."""
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            command = [*INTERPRETER, "notary.main", "--control-fd", str(theirs.fileno()), "--parent", str(os.getpid())]
            process = subprocess.Popen(
                [*command, *more], cwd=ROOT, pass_fds=(theirs.fileno(),), text=True, stderr=subprocess.PIPE
            )
        try:
            yield process, ours
        finally:
            process.kill()
            process.communicate(timeout=SECONDS)


@pytest.mark.parametrize(
    "data", [b"\0\0\0\5hello", encode_frame(AttachFront("front-1"), MAX_CONTROL_FRAME)],
    ids=["no message", "a front before the settings"],
)  # fmt: skip
def test_a_supervisor_that_breaks_the_protocol_is_not_served(data: bytes) -> None:
    with begun() as (process, ours):
        ours.sendall(data)
        code, lines = ended(process)
    assert code == Exit.PROTOCOL
    assert [line["message"] for line in lines] == ["the supervisor broke the protocol"]


@pytest.mark.parametrize(
    ("problem", "code", "words"),
    [
        (WallRefused("landlock"), Exit.SANDBOX, "the operating system refused a wall"),
        (RuntimeError("ours"), Exit.FAILED, "the notary ended by an error"),
    ],
)
def test_a_refused_wall_and_an_internal_error_have_exit_codes_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: Exception, code: Exit, words: str
) -> None:
    def fails(*_: object) -> None:
        raise problem

    monkeypatch.setattr("ipc.walls.confining.enter", fails)
    ours, theirs = socket.socketpair()
    with ours, theirs, capture_logs() as lines:
        ours.sendall(encode_frame(StartNotary(settings_in(tmp_path)), MAX_CONTROL_FRAME))
        assert run(theirs) is code
    assert [(line["log_level"], line["event"]) for line in lines] == [("error", words)]


def test_a_supervisor_that_is_gone_leaves_no_notary() -> None:
    with begun() as (process, ours):
        ours.close()
        assert ended(process) == (Exit.ORPHANED, [])


def test_a_stopped_notary_exits_with_0_and_logs_no_error(tmp_path: Path) -> None:
    process = NotaryProcess(settings_in(tmp_path), stderr=subprocess.PIPE)
    process.ready()
    process._control.send(StopNotary())
    code, lines = ended(process.process)
    process.end()
    assert code == Exit.OK
    assert {(line["level"], line["process"]) for line in lines} <= {("info", "notary")}


OF_SUPERVISOR, OF_READER = ["--control-fd", "0"], ["--channel-fd", "0", "--parent", "1"]


@pytest.mark.parametrize(("program", "arguments"), [
    ("main", []), ("main", OF_SUPERVISOR), ("main", ["--control", "0", "--parent", "1"]),
    ("reader", OF_READER), ("reader", ["--channel", "0", "--parent", "1", "file"]),
    ("programs.trace", ["trc_1", "file"]), ("programs.trace", ["trc_1", "file", "--par", "1"]),
])  # fmt: skip
def test_a_command_line_that_is_not_a_supervisor_s_is_refused(program: str, arguments: list[str]) -> None:
    done = subprocess.run(
        [*INTERPRETER, f"notary.{program}", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=SECONDS,
        check=False,
    )  # fmt: skip
    assert done.returncode == Exit.USAGE
    assert done.stderr.startswith(f"usage: notary.{program}")
