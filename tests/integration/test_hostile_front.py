"""A compromised front against a real notary: its channel, intents of its own and of others, and results. For any
message, no call is executed twice, each refusal is in the log, and the chain stays whole.

`tests/notary/test_service.py` and `tests/notary/operations` have the whole tables of broken frames, false events and
operations; `tests/notary/ledger/test_conclusion.py` that of impossible results.
"""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.limits import MAX_AHEAD
from ipc.messages.notary_frames import NumberedOperation
from ipc.operations.calls import Assign, Recall, Withdraw, Withdrawn
from ipc.operations.evidence import ShownReceipt, ShowReceipt, WriteEvent
from ipc.operations.intents import ListUnresolved
from ipc.operations.leases import ReadEpoch
from ipc.texts.identifiers import new
from tests.support.hostile_front import (
    an_open,
    assert_refused,
    call_event,
    counted,
    events,
    left,
    make_proof,
    opened,
    rows,
    terms,
    with_budget,
)
from tests.support.played_supervisor_of_notary import (
    SECONDS,
    PlayedFront,
    PlayedSupervisor,
    checked_offline,
    framed,
    framed_raw,
    played_supervisor,
)
from tests.support.played_workers import Workers, sound_result
from tests.support.supervised import wait_until

# ------------------------------------------------------------------ the channel itself


def asked(operation: dict[str, Any], **more: Any) -> bytes:
    return framed_raw({"type": NumberedOperation.__name__, "number": 1, "operation": operation, **more})


FORGED: dict[str, bytes] = {
    "an unknown operation": asked({"type": "Sign", "data": "x"}),
    "an unknown field of an event": asked(
        {"type": WriteEvent.__name__, "event": {"event_type": "AdminDrain", "x": 1}}
    ),
    "an unknown field of the frame": asked({"type": "ReadEpoch"}, x=1),
    "a missing field": asked({"type": "Assign", "intent_id": "i"}),
    "a result of a worker": framed_raw({"type": "Result", **msgspec.to_builtins(sound_result())}),
    "the end of a worker": framed_raw({"type": "WorkerEnded", "worker_id": "w", "reason": "x"}),
    "a wrong type": asked({"type": "ReadEpoch"}, number="1"),
    "another front's attachment": framed_raw({"type": "AttachFront", "front_id": "front-2-b"}),
    "a frame without an end": b"\xff\xff\xff\xff",
    "deep nesting": (65536).to_bytes(4, "big") + b"\x91" * 65536,
}  # fmt: skip


def ended(supervisor: PlayedSupervisor, front: PlayedFront) -> list[dict[str, Any]]:
    """Lines of the log that tell of the end of this front's channel."""
    return [line for line in supervisor.said("a front's channel ended") if line["front"] == front.front_id]


@pytest.mark.parametrize("name", FORGED)
def test_a_front_that_breaks_the_protocol_loses_its_channel_and_what_it_asked_before(
    shared_notary: PlayedSupervisor, new_front: PlayedFront, name: str
) -> None:
    other = shared_notary.attach(new("front-"))
    before = counted(shared_notary)
    new_front.sock.sendall(framed(1, new_front.staffed(an_open())) + FORGED[name])
    assert new_front.is_cut()
    (line,) = wait_until(lambda: ended(shared_notary, new_front))
    assert line["level"] == "error"
    assert "broke the protocol" in line["reason"]
    assert other.value(ReadEpoch(), int) == 0
    assert counted(shared_notary) == before


def test_half_a_frame_is_never_performed(supervisor: PlayedSupervisor, front: PlayedFront) -> None:
    other = supervisor.attach("front-2-b")
    assert front.value(ReadEpoch(), int) == 0  # what is not read when a channel closes resets it
    before = counted(supervisor)
    front.sock.sendall(framed(1, front.staffed(an_open()))[:-1])
    front.close()
    assert other.value(ReadEpoch(), int) == 0
    assert counted(supervisor) == before
    (line,) = wait_until(lambda: supervisor.said("a front's channel ended"))
    assert line["reason"] == "closed its channel inside a frame"


