"""A worker looks again at what an intent without a receipt was to leave."""

from typing import Any

import pytest
from msgspec import convert

from contract.intents import ExpectedFile, SeenFile
from ipc.evidence.events import AuditEvent
from ipc.expected import FileToLeave
from ipc.messages.attesting import LookAtFile, Seen
from ipc.operations.calls import NoSuchWorker
from ipc.operations.intents import ListUnresolved, Looked, ShowIntent, Unverifiable, VerifyIntent
from ipc.operations.status import ReadLedger
from tests.notary.lost import OVER, lost_call
from tests.notary.running import Running, walk
from tests.notary.samples import (
    DIGEST,
    call_event,
    held_and_claimed,
    make_approved,
    make_open,
    make_resolution,
    record_call,
)
from tests.support.asking import Asker, Told
from tests.support.played_workers import PlayedWorker

FILE = FileToLeave("/var/lib/files", "notes/a", DIGEST, 5)


def act(**given: object) -> AuditEvent:
    fields = {"event_type": "IntentVerification", "decision": "allow", "principal": "operator:ops"}
    return AuditEvent(**fields | given)  # type: ignore[arg-type]


def lost(notary: Running, file: FileToLeave | None = FILE) -> str:
    """A call that no process reports on any more, and whose end an operator may state."""
    intent_id = lost_call(notary, file=file, verifier_kind="fs_hash")
    notary.clock.time += OVER
    return intent_id


def asked(worker: PlayedWorker, intent_id: str) -> VerifyIntent:
    return VerifyIntent(intent_id, worker.worker_id, act())


def heard(worker: PlayedWorker) -> LookAtFile:
    """The look that it is asked for."""
    while not isinstance(message := worker.hear(), LookAtFile):
        pass
    return message


@pytest.fixture
def worker(notary: Running) -> PlayedWorker:
    """A worker that runs no call."""
    return notary.workers.start(notary.front.front_id)


def look(notary: Running, worker: PlayedWorker, intent_id: str, state: str, sha256: str | None = None) -> Any:
    """Return the outcome of a verification that finds `this`."""
    (number,) = notary.front.send(asked(worker, intent_id))
    told = heard(worker)
    assert (told.number, told.file) == (number, FILE)
    worker.tell(Seen(number, state, sha256))
    return notary.front.answer(number)


@pytest.mark.parametrize(
    ("state", "sha256"),
    [("matches", DIGEST), ("differs", "sha256:" + "e" * 64), ("absent", None), ("unreadable", None)],
)
def test_the_workers_observation_is_an_event_and_resolves_nothing(
    notary: Running, worker: PlayedWorker, state: str, sha256: str | None
) -> None:
    intent_id = lost(notary)
    (view,) = notary.front.ask(ListUnresolved(5))
    seen = {"verifier_kind": "fs_hash", "path": "notes/a", "expected_sha256": DIGEST, "state": state}
    seen |= {} if sha256 is None else {"sha256": sha256}
    assert look(notary, worker, intent_id, state, sha256) == Looked(view.trace_id, view.action_id, seen)
    event = notary.last_event()
    assert event.items() >= {
        "event_type": "IntentVerification", "intent_id": intent_id, "trace_id": view.trace_id, "seen": seen,
        "grant_id": view.grant_id, "action_id": view.action_id, "principal": "operator:ops",
    }.items()  # fmt: skip
    assert [one.intent_id for one in notary.front.ask(ListUnresolved(5))] == [intent_id]
    assert notary.stored("SELECT 1 FROM receipts") == []
    last = notary.front.ask(ShowIntent(intent_id)).last_look
    assert (last.event_id, last.seen) == (event["event_id"], convert(seen, SeenFile))
    assert walk(notary.front).intact


def test_the_event_of_the_outcome_has_what_was_seen_last(notary: Running, worker: PlayedWorker) -> None:
    other, intent_id = lost(notary), lost(notary)
    look(notary, worker, other, "unreadable")
    look(notary, worker, intent_id, "absent")
    look(notary, worker, intent_id, "matches", DIGEST)
    notary.restart()  # it is read from the ledger
    notary.front.ask(make_resolution(intent_id, "happened"))
    event = notary.last_event()
    assert (event["change"], event["seen"]["state"]) == ({"outcome": "happened"}, "matches")
    unseen = lost(notary)
    notary.front.ask(make_resolution(unseen, "unknown"))
    assert "seen" not in notary.last_event()


def test_each_call_of_a_trace_is_shown_with_its_own_observations(notary: Running, worker: PlayedWorker) -> None:
    intents = [lost_call(notary, event={"trace_id": "trc_both"}, file=FILE) for _ in range(2)]
    notary.clock.time += OVER
    for intent_id, state in zip(intents, ("matches", "absent"), strict=True):
        look(notary, worker, intent_id, state, DIGEST if state == "matches" else None)
    looks = [notary.front.ask(ShowIntent(intent_id)).last_look for intent_id in intents]
    assert [(one.seen.state, one.principal) for one in looks] == [
        ("matches", "operator:ops"), ("absent", "operator:ops"),
    ]  # fmt: skip


