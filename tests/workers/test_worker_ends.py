"""Real workers: how they leave, each with the code that says why."""

from pathlib import Path

import msgspec
import pytest

from ipc.channel.framing import encode_frame
from ipc.channel.packets import PACKET_BYTES
from ipc.limits import MAX_AHEAD, MAX_CALL_FRAME, MAX_CONTROL_FRAME
from ipc.messages.attesting import NoPermit
from ipc.messages.calling import Drop, Retire, Secrets
from ipc.messages.message import Message
from ipc.messages.modules import ModuleFile
from ipc.process.exits import Exit
from tests.support.worker_peers import Worker
from tests.support.worker_plans import call_of, endless_plan, plan_for, word_for
from tests.support.worker_template import Template, busy, has_ended, kill, template
from workers.worker_loop import MAX_PLANS

ECHO = plan_for("echo", {})


def test_a_worker_that_has_served_its_share_says_so_and_leaves(tmp_path: Path) -> None:
    with template(tmp_path, recycle_after_calls=3) as running:
        running.load(ModuleFile("builtin:echo", None, ()))
        worker = running.born()
        assert [worker.call(ECHO).retiring for _ in range(3)] == [False, False, True]
        worker.hang_up()
        assert running.exit_status(worker) == Exit.RECYCLED


def test_a_worker_that_has_served_its_share_runs_what_it_was_given_ahead(tmp_path: Path) -> None:
    with template(tmp_path, recycle_after_calls=1) as running:
        running.load(ModuleFile("builtin:echo", None, ()))
        worker = running.born()
        names = [f"c{number}" for number in range(MAX_AHEAD)]
        for name in names:
            worker.start(ECHO, name)
        assert [(worker.ended(name).outcome) for name in names] == ["success"] * MAX_AHEAD
        worker.hang_up()
        assert running.exit_status(worker) == Exit.RECYCLED


def test_a_retired_worker_leaves_recycled(running: Template) -> None:
    worker = running.born()
    worker.channel.send(Retire())
    worker.hang_up()
    assert running.exit_status(worker) == Exit.RECYCLED


def test_a_worker_whose_front_is_gone_leaves(running: Template) -> None:
    worker = running.born()
    worker.hang_up()
    assert running.exit_status(worker) == Exit.ORPHANED


def test_a_worker_whose_front_is_gone_before_a_notary_spoke_leaves(running: Template) -> None:
    worker = running.spawn()
    worker.hang_up()
    worker.tie()
    assert running.exit_status(worker) == Exit.ORPHANED


def test_a_worker_says_nothing_to_its_front_before_a_notary_has_spoken(running: Template) -> None:
    worker = running.spawn()
    worker.hang_up()
    worker.packet(b"\x03")  # what it hears first; it would have left as an orphan, had it told its front anything
    assert running.exit_status(worker) == Exit.PROTOCOL


def test_a_worker_whose_front_is_gone_tells_the_notary_what_it_ran_and_leaves(running: Template) -> None:
    with busy(running) as (worker, _, release):
        worker.hang_up()
        release.set()
        result = worker.attested()
    assert (result.call_id, result.outcome, result.verification.outcome) == ("c1", "success", "verified")
    assert running.exit_status(worker) == Exit.ORPHANED


def test_a_worker_whose_front_is_gone_before_it_sent_the_plan_leaves_and_tells_nothing(running: Template) -> None:
    worker = running.born()
    worker.hang_up()
    worker.allow(ECHO, "c1")
    assert running.exit_status(worker) == Exit.ORPHANED
    assert not worker.has_told()


def test_a_worker_whose_channel_with_the_notary_is_gone_for_good_leaves(running: Template) -> None:
    worker = running.born()
    worker.attesting.close()
    assert running.exit_status(worker) == Exit.ORPHANED


def test_a_worker_outlives_its_notary(running: Template) -> None:
    worker = running.born()
    assert worker.call(ECHO).outcome == "success"
    for _ in range(3):
        worker.tie()
    assert worker.call(ECHO).outcome == "success"


