"""Programs that read beside a notary: the reader, with a front that the test plays, and the trace of a request."""

import json
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

import notary.reader
from ipc.channel.blocking import BlockingChannel, ChannelClosed
from ipc.channel.framing import encode_frame
from ipc.evidence.events import AuditEvent
from ipc.limits import MAX_READER_FRAME
from ipc.messages.reading import NotRead, ReaderToFront, VerifyChain, Walking
from ipc.operations.evidence import WriteEvent
from ipc.process.exits import Exit
from ipc.protocols.reader import READER_TO_FRONT
from ipc.walls.confining import WallRefused
from ipc.walls.given import Given
from notary.reading.source import NotReadable, Source
from supervisor.programs import INTERPRETER
from tests.notary.running import ROOT, Running
from tests.notary.samples import make_note, record_call
from tests.support.logs import capture_logs
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
            front.value(WriteEvent(AuditEvent(event_type="AdminDrain", trace_id="trc_1", decision="allow")))
        supervisor.stop()
    file = folder / "state" / "ledger.sqlite3"
    with closing(sqlite3.connect(file)) as notarys:
        notarys.execute("SELECT count(*) FROM events").fetchone()
        yield file


class PlayedFront:
    """A front's end of a reader."""

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
            ours, ReaderToFront, table=READER_TO_FRONT, cap_in=MAX_READER_FRAME,
            cap_out=MAX_READER_FRAME,
        )  # fmt: skip

    def answer(self) -> Any:
        """The reader's message after its walk has ended."""
        while isinstance(message := self.channel.receive(), Walking):
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
        front.channel.send(VerifyChain())
        assert front.channel.receive() == Walking(0)
        report = front.answer().report
        assert (report.intact, report.events_checked, report.total_events) == (True, EVENTS, EVENTS)
        with pytest.raises(ChannelClosed):
            front.channel.receive()
        assert front.ended() == (Exit.OK, "")


def test_killed_in_the_middle_it_leaves_an_end_of_its_channel_and_a_whole_ledger(ledger: Path) -> None:
    with reader(ledger) as front:
        front.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, front.process.pid, os.WSTOPPED | os.WNOWAIT)
        front.channel.send(VerifyChain())
        front.process.kill()
        with pytest.raises((ChannelClosed, OSError)):
            front.channel.receive()
        assert front.ended()[0] == -signal.SIGKILL
    with reader(ledger) as front:
        front.channel.send(VerifyChain())
        assert front.answer().report.intact is True


def test_it_ends_when_its_front_does_not_listen_any_more(ledger: Path) -> None:
    with reader(ledger) as front:
        front.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, front.process.pid, os.WSTOPPED | os.WNOWAIT)
        front.channel.send(VerifyChain())
        front.channel.close()
        front.process.send_signal(signal.SIGCONT)
        assert front.ended() == (Exit.ORPHANED, "")


def test_a_malformed_question_ends_it(ledger: Path) -> None:
    for said in (b"\xff\xff\xff\xff", (1).to_bytes(4, "big") + b"\xc1", b"\x00\x00"):
        with reader(ledger) as front:
            front.sock.sendall(said)
            front.sock.shutdown(socket.SHUT_WR)
            code, log = front.ended()
            assert code == Exit.PROTOCOL
            (line,) = map(json.loads, log.splitlines())
            assert (line["process"], line["message"]) == ("reader", "the front broke the protocol")


def test_an_unreadable_file_is_reported(tmp_path: Path) -> None:
    for content, why in ((None, "unable to open"), (b"", "no such table"), (b"no database" * 1000, "not a database")):
        file = tmp_path / "ledger.sqlite3"
        if content is not None:
            file.write_bytes(content)
        with reader(file) as front:
            front.channel.send(VerifyChain())
            answer = front.answer()
            told = answer.reason if isinstance(answer, NotRead) else answer.report.reason
            assert why in told
            assert front.ended()[0] == Exit.OK


def test_it_never_outlives_its_parent(ledger: Path) -> None:
    with reader(ledger, parent=1 if os.getpid() != 1 else 2) as front:
        assert front.ended()[0] == Exit.ORPHANED