# ------------------------------------------------------------------ intents


def test_an_open_twice_with_one_intent_is_one_call_and_one_debit(
    supervisor: PlayedSupervisor, front: PlayedFront
) -> None:
    session_id = with_budget(front, 5)
    asked = opened(front, event=call_event(session_id=session_id), has_budget=True)
    again = msgspec.structs.replace(asked, proof=make_proof())
    assert_refused(supervisor, front, asked, again)
    front.end(asked, sound_result())
    assert_refused(supervisor, front, asked, again)
    assert left(front, session_id) == 4
    other = supervisor.attach("front-2-b")
    assert_refused(supervisor, other, again)
    # Both in one unit, too.
    twice = front.staffed(an_open(event=call_event(session_id=session_id), has_budget=True))
    front.sock.sendall(framed(901, twice) + framed(902, msgspec.structs.replace(twice, proof=make_proof())))
    assert front.heard(902).problem == "refused"
    supervisor.workers.of(twice.intent_id).tell(sound_result(twice.intent_id))
    assert front.heard(901).problem is None
    assert left(front, session_id) == 3


def test_only_the_front_that_opened_an_intent_ends_it(supervisor: PlayedSupervisor, front: PlayedFront) -> None:
    other = supervisor.attach("front-2-b")
    asked = opened(other)
    own = supervisor.workers.start(front.front_id)
    assert_refused(
        supervisor, front, Withdraw(asked.intent_id, "deny", "overloaded"), Assign(asked.intent_id, own.worker_id),
        Withdraw("x\n\x1b[2J", "deny", "overloaded"), Assign("x\n\x1b[2J", own.worker_id),
        msgspec.structs.replace(asked, worker_id=own.worker_id, proof=make_proof()),
    )  # fmt: skip
    assert other.end(asked, sound_result()).kind == "success"


def test_the_worker_of_another_front_is_given_no_calls_and_none_is_taken_from_it(
    supervisor: PlayedSupervisor, front: PlayedFront
) -> None:
    other = supervisor.attach("front-2-b")
    asked = opened(other)
    theirs = supervisor.workers.of(asked.intent_id)
    mine = opened(front)
    front.send(Recall(mine.intent_id))
    assert front.unbegun(mine)
    assert_refused(supervisor, front, an_open(worker_id=theirs.worker_id), Assign(mine.intent_id, theirs.worker_id))
    front.send(Recall(asked.intent_id))
    front.send(Recall("intent-of-nobody"))
    front.value(ReadEpoch(), int)
    assert theirs.word().call_id == asked.intent_id
    assert other.end(asked, sound_result()).kind == "success"
    assert front.value(Withdraw(mine.intent_id, "error", "overloaded"), Withdrawn).is_abandoned


def test_a_worker_is_given_so_many_calls_and_not_one_more(supervisor: PlayedSupervisor, front: PlayedFront) -> None:
    worker = supervisor.workers.start(front.front_id)
    calls = [opened(front, worker_id=worker.worker_id) for _ in range(MAX_AHEAD)]
    assert_refused(supervisor, front, an_open(worker_id=worker.worker_id))
    waits = opened(front)
    front.send(Recall(waits.intent_id))
    assert front.unbegun(waits)
    assert_refused(supervisor, front, Assign(waits.intent_id, worker.worker_id))
    for asked in calls:
        assert worker.word().call_id == asked.intent_id
    for asked in calls:
        worker.tell(sound_result(asked.intent_id))
        assert front.ended(asked).kind == "success"
    # In one unit, too.
    many = [an_open(worker_id=worker.worker_id) for _ in range(MAX_AHEAD + 1)]
    front.sock.sendall(b"".join(framed(900 + n, one) for n, one in enumerate(many)))
    assert front.heard(900 + MAX_AHEAD).problem == "refused"
    for one in many[:-1]:
        assert worker.word().call_id == one.intent_id
        worker.tell(sound_result(one.intent_id))
    assert [front.heard(900 + n).problem for n in range(MAX_AHEAD)] == [None] * MAX_AHEAD