def test_no_look_is_made_without_a_kept_plan_or_while_the_worker_may_report(
    notary: Running, worker: PlayedWorker
) -> None:
    without = lost(notary, None)
    ended, _ = record_call(notary.front)
    running = make_open(terms={"file": FILE})
    notary.front.begin(running, notary.workers.start(notary.front.front_id))
    for intent_id, code in (
        (without, "intent_not_verifiable"), (running.intent_id, "intent_under_way"),
        (ended.intent_id, "intent_not_found"), ("intent_x", "intent_not_found"),
    ):  # fmt: skip
        assert notary.front.ask(asked(worker, intent_id)) == Unverifiable(code)
    assert not worker.has_news()
    assert notary.front.ask(VerifyIntent(lost(notary), "worker-gone", act())) == NoSuchWorker()
    assert "IntentVerification" not in {event["event_type"] for event in notary.events()}


def test_an_intent_is_shown_with_what_its_call_was_to_leave(notary: Running) -> None:
    shown = notary.front.ask(ShowIntent(lost(notary)))
    assert shown.expected == ExpectedFile(path=FILE.path, sha256=FILE.sha256, bytes=FILE.bytes)
    assert (shown.request_hash, shown.session_id, shown.action_version) == (DIGEST, "ses_1", "1.0.0")
    assert (shown.verifier_kind, shown.timeout_seconds, shown.approved_by) == ("fs_hash", 30.0, None)
    assert notary.front.ask(ShowIntent(lost(notary, None))).expected is None


def test_an_intent_is_shown_with_its_plan_its_call_and_the_approval_that_let_it_run(notary: Running) -> None:
    approval = held_and_claimed(notary.front)
    event = call_event(owner="bob", risk_level="high", policy_rule="with_approval", allowed_sinks=("fs", "http"))
    call = make_approved(approval, event=event, terms={"module_digest": "sha256:" + "b" * 64})
    notary.front.begin(call)
    shown = notary.front.ask(ShowIntent(call.intent_id))
    assert (shown.owner, shown.risk_level, shown.policy_rule) == ("bob", "high", "with_approval")
    assert shown.sinks == ("fs", "http")
    assert (shown.plan_hash, shown.approval_id) == (call.terms.plan_hash, approval.approval_id)
    assert shown.approved_by == "alice"


def test_a_worker_that_ends_while_it_looks_writes_nothing(notary: Running, worker: PlayedWorker) -> None:
    intent_id = lost(notary)
    (number,) = notary.front.send(asked(worker, intent_id))
    heard(worker)
    notary.workers.end(worker)
    assert notary.front.answer(number) == NoSuchWorker()
    assert "IntentVerification" not in {event["event_type"] for event in notary.events()}


def test_a_look_at_an_intent_that_was_resolved_meanwhile_writes_nothing(notary: Running, worker: PlayedWorker) -> None:
    intent_id = lost(notary)
    (number,) = notary.front.send(asked(worker, intent_id))
    heard(worker)
    notary.front.ask(make_resolution(intent_id, "unknown"))
    worker.tell(Seen(number, "matches", DIGEST))
    assert notary.front.answer(number) == Unverifiable("intent_not_found")
    assert notary.last_event()["event_type"] == "IntentResolved"


@pytest.mark.parametrize("is_late", [False, True], ids=["told after", "told before"])
def test_a_notary_that_follows_has_the_worker_look_once_more(
    notary: Running, worker: PlayedWorker, is_late: bool
) -> None:
    intent_id = lost(notary)
    (number,) = notary.front.send(asked(worker, intent_id))
    heard(worker)
    notary.stop()
    if is_late:  # what it told is in its channel
        worker.tell(Seen(number, "absent"))
    notary.start()
    again = _same_front(notary, worker)
    again.resend({number: asked(worker, intent_id)})
    assert heard(worker).number == number
    worker.tell(Seen(number, "matches", DIGEST))
    answer = again.answer(number)
    assert isinstance(answer, Looked)
    if not is_late:
        assert answer.seen["state"] == "matches"
    assert len([one for one in notary.events() if one["event_type"] == "IntentVerification"]) == 1
    assert look_by(again, worker, intent_id).seen["state"] == "differs"  # it is believed still


def _same_front(notary: Running, worker: PlayedWorker) -> Asker:
    return notary.attach(worker.front_id)


def look_by(front: Asker, worker: PlayedWorker, intent_id: str) -> Looked:
    (number,) = front.send(asked(worker, intent_id))
    assert heard(worker).number == number
    worker.tell(Seen(number, "differs", DIGEST))
    answer = front.answer(number)
    assert isinstance(answer, Looked)
    return answer


def test_a_front_can_have_no_worker_of_another_look(notary: Running) -> None:
    intent_id = lost(notary)
    notary.attach("other")
    theirs = notary.workers.start("other")
    with pytest.raises(Told):
        notary.front.ask(asked(theirs, intent_id))
    assert not theirs.has_news()


def test_the_age_of_the_oldest_is_of_those_that_no_worker_is_at_work_on(notary: Running) -> None:
    assert notary.front.ask(ReadLedger()).oldest_unresolved is None
    since = notary.clock.time
    first = lost(notary)
    notary.front.begin(make_open())
    status = notary.front.ask(ReadLedger())
    assert (status.unresolved, status.oldest_unresolved) == (2, since)
    later = notary.clock.time
    second = lost(notary)
    notary.front.ask(make_resolution(first, "unknown"))
    assert notary.front.ask(ReadLedger()).oldest_unresolved == later
    notary.front.ask(make_resolution(second, "unknown"))
    assert notary.front.ask(ReadLedger()).oldest_unresolved is None
