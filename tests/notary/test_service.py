"""The notary at work: fronts take turns, and one that floods, sleeps or breaks the protocol harms only itself."""

import socket
import struct
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from ipc.channel.blocking import ChannelClosed
from ipc.channel.framing import encode_frame
from ipc.evidence.records import EventQuery
from ipc.limits import MAX_NOTARY_FRAME, MAX_OPERATIONS
from ipc.messages.delivering import Woken
from ipc.messages.notarising import FrontDetached, NotaryReady, StopNotary, WorkerEnded
from ipc.messages.notary_frames import NumberedOperation
from ipc.operations.evidence import QueryEvents
from ipc.operations.holds import GetHold, OrphanedHolds
from ipc.operations.leases import ReadEpoch
from ipc.process.exits import Exit
from ipc.settings import ApprovalSettings
from notary.opening import open_state
from notary.operations.table import PERFORMERS
from notary.peers.channels import FrontChannel
from notary.service import Service
from notary.units.runner import TransactionRunner
from notary.units.tasks import Task
from tests.notary.conftest import StartNotary
from tests.notary.running import Running, settings_in, walk
from tests.notary.samples import (
    make_approval,
    make_claim,
    make_denial,
    make_hold,
    make_issue,
    make_note,
    make_revocation,
    make_revoke,
    record_call,
)
from tests.support.asking import Asker
from tests.support.logs import capture_logs
from tests.support.notary_thread import LIMITS
from tests.support.supervised import wait_until

ALL = QueryEvents(EventQuery(limit=1000))


def is_gone(front: Asker) -> bool:
    try:
        front.heard(0)
    except (ChannelClosed, ConnectionResetError):
        return True
    return False


