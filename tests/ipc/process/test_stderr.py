"""Lines of a process whose standard error is not read: pipes, sockets, terminals, with and without permission."""

import array
import fcntl
import json
import os
import pty
import select
import socket
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.gateway import wait_for

ROOT = Path(__file__).parents[3]
SECONDS = 60
LINES = 3000
"""Each has some hundred bytes: together they are several times larger than a pipe or a socket buffer."""

PROGRAM = """
import sys
sys.path.insert(0, %r)
from ipc.process import stderr
from ipc.process.logs import log
%s
log.info("first")
for number in range(%d):
    log.info("filling", number=number, padding="." * 100)
print(stderr.stderr.dropped, flush=True)
sys.stdin.readline()
log.info("last")
print("done", flush=True)
stderr.let_go_of_stderr()
"""


@contextmanager
def talkative(stderr: int, prepare: str = "stderr.own_stderr()") -> Iterator["subprocess.Popen[bytes]"]:
    """A process that says more than is read, then waits for a line on its standard input."""
    program = PROGRAM % (str(ROOT), prepare, LINES)
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line_of(process: "subprocess.Popen[bytes]") -> bytes:
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], SECONDS)[0], "it waits for a reader of its log"
    return process.stdout.readline()


def go_on(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdin is not None
    process.stdin.write(b"\n")
    process.stdin.flush()


def taken(reader: int) -> bytes:
    """All that waits there now."""
    os.set_blocking(reader, False)
    found = b""
    while True:
        try:
            found += os.read(reader, 65536)
        except BlockingIOError:
            return found


def check_told(process: "subprocess.Popen[bytes]", reader: int) -> None:
    """It went on without a reader; once there is one, it says how many lines are missing, and no line is broken."""
    dropped = int(line_of(process))
    assert dropped > 0
    before = taken(reader)
    go_on(process)
    assert line_of(process) == b"done\n"
    said = b""

    def has_last() -> bool:
        nonlocal said
        said += taken(reader)
        return b'"last"' in said

    wait_for(has_last, "the last line", SECONDS)
    lines: list[dict[str, Any]] = [json.loads(line) for line in (before + said).splitlines()]
    (told,) = [line for line in lines if line["message"] == "log lines were dropped"]
    assert told["dropped"] == dropped
    assert lines[0]["time"] <= told["since"] <= told["time"]
    assert [line["message"] for line in lines[-2:]] == ["log lines were dropped", "last"]
    assert len([line for line in lines if line["message"] == "filling"]) == LINES - dropped


def test_an_unread_pipe_stops_no_process_and_dropped_lines_are_reported() -> None:
    reader, writer = os.pipe()
    try:
        with talkative(writer) as process:
            check_told(process, reader)
            assert not fcntl.fcntl(writer, fcntl.F_GETFL) & os.O_NONBLOCK  # the launcher's own still waits
    finally:
        os.close(reader)
        os.close(writer)


def test_a_pipe_that_can_not_be_opened_anew_stops_no_process_and_loses_no_line_it_took() -> None:
    reader, writer = os.pipe()
    denied = """
import os
def denied(*_):
    raise PermissionError(13, "denied")
os.open, opened = denied, os.open
stderr.own_stderr()
os.open = opened
"""
    try:
        with talkative(writer, denied) as process:
            dropped = int(line_of(process))
            assert dropped > 0
            said = bytearray()

            def times(text: bytes) -> int:
                said.extend(taken(reader))
                return said.count(text)

            # All of it: the next line finds room only where the thread has carried those before it.
            wait_for(lambda: times(b'"filling"') == LINES - dropped, "what was taken", SECONDS)
            go_on(process)
            wait_for(lambda: times(b'"last"'), "the last line", SECONDS)
            lines = [json.loads(line) for line in bytes(said).splitlines()]
            assert sum(line.get("dropped", 0) for line in lines) == dropped
    finally:
        os.close(reader)
        os.close(writer)


def test_an_unread_socket_stops_no_process_and_dropped_lines_are_reported() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, talkative(theirs.fileno()) as process:
        check_told(process, ours.fileno())
        assert theirs.getblocking()


def test_a_journal_that_takes_no_entry_and_no_line_stops_no_process(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    prepare = f"""
from ipc.process.journald import JournaldSocket
from ipc.process.logs import LogWriter, write_lines
write_lines(LogWriter(journal=JournaldSocket({str(tmp_path / "journal")!r})))
"""
    with ours, theirs, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
        journal.bind(str(tmp_path / "journal"))
        with talkative(theirs.fileno(), prepare) as process:
            assert int(line_of(process)) > 0
            entries = taken(journal.fileno())
            go_on(process)
            assert line_of(process) == b"done\n"
            last = taken(journal.fileno())
    assert b"MESSAGE=first\n" in entries
    assert last.index(b"MESSAGE=log lines were dropped") < last.index(b"MESSAGE=last")


def test_a_terminal_that_is_stopped_stops_no_process() -> None:
    master, slave = pty.openpty()
    try:
        with talkative(slave) as process:
            assert int(line_of(process)) > 0
            assert not fcntl.fcntl(slave, fcntl.F_GETFL) & os.O_NONBLOCK
    finally:
        os.close(master)
        os.close(slave)


def test_a_line_longer_than_a_pipe_takes_whole_is_left_out_of_one_that_fills() -> None:
    reader, writer = os.pipe()
    prepare = """
stderr.own_stderr()
for number in range(12):
    log.info("long", number=number, padding="." * 9000)
"""
    try:
        with talkative(writer, prepare) as process:
            line_of(process)
            lines = [json.loads(line) for line in taken(reader).splitlines()]
            assert {line["message"] for line in lines} >= {"long", "first"}
    finally:
        os.close(reader)
        os.close(writer)


def test_a_fork_does_not_report_the_lines_that_its_parent_dropped(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    waiting = array.array("i", [0])
    prepare = f"""
import os
stderr.own_stderr()
for number in range({LINES}):
    log.info("filling", padding="." * 100)
if os.fork() == 0:
    open({str(tmp_path / "told")!r}, "w").write(str(stderr.stderr.dropped))
    os._exit(0)
os.wait()
"""
    try:
        with talkative(writer, prepare) as process:
            assert int(line_of(process)) > 0
            assert (tmp_path / "told").read_text() == "0"
            fcntl.ioctl(reader, termios.FIONREAD, waiting)
            assert waiting[0] > 0
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.parametrize("name", ["/dev/full", "/dev/null"])
def test_a_device_is_written_to_as_it_takes_lines(name: str) -> None:
    device = os.open(name, os.O_WRONLY)
    try:
        with talkative(device) as process:
            assert (int(line_of(process)) > 0) is (name == "/dev/full")
    finally:
        os.close(device)