@pytest.mark.parametrize(
    ("place", "problem", "code", "words"),
    [
        ("enter", WallRefused("landlock"), Exit.SANDBOX, "the operating system refused a wall"),
        ("WholeWalk", RuntimeError("ours"), Exit.FAILED, "the reader ended by an error"),
    ],
)
def test_a_refused_wall_and_an_internal_error_have_exit_codes_of_their_own(
    ledger: Path, monkeypatch: pytest.MonkeyPatch, place: str, problem: Exception, code: Exit, words: str
) -> None:
    def fails(*_: object) -> None:
        raise problem

    monkeypatch.setattr(notary.reader, "enter", lambda *_: None)
    monkeypatch.setattr(notary.reader, place, fails)
    ours, theirs = socket.socketpair()
    with ours, theirs, capture_logs() as lines:
        ours.sendall(encode_frame(VerifyChain(), MAX_READER_FRAME))
        assert notary.reader.run(theirs, Source(str(ledger)), Given()) is code
    assert [(line["log_level"], line["event"]) for line in lines] == [("error", words)]


def test_a_long_walk_tells_how_far_it_is(ledger: Path) -> None:
    ours, theirs = socket.socketpair()
    channel: BlockingChannel[Any] = BlockingChannel(
        ours, ReaderToFront, table=READER_TO_FRONT, cap_in=MAX_READER_FRAME,
        cap_out=MAX_READER_FRAME,
    )  # fmt: skip
    with closing(channel), theirs:
        channel.send(VerifyChain())
        assert notary.reader.run(theirs, Source(str(ledger)), tell_seconds=0.0) is Exit.OK
        heard = [channel.receive()]
        while isinstance(heard[-1], Walking):
            heard.append(channel.receive())
    *told, verified = heard
    assert verified.report.total_events == EVENTS
    assert [one.events for one in told] == sorted({one.events for one in told})
    assert 0 < told[-1].events <= EVENTS


@pytest.mark.parametrize(
    ("place", "order"), [("/none", ["walls", "opened"]), ("postgresql://gate@localhost/ledger", ["opened", "walls"])]
)
def test_a_file_is_opened_behind_the_walls_and_a_connection_is_made_before_they_stand(
    monkeypatch: pytest.MonkeyPatch, place: str, order: list[str]
) -> None:
    done = []

    def opens(_: Source) -> None:
        done.append("opened")
        raise NotReadable("there is none")

    monkeypatch.setattr(notary.reader, "enter", lambda *_: done.append("walls"))
    monkeypatch.setattr(notary.reader, "opened", opens)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(encode_frame(VerifyChain(), MAX_READER_FRAME))
        assert notary.reader.run(theirs, Source(place), Given()) is Exit.OK
        assert b"there is none" in ours.recv(4096)
    assert done == order


def traced(*arguments: object) -> "subprocess.CompletedProcess[str]":
    """The program."""
    return subprocess.run(
        [*INTERPRETER, "notary.programs.trace", *map(str, arguments)], cwd=ROOT, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip


def events_of(file: Path, trace_id: str) -> object:
    done = traced(trace_id, file, "--parent", os.getpid())
    assert (done.returncode, done.stderr) == (Exit.OK, "")
    return json.loads(done.stdout)


def test_it_tells_the_events_of_one_request_oldest_first_and_of_no_other(notary: Running) -> None:
    notary.front.ask(make_note(trace_id="trc_1", reason="first"))
    record_call(notary.front)
    notary.front.ask(make_note(trace_id="trc_1", reason="second"))
    wanted = [event for event in notary.events() if event["trace_id"] == "trc_1"]
    assert [event["reason"] for event in wanted] == ["first", "second"]
    assert events_of(notary.path, "trc_1") == wanted
    assert events_of(notary.path, "trc_none") == []


def test_a_file_that_is_no_ledger_is_reported_in_one_sentence(tmp_path: Path) -> None:
    for content in (None, b"no database at all" * 100):
        if content is not None:
            (tmp_path / "ledger").write_bytes(content)
        done = traced("trc_1", tmp_path / "ledger", "--parent", os.getpid())
        assert (done.returncode, done.stdout) == (Exit.UNAVAILABLE, "")
        assert done.stderr.startswith("gateway: ")
        assert done.stderr.count("\n") == 1
