"""The desk over real channels with a runner that a test plays: the messages to its peers, and the events that it waits
for."""

import json
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

import workers.worker_loop
from ipc.channel.blocking import BlockingChannel, ChannelClosed
from ipc.channel.packets import PacketChannel, packet_pair
from ipc.channel.protocol_states import ProtocolError
from ipc.limits import MAX_CALL_FRAME, MAX_CONTROL_FRAME
from ipc.messages.attesting import NoPermit, NotaryToWorker, Permit
from ipc.messages.calling import Call, Drop, FrontToWorker, Observation, Result, Verification, WorkerReady
from ipc.plan import CallLimits, SecretUse
from ipc.process.exits import Exit
from ipc.protocols.worker import FRONT_TO_WORKER, NOTARY_TO_WORKER
from tests.support.readable import readable
from tests.support.worker_peers import Worker
from tests.support.worker_plans import make_plan
from workers.crew import Crew
from workers.host.http import Renew
from workers.sandbox.places import WalledPaths
from workers.worker_loop import DROP_SECONDS, WorkerLoop

CAP = 2000
PLAN = make_plan()
RESULT = Result("", "success", "{}", None, Verification("skipped"), (), 5, 5, 0)


class FakeResolver(NamedTuple):
    is_stuck: bool


class FakeOutside(NamedTuple):
    resolver: FakeResolver


@dataclass
class FakeRunner:
    """Runs nothing: every call has one result."""

    result: Result = RESULT
    outside: FakeOutside | None = None
    ran: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)

    def run(self, call: Call, word: Permit, secrets: Mapping[str, str], renew: Renew) -> Result:
        assert word.call_id == call.call_id
        self.ran.append((call.call_id, secrets))
        return msgspec.structs.replace(self.result, call_id=call.call_id)


class Seated(NamedTuple):
    """A desk and the peers of its worker."""

    desk: WorkerLoop
    peers: Worker
    runner: FakeRunner
    channels: tuple[socket.socket, socket.socket]

    def close(self) -> None:
        self.peers.close()
        for channel in self.channels:
            channel.close()


Seating = Callable[..., Seated]


@pytest.fixture
def seat(request: pytest.FixtureRequest) -> Seating:
    def seat(
        runner: FakeRunner | None = None, *, recycle_after_calls: int = 1000, drop_seconds: float = DROP_SECONDS,
        crew: Crew | None = None, standing: WalledPaths | None = None,
    ) -> Seated:  # fmt: skip
        runner = runner or FakeRunner()
        fronts, workers = socket.socketpair()
        attesting, attested = packet_pair()
        front: BlockingChannel[Any] = BlockingChannel(
            workers, FrontToWorker, table=FRONT_TO_WORKER, cap_in=MAX_CALL_FRAME, cap_out=CAP
        )
        notary: PacketChannel[Any] = PacketChannel(
            attested, NotaryToWorker, table=NOTARY_TO_WORKER, cap_in=MAX_CONTROL_FRAME, cap_out=CAP
        )
        peers = Worker("w", 1, fronts, attesting, attested.dup())
        peers.tie()
        played: Any = runner
        desk = WorkerLoop(
            front, notary, played, recycle_after_calls, drop_seconds=drop_seconds, crew=crew, standing=standing
        )
        desk.wait_tied()
        front.send(WorkerReady("w", 1, "compute"))
        peers.receive(WorkerReady)
        seated = Seated(desk, peers, runner, (workers, attested))
        request.addfinalizer(seated.close)
        return seated

    return seat


class Serving:
    """The desk at work in a thread, until its front is gone."""

    def __init__(self, desk: WorkerLoop) -> None:
        self._desk = desk
        self._left: list[Exit] = []
        self.fault = ""
        """Steps of its peers that the protocol forbids."""
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        try:
            self._left.append(self._desk.serve())
        except (ChannelClosed, OSError):
            self._left.append(Exit.ORPHANED)
        except ProtocolError as error:
            self.fault = str(error)
            self._left.append(Exit.PROTOCOL)

    def left(self) -> Exit:
        """Why it left."""
        self._thread.join(60)
        assert len(self._left) == 1, "it serves still, or has failed"
        return self._left[0]


def too_large(seen: int) -> FakeRunner:
    observations = tuple(Observation("http", f"GET http://a.test/{number}", ok=True) for number in range(seen))
    return FakeRunner(msgspec.structs.replace(RESULT, output="x" * 3 * CAP, observations=observations, io_calls=seen))