def test_an_intent_of_a_front_that_is_gone_stays_unresolved_for_every_other(
    supervisor: PlayedSupervisor, front: PlayedFront
) -> None:
    other = supervisor.attach("front-2-b")
    asked = opened(other)
    other.close()
    wait_until(lambda: supervisor.said("a front's channel ended"))
    worker, own = supervisor.workers.of(asked.intent_id), supervisor.workers.start(front.front_id)
    refused = (Withdraw(asked.intent_id, "deny", "overloaded"), Assign(asked.intent_id, own.worker_id))
    assert_refused(supervisor, front, *refused)
    worker.word()
    supervisor.workers.end(worker)
    assert_refused(supervisor, front, *refused)
    assert rows(supervisor, "receipts") == 0
    assert [view["intent_id"] for view in front.value(ListUnresolved(10))] == [asked.intent_id]


def test_a_restart_of_the_notary_does_not_forget_whose_an_intent_is(tmp_path: Path) -> None:
    workers = Workers()
    with played_supervisor(tmp_path, workers) as before:
        asked = opened(before.attach("front-1-a", first=7))
        before.process.kill()
        before.process.wait(SECONDS)
    with played_supervisor(tmp_path, workers) as following:
        same, other = following.attach("front-1-a", first=8), following.attach("front-2-b", first=7)
        asked = same.staffed(asked)
        own = workers.start("front-2-b")
        assert_refused(
            following, other, Withdraw(asked.intent_id, "error", "overloaded"), asked,
            Assign(asked.intent_id, own.worker_id),
        )  # fmt: skip
        assert_refused(following, same, asked)  # under another number
        same.sock.sendall(framed(7, asked))
        workers.of(asked.intent_id).tell(sound_result(asked.intent_id))
        assert same.heard(7).problem is None
        assert rows(following, "receipts") == 1
        assert following.stop() == 0
        checked_offline(tmp_path / "state")
    workers.close()


IMPOSSIBLE: dict[str, dict[str, Any]] = {
    "a negative duration": {"duration_us": -1},
    "negative fuel": {"fuel_consumed": -5},
    "more output than the plan takes": {"output": '{"a":"' + "x" * 1000 + '"}'},
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_a_result_that_no_worker_tells_counts_as_a_lost_worker(
    shared_notary: PlayedSupervisor, new_front: PlayedFront, name: str
) -> None:
    asked = opened(new_front, terms=terms(max_response_bytes=900))
    closed = new_front.end(asked, sound_result(**IMPOSSIBLE[name]))
    assert (closed.kind, closed.outcome) == ("internal_error", "worker_lost")
    shown: ShownReceipt = new_front.value(ShowReceipt(closed.receipt_id), ShownReceipt)
    receipt = msgspec.json.decode(shown.receipt)
    assert (receipt["normalized_result"]["kind"], receipt["failure_class"]) == ("internal_error", "internal_error")
    assert shown.signature_status == "verified"
    (event,) = events(new_front, trace_id=asked.event.trace_id)
    assert (event["decision"], event["error_code"]) == ("error", "action_execution_failed")
    assert rows(shared_notary, "unresolved") == 0


@pytest.mark.parametrize("depth", [200, 900, 1500, 100_000])
def test_no_nesting_of_an_output_leaves_a_call_without_evidence(new_front: PlayedFront, depth: int) -> None:
    asked = opened(new_front, terms=terms(max_response_bytes=1_000_000))
    closed = new_front.end(asked, sound_result(output='{"a":' + "[" * depth + "]" * depth + "}"))
    assert closed.kind in ("success", "internal_error")
    assert new_front.value(ShowReceipt(closed.receipt_id), ShownReceipt).signature_status == "verified"


def test_why_a_worker_was_lost_is_told_in_bounds(front: PlayedFront) -> None:
    asked = opened(front)
    closed = front.lose(asked, "\x1b[2J" + "x" * 1_000_000)
    assert len(closed.reason or "") < 600
    assert "\x1b" not in (closed.reason or "")
