"""The reader process, with a front that the test plays."""

import os
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ipc import messages as m
from ipc.blocking import BlockingChannel, ChannelClosed
from ipc.events import AuditEvent
from ipc.exits import Exit
from ipc.limits import MAX_READER_FRAME
from ipc.sessions import READER_TO_FRONT
from supervisor.programs import INTERPRETER
from tests.support.played_supervisor_of_notary import played_supervisor

SECONDS = 60.0
EVENTS = 600


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A ledger of some chunks of events, open as a notary has it: its write-ahead log is there."""
    folder: Path = tmp_path_factory.mktemp("ledger")
    with played_supervisor(folder) as supervisor:
        front = supervisor.attach("front-1-a")
        for _ in range(EVENTS):
            front.value(m.Note(AuditEvent(event_type="AdminDrain", trace_id="trc_1", decision="allow")))
        supervisor.stop()
    file = folder / "state" / "ledger.sqlite3"
    with closing(sqlite3.connect(file)) as notarys:
        notarys.execute("SELECT count(*) FROM events").fetchone()
        yield file


class PlayedFront:
    """What a front has of a reader."""

    def __init__(self, file: Path, parent: int) -> None:
        ours, theirs = socket.socketpair()
        ours.settimeout(SECONDS)
        command = ["notary.reader", "--channel-fd", str(theirs.fileno()), "--parent", str(parent)]
        with theirs:
            self.process = subprocess.Popen(
                [*INTERPRETER, *command, str(file)], pass_fds=(theirs.fileno(),), cwd="/",
                stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
        self.sock = ours
        self.channel: BlockingChannel[Any] = BlockingChannel(
            ours, m.ReaderToFront, table=READER_TO_FRONT, start="walking", cap_in=MAX_READER_FRAME,
            cap_out=MAX_READER_FRAME,
        )  # fmt: skip

    def answer(self) -> Any:
        """What it says once it does not walk any more."""
        while isinstance(message := self.channel.receive(), m.Walking):
            pass
        return message

    def ended(self) -> tuple[int, str]:
        """Exit code, or minus a signal, and what it logged."""
        _, said = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, said


@contextmanager
def reader(file: Path, parent: int | None = None) -> Iterator[PlayedFront]:
    front = PlayedFront(file, os.getpid() if parent is None else parent)
    try:
        yield front
    finally:
        front.channel.close()
        front.process.kill()
        front.process.communicate(timeout=SECONDS)


def test_it_says_that_it_walks_answers_and_leaves(ledger: Path) -> None:
    with reader(ledger) as front:
        front.channel.send(m.VerifyChain())
        assert front.channel.receive() == m.Walking(0)
        report = front.answer().report
        assert (report.intact, report.events_checked, report.total_events) == (True, EVENTS, EVENTS)
        with pytest.raises(ChannelClosed):
            front.channel.receive()
        assert front.ended() == (Exit.OK, "")


def test_killed_in_the_middle_it_leaves_an_end_of_its_channel_and_a_whole_ledger(ledger: Path) -> None:
    with reader(ledger) as front:
        front.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, front.process.pid, os.WSTOPPED | os.WNOWAIT)
        front.channel.send(m.VerifyChain())
        front.process.kill()
        with pytest.raises((ChannelClosed, OSError)):
            front.channel.receive()
        assert front.ended()[0] == -signal.SIGKILL
    with reader(ledger) as front:
        front.channel.send(m.VerifyChain())
        assert front.answer().report.intact is True


def test_it_ends_when_its_front_does_not_listen_any_more(ledger: Path) -> None:
    with reader(ledger) as front:
        front.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, front.process.pid, os.WSTOPPED | os.WNOWAIT)
        front.channel.send(m.VerifyChain())
        front.channel.close()
        front.process.send_signal(signal.SIGCONT)
        assert front.ended() == (Exit.ORPHANED, "")


def test_what_is_no_question_ends_it(ledger: Path) -> None:
    for said in (b"\xff\xff\xff\xff", (1).to_bytes(4, "big") + b"\xc1", b"\x00\x00"):
        with reader(ledger) as front:
            front.sock.sendall(said)
            front.sock.shutdown(socket.SHUT_WR)
            code, log = front.ended()
            assert code == Exit.PROTOCOL
            assert "broke the protocol" in log


def test_a_file_that_can_not_be_read_is_told(tmp_path: Path) -> None:
    for content, why in ((None, "unable to open"), (b"", "no such table"), (b"no database" * 1000, "not a database")):
        file = tmp_path / "ledger.sqlite3"
        if content is not None:
            file.write_bytes(content)
        with reader(file) as front:
            front.channel.send(m.VerifyChain())
            answer = front.answer()
            told = answer.reason if isinstance(answer, m.NotRead) else answer.report.reason
            assert why in told
            assert front.ended()[0] == Exit.OK


def test_it_never_outlives_the_parent_it_was_told_of(ledger: Path) -> None:
    with reader(ledger, parent=1 if os.getpid() != 1 else 2) as front:
        assert front.ended()[0] == Exit.ORPHANED