NO_FRAMES = {"garbage": b"\0\0\0\x03abc", "half a frame": b"\0\0\1\0half"}
"""One frame of each way to fail; tests/ipc/channel/test_framing.py has all others."""


@pytest.mark.parametrize("data", NO_FRAMES.values(), ids=NO_FRAMES.keys())
@pytest.mark.parametrize("is_waiting", [False, True], ids=["idle", "in a call"])
def test_bytes_of_the_front_that_are_no_message_end_the_worker(
    running: Template, data: bytes, is_waiting: bool
) -> None:
    worker = running.born()
    worker.raw(data)
    if is_waiting:
        worker.allow(ECHO, "c1")
    if not is_waiting or data == NO_FRAMES["half a frame"]:  # an idle worker reads no plans before it hears a word
        worker.hang_up()
    assert running.exit_status(worker) == Exit.PROTOCOL


def tagged(kind: str, **fields: object) -> bytes:
    return msgspec.msgpack.encode({"type": kind, **fields})


NO_PACKETS = {
    "garbage": b"\x03abc",
    "a front's message": b"\x03" + tagged("Retire"),
    "longer than a packet": b"\x03" + b"x" * (PACKET_BYTES + 1),
}
"""tests/ipc/channel/test_packet_faults.py has all other packets."""


@pytest.mark.parametrize("data", NO_PACKETS.values(), ids=NO_PACKETS.keys())
@pytest.mark.parametrize("is_tied", [False, True])
def test_a_packet_of_the_notary_that_is_no_message_ends_the_worker(
    running: Template, data: bytes, is_tied: bool
) -> None:
    worker = running.born() if is_tied else running.spawn()
    worker.packet(data)
    assert running.exit_status(worker) == Exit.PROTOCOL


def test_a_message_of_the_notary_over_the_cap_ends_the_worker(running: Template) -> None:
    worker = running.born()
    worker.packet(b"\x01" + b"x" * PACKET_BYTES)
    for _ in range(MAX_CONTROL_FRAME // PACKET_BYTES):
        worker.packet(b"\x00" + b"x" * PACKET_BYTES)
    assert running.exit_status(worker) == Exit.PROTOCOL


@pytest.mark.parametrize("message", [word_for(ECHO), NoPermit("c1")], ids=["a word", "no word"])
def test_a_notary_that_does_not_begin_with_tied_ends_the_worker(running: Template, message: Message) -> None:
    worker = running.spawn()
    worker.packet(b"\x03" + msgspec.msgpack.encode(message))
    assert running.exit_status(worker) == Exit.PROTOCOL


FRONTS: dict[str, list[Message]] = {
    "secrets of no call": [Secrets("c1", {"a": "b"})],
    "secrets of a dropped call": [call_of(ECHO), Drop("c1"), Secrets("c1", {"a": "b"})],
    "a call after it was retired": [Retire(), call_of(ECHO)],
    "retired twice": [Retire(), Retire()],
    "more plans than it keeps": [call_of(ECHO, f"other-{number}") for number in range(MAX_PLANS + 1)],
}


@pytest.mark.parametrize("said", FRONTS.values(), ids=FRONTS.keys())
def test_a_front_that_says_what_no_front_says_ends_the_worker(running: Template, said: list[Message]) -> None:
    worker = running.born()
    worker.raw(b"".join(encode_frame(message, MAX_CALL_FRAME) for message in said))
    worker.allow(ECHO, "another")
    assert running.exit_status(worker) == Exit.PROTOCOL


@pytest.mark.parametrize("is_computing", [False, True])
def test_a_worker_dies_with_the_template_even_while_it_computes(tmp_path: Path, is_computing: bool) -> None:
    with template(tmp_path) as running:
        running.load(ModuleFile("builtin:spin", None, ("clock",)))
        worker: Worker = running.born()
        if is_computing:
            worker.start(endless_plan(), "c")
            worker.wait_computing()
        kill(running.process.pid)
        assert has_ended(worker.pid)