def test_a_result_too_large_for_a_frame_is_reported_instead_to_both_peers(seat: Seating) -> None:
    desk, peers, _, _ = seat(too_large(100), recycle_after_calls=1)
    serving = Serving(desk)
    result = peers.call(PLAN, "c1")
    assert (result.outcome, result.output, result.retiring) == ("bad_output", None, True)
    assert (result.io_calls, len(result.observations)) == (100, 10)
    assert result.verification.outcome == "provider_failed_before_verification"
    peers.hang_up()
    assert serving.left() == Exit.RECYCLED


@pytest.mark.parametrize("runner", [FakeRunner(), too_large(1)], ids=["small", "too large"])
def test_the_notary_gets_a_result_that_the_front_did_not_wait_for(seat: Seating, runner: FakeRunner) -> None:
    desk, peers, _, _ = seat(runner)
    peers.start(PLAN, "c1")
    peers.hang_up()
    assert Serving(desk).left() == Exit.ORPHANED
    assert peers.attested().call_id == "c1"


def test_a_worker_whose_resolver_hangs_says_that_it_retires(seat: Seating) -> None:
    desk, peers, _, _ = seat(FakeRunner(outside=FakeOutside(FakeResolver(is_stuck=True))))
    peers.start(PLAN, "c1")
    serving = Serving(desk)
    assert peers.ended("c1").retiring
    peers.hang_up()
    assert serving.left() == Exit.RECYCLED


def test_a_worker_leaves_whose_shared_call_does_not_end(seat: Seating, capfd: pytest.CaptureFixture[str]) -> None:
    may_end = threading.Event()

    class StuckRunner(FakeRunner):
        def run(self, call: Call, word: Permit, secrets: Mapping[str, str], renew: Renew) -> Result:
            may_end.wait(300)
            return super().run(call, word, secrets, renew)

    make: Any = StuckRunner
    crew = Crew(make, stuck_seconds=0.05)
    crew.start()
    desk, peers, _, _ = seat(crew=crew)
    serving = Serving(desk)
    try:
        peers.start(make_plan(isolation="shared", limits=CallLimits(timeout_seconds=0.05)), "c1")
        assert serving.left() == Exit.FAILED
    finally:
        may_end.set()
    assert not peers.has_told()
    (line,) = capfd.readouterr().err.splitlines()
    assert json.loads(line)["trace_ids"] == ["trc_1"]


class HeldRunner(FakeRunner):
    """Ends each call once it may; the call "fails" at once, with no result."""

    may_end = threading.Event()

    def run(self, call: Call, word: Permit, secrets: Mapping[str, str], renew: Renew) -> Result:
        if call.call_id == "fails":
            raise MemoryError
        assert self.may_end.wait(300)
        return super().run(call, word, secrets, renew)


@pytest.fixture
def held() -> Iterator[Crew]:
    """A crew whose calls end once HeldRunner.may_end is set."""
    HeldRunner.may_end.clear()
    make: Any = HeldRunner
    crew = Crew(make)
    crew.start()
    yield crew
    HeldRunner.may_end.set()


def until_begun(crew: Crew, names: Iterable[str]) -> None:
    deadline = time.monotonic() + 60
    while not all(crew.is_running(name) for name in names):
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_the_notary_gets_the_result_of_each_shared_call_of_an_idle_front(seat: Seating, held: Crew) -> None:
    desk, peers, _, channels = seat(crew=held)
    serving = Serving(desk)
    names = [f"c{number}" for number in range(8)]
    for name in names:
        peers.start(make_plan(isolation="shared"), name)
    until_begun(held, names)
    channels[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 50_000))
    with suppress(BlockingIOError):
        while channels[0].send(b"x" * 4096, socket.MSG_DONTWAIT):
            pass
    HeldRunner.may_end.set()
    assert serving.left() == Exit.ORPHANED
    assert sorted(peers.attested().call_id for _ in names) == names


def test_a_shared_call_without_a_result_costs_none_of_the_others_theirs(
    seat: Seating, held: Crew, capfd: pytest.CaptureFixture[str]
) -> None:
    desk, peers, _, _ = seat(crew=held)
    serving = Serving(desk)
    names = ["c1", "c2", "c3"]
    for name in names:
        peers.start(make_plan(isolation="shared"), name)
    until_begun(held, names)
    peers.start(make_plan(isolation="shared", trace_id="trc_fails"), "fails")
    HeldRunner.may_end.set()
    assert serving.left() == Exit.FAILED
    assert sorted(peers.attested().call_id for _ in names) == names
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert {(line["message"], line["trace_id"]) for line in lines} == {("a call failed", "trc_fails")}