BROKEN = {
    "no frame": b"GET / HTTP/1.1\r\n\r\n",
    "too large a frame": struct.pack(">I", MAX_NOTARY_FRAME + 1),
    "no message": struct.pack(">I", 5) + b"hello",
    "nothing": struct.pack(">I", 0),
    "another direction": encode_frame(Woken(("chat",)), MAX_NOTARY_FRAME),
    "a message of another channel": encode_frame(StopNotary(), MAX_NOTARY_FRAME),
    "an unknown operation": encode_frame(NumberedOperation(1, ReadEpoch()), MAX_NOTARY_FRAME).replace(
        b"ReadEpoch", b"RiseEpoch"
    ),
    "a field too many": encode_frame(NumberedOperation(1, GetHold("a")), MAX_NOTARY_FRAME).replace(
        b"approval_id", b"approval_ix"
    ),
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_a_front_that_breaks_the_protocol_loses_its_channel_and_no_other_does(notary: Running, data: bytes) -> None:
    hostile = notary.attach("hostile")
    with capture_logs() as lines:
        hostile.send_raw(data)
        assert is_gone(hostile)
        record_call(notary.front)
    (said,) = [line for line in lines if line["event"] == "a front's channel ended"]
    assert (said["front"], said["log_level"]) == ("hostile", "error")
    assert walk(notary.front).intact


def test_the_supervisor_is_notified_of_each_front_without_a_channel(notary: Running) -> None:
    assert notary.thread.hears() == NotaryReady()
    notary.attach("again")
    assert notary.attach("again").ask(ReadEpoch()) == 0
    hostile, leaves = notary.attach("hostile"), notary.attach("leaves")
    hostile.send_raw(BROKEN["no message"])
    assert notary.thread.hears() == FrontDetached("hostile")
    leaves.close()
    assert notary.thread.hears() == FrontDetached("leaves")


@pytest.mark.parametrize("is_told", [True, False])
def test_a_notary_ends_on_request_and_when_its_supervisor_is_gone(notary: Running, is_told: bool) -> None:
    thread = notary.thread
    assert thread.hears() == NotaryReady()
    record_call(notary.front)
    (thread.stop if is_told else thread.leave)()
    notary._thread = None
    assert thread.code is (Exit.OK if is_told else Exit.ORPHANED)
    assert walk(notary.start()).intact


def test_requests_before_a_protocol_violation_are_done_whole_or_not_at_all(notary: Running) -> None:
    hostile = notary.attach("hostile")
    hostile.send_raw(encode_frame(NumberedOperation(1, make_note()), MAX_NOTARY_FRAME) + BROKEN["no message"])
    assert is_gone(hostile)
    assert walk(notary.front).total_events in (0, 1)
    assert walk(notary.front).intact


def grown(notary: Running, events: int = 400) -> None:
    """Events whose query is some megabytes."""
    for number in notary.front.send(*[make_note(reason="x" * 5000)] * events):
        notary.front.answer(number)


def test_a_front_that_does_not_read_waits_for_itself_alone_and_gets_everything_once_it_does(notary: Running) -> None:
    grown(notary)
    sleeper = notary.attach("sleeper")
    numbers = sleeper.send(*[ALL] * 8, *[make_note()] * 20)
    for _ in range(50):
        notary.front.ask(make_note())
    assert [len(sleeper.answer(number).events) >= 400 for number in numbers[:8]] == [True] * 8
    for number in numbers[8:]:
        sleeper.answer(number)
    assert walk(notary.front).total_events == 470


def test_a_front_that_leaves_too_much_unread_is_gone(start_notary: StartNotary) -> None:
    notary = start_notary(limits=replace(LIMITS, unsent_bytes=4_000_000))
    grown(notary)
    sleeper = notary.attach("sleeper")
    with capture_logs() as lines:
        sleeper.send(*[ALL] * 8)
        wait_until(lambda: any(line.get("front") == "sleeper" for line in lines))
        notary.front.ask(ALL)
    assert [line["reason"] for line in lines if line.get("front") == "sleeper"] == ["does not take its answers"]
    record_call(notary.front)


def test_an_answer_that_is_too_large_is_a_fault_and_no_end(start_notary: StartNotary) -> None:
    notary = start_notary(limits=replace(LIMITS, answer_bytes=200_000))
    grown(notary, 100)
    numbers = notary.front.send(ReadEpoch(), ALL, ReadEpoch())
    heard = [notary.front.heard(number) for number in numbers]
    assert [(one.problem, one.part) for one in heard] == [(None, None), ("fault", "notary"), (None, None)]


LARGE = '{"plan":{"principal":"uid:1000","request":"' + "x" * 5_000_000 + '"}}'
ROOMY = ApprovalSettings(max_pending_bytes=1 << 30, max_pending_bytes_per_principal=1 << 29)


@pytest.mark.large
def test_claims_of_fronts_that_are_gone_come_in_pieces_that_a_frame_takes(start_notary: StartNotary) -> None:
    notary = start_notary(approvals=ROOMY)
    for number in range(10):
        approval = make_approval(approval_id=f"apr_{number}", body=LARGE)
        notary.front.ask(make_hold(approval))
        notary.front.ask(make_claim(approval, "front-1"))
    later = notary.attach("front-9")
    notary.front.close()
    seen: list[str] = []
    while orphans := later.ask(OrphanedHolds(("front-9",))):
        seen += [approval.approval_id for approval in orphans]
        for approval in orphans:
            later.ask(make_denial(approval))
    assert seen == [f"apr_{number}" for number in range(10)]


@pytest.fixture
def service(notary: Running, tmp_path: Path) -> Iterator[Service]:
    """A service that does not run, with its own state."""
    state, _ = open_state(settings_in(tmp_path / "another"), notary.clock, limits=LIMITS)
    yield Service(state, notary.thread._notarys, {})
    state.database.close()


def test_one_unit_has_room_for_each_front_however_much_one_of_them_asks(service: Service) -> None:
    class Waiting:
        def __init__(self, front_id: str, count: int) -> None:
            self.front_id = front_id
            self.tasks = deque(Task(front_id, number, ReadEpoch()) for number in range(count))

    flood, small = Waiting("flood", 5000), Waiting("small", 3)
    service._fronts._channels = {1: flood, 2: small}  # type: ignore[dict-item]
    first = list(service._fronts.gathered())
    assert len(first) == MAX_OPERATIONS
    assert [task.number for task in first if task.front_id == "small"] == [0, 1, 2]
    assert [task.number for task in first if task.front_id == "flood"] == list(range(MAX_OPERATIONS - 3))
    second = list(service._fronts.gathered())
    assert len(second) == MAX_OPERATIONS
    service._fronts._channels = {}


class Looked(Exception):
    """Instead of a wait."""


class Recorded:
    """A poll that tells how long it would have waited."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def poll(self, seconds: float) -> list[tuple[int, int]]:
        self.seconds.append(seconds)
        raise Looked

    def close(self) -> None:
        """There is nothing behind it."""


def test_a_notary_with_work_waits_for_nothing(service: Service) -> None:
    real, service._poll = service._poll, cast(Any, polled := Recorded())
    service._tended = cast(Any, (service._executions,))  # nothing else is due
    front, notarys = socket.socketpair()
    busy = FrontChannel("front-1", notarys, LIMITS)
    for channels in ({}, {1: busy}):
        service._fronts._channels = channels
        busy.tasks.append(Task("front-1", 1, ReadEpoch()))
        with pytest.raises(Looked):
            service.run()
    service._fronts._channels = {}
    service._executions.note_end(WorkerEnded("worker-1", "exit 0"))
    with pytest.raises(Looked):
        service.run()
    idle, *with_work = polled.seconds
    assert (idle, with_work) == (LIMITS.idle_seconds, [0, 0])
    real.close()
    busy.close()
    front.close()


def test_a_front_that_comes_after_a_failure_gets_the_state_in_force(notary: Running, tmp_path: Path) -> None:
    state, _ = open_state(settings_in(tmp_path / "another"), notary.clock, limits=LIMITS)
    units = TransactionRunner(state, PERFORMERS)
    session_id = units.perform([Task("front-1", 1, make_issue())])[0].value.session_id
    for number, asked in enumerate((make_revocation(session_id), make_revoke()), 2):
        assert units.perform([Task("front-1", number, asked)])[0].value is not None
    service = Service(state, notary.thread._notarys, {})
    state.forget()
    assert (service._told().epoch, service._told().revoked) == (1, (session_id,))
    state.epoch, state.revoked = 2, {}
    assert (service._told().epoch, service._told().revoked) == (2, ())
    state.forget()
    assert (service._told().epoch, service._told().revoked) == (2, ())
    state.epoch = 3
    assert (service._told().epoch, service._told().revoked) == (3, ())
    state.database.close()