def replaced(path: Path) -> WalledPaths:
    """A worker's look at a file, which is another one by now."""
    path.write_text("nameserver 192.0.2.1")
    standing = WalledPaths(str(path))
    path.with_suffix(".new").write_text("nameserver 192.0.2.2")
    path.with_suffix(".new").rename(path)
    return standing


def test_a_worker_with_shared_calls_goes_on_until_its_front_has_heard_that_it_retires(
    seat: Seating, held: Crew, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers.worker_loop, "LOOK_SECONDS", 0.05)
    standing, noticed = replaced(tmp_path / "resolv.conf"), threading.Event()

    def has_gone() -> bool:
        noticed.set()
        return True

    monkeypatch.setattr(standing, "has_gone", has_gone)
    desk, peers, _, _ = seat(crew=held, standing=standing)
    peers.start(make_plan(isolation="shared"), "c1")
    serving = Serving(desk)
    assert noticed.wait(60)
    peers.start(make_plan(isolation="shared"), "c2")
    until_begun(held, ["c1", "c2"])
    HeldRunner.may_end.set()
    told = [peers.attested() for _ in range(2)]
    assert [(result.outcome, result.retiring) for result in told] == [("success", True)] * 2
    peers.hang_up()
    assert serving.left() == Exit.RECYCLED


def test_a_worker_that_is_never_idle_notices_that_what_it_may_open_is_gone(
    seat: Seating, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers.worker_loop, "LOOK_SECONDS", 0.5)
    desk, peers, _, _ = seat(standing=replaced(tmp_path / "resolv.conf"), recycle_after_calls=10**9)
    peers.start(PLAN, "first")
    Serving(desk)
    peers.ended("first")
    deadline = time.monotonic() + 60
    while not peers.call(PLAN).retiring:
        assert time.monotonic() < deadline


def test_a_worker_that_is_woken_after_it_has_taken_a_result_sleeps_again(seat: Seating) -> None:
    make: Any = FakeRunner
    crew = Crew(make)
    crew.start()
    desk, peers, _, _ = seat(crew=crew)
    os.eventfd_write(crew.fileno(), 1)  # as a thread does whose result was taken a moment before
    serving = Serving(desk)
    deadline = time.monotonic() + 60
    while readable(crew.fileno(), 0):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert peers.call(make_plan(isolation="shared"), "c1").outcome == "success"
    peers.hang_up()
    assert serving.left() == Exit.ORPHANED


def test_a_word_taken_back_at_the_last_moment_leaves_the_worker_attentive_to_its_front(
    seat: Seating, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The word is there when the worker looks, and has been taken back when it reads."""
    desk, peers, runner, _ = seat()
    real = desk._poll

    class TakenBack:
        def poll(self, milliseconds: float | None) -> list[tuple[int, int]]:
            ready = real.poll(milliseconds)
            peers.take_back()
            return ready

    monkeypatch.setattr(desk, "_poll", TakenBack())
    serving = Serving(desk)
    peers.start(PLAN, "c1")
    peers.hang_up()
    assert serving.left() == Exit.ORPHANED
    assert runner.ran == []


@pytest.mark.parametrize("meanwhile", [b"", b"\0\0\1\0half"], ids=["silent", "in the middle of a message"])
def test_a_front_that_never_drops_a_refused_call_ends_its_worker(seat: Seating, meanwhile: bytes) -> None:
    desk, peers, runner, _ = seat(drop_seconds=0.05)
    peers.give(PLAN, "c1")
    peers.notary.send(NoPermit("c1"))
    peers.raw(meanwhile)
    serving = Serving(desk)
    assert serving.left() == Exit.PROTOCOL
    assert serving.fault == "the front did not drop a call that was refused"
    assert runner.ran == []


def test_the_desk_keeps_nothing_of_a_call_but_its_result(seat: Seating) -> None:
    desk, peers, runner, _ = seat()
    serving = Serving(desk)
    plan = make_plan(secrets=(SecretUse("token"),))
    for name in ("c1", "c2"):
        peers.call(plan, name, secrets={"token": "s3cret-value"})
    peers.give(plan, "c3", {"token": "s3cret-value"})
    peers.channel.send(Drop("c3"))
    peers.call(plan, "c4", secrets={"token": "another"})
    peers.hang_up()
    assert serving.left() == Exit.ORPHANED
    values = [("c1", "s3cret-value"), ("c2", "s3cret-value"), ("c4", "another")]
    assert runner.ran == [(name, {"token": value}) for name, value in values]
    assert (desk._plans, desk._secrets) == ({}, {})
    assert [result.call_id for result in desk._told] == ["c4"]
