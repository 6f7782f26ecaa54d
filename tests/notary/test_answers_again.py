"""Answers of a notary that never arrived: its successor gives the same answers, and writes nothing twice."""

from contextlib import closing
from typing import Any

import jwt
import msgspec
import pytest
from msgspec.structs import replace

from ipc.evidence.records import EventQuery
from ipc.messages.notary_frames import Answered
from ipc.operations.calls import ProofRecord, UseProof, Withdraw
from ipc.operations.deliveries import ClaimDeliveries
from ipc.operations.evidence import QueryEvents
from ipc.operations.holds import GetHold
from ipc.operations.keys import FollowKeys
from ipc.operations.leases import Issue, SignedLease
from notary.backends.sqlite import connect
from notary.units.runner import remembered
from tests.notary.conftest import StartNotary
from tests.notary.running import UNDISTURBED, Running, walk
from tests.notary.samples import (
    NOW,
    NOW_MS,
    UNTIL,
    call_event,
    changed,
    hooks,
    make_approval,
    make_claim,
    make_hold,
    make_issue,
    make_note,
    make_open,
    make_refuse,
    make_result,
    make_revoke,
    notify,
)
from tests.support.asking import Asker

TABLES = ("events", "receipts", "intents", "unresolved", "proofs", "budgets", "approvals", "epochs", "outbox", "meta")


@pytest.fixture
def notary(start_notary: StartNotary) -> Running:
    """A notary that keeps the answers of a test's last unit, because it runs no later unit of its own."""
    return start_notary(limits=UNDISTURBED)


def everything(notary: Running) -> dict[str, list[Any]]:
    return {table: notary.stored(f"SELECT * FROM {table} ORDER BY 1") for table in TABLES}


def prepared(front: Asker) -> list[Any]:
    """One of each operation that writes, all of them possible for this front."""
    held = make_approval()
    session_id = front.ask(make_issue(max_calls=9)).session_id
    left, refused = (make_open(event=call_event(session_id=session_id), has_budget=True) for _ in range(2))
    front.begin(left)
    front.ask(make_hold(held))
    notify(front)
    return [
        UseProof(ProofRecord("p", NOW)),
        changed(refused, proof=ProofRecord("p", NOW)),
        Withdraw(left.intent_id, "error", "overloaded"),
        make_refuse(ProofRecord("q", NOW)),
        make_hold(),
        make_issue(max_calls=3),
        make_note(),
        make_claim(held, "asks-again"),
        FollowKeys(),
        Withdraw("intent_unknown", "error", "overloaded"),
        make_revoke(),
    ]


def test_each_operation_asked_again_of_the_next_notary_answers_the_same_and_is_done_once(
    start_notary: StartNotary,
) -> None:
    notary = start_notary(webhooks=hooks("chat"), limits=UNDISTURBED)
    front = notary.attach("asks-again")
    asked = prepared(front)
    numbers = front.send(*asked)
    told = [front.heard(number) for number in numbers]
    assert [one.problem for one in told] == [None] * 9 + ["refused", None]
    after = everything(notary)
    again = notary.followed("asks-again", dict(zip(numbers, asked, strict=True)))
    assert [unsigned(again.heard(number)) for number in numbers] == [unsigned(one) for one in told]
    assert everything(notary) == after
    assert walk(notary.front).intact


def unsigned(answer: Answered) -> Answered:
    """The same without the signature of its lease, which is signed anew, and without times, which are not kept."""
    decoded = msgspec.msgpack.decode(answer.value)
    if isinstance(decoded, dict) and "lease_jwt" in decoded:
        decoded["lease_jwt"] = decoded["lease_jwt"].rpartition(".")[0]
    return msgspec.structs.replace(answer, value=msgspec.Raw(msgspec.msgpack.encode(decoded)), store_us=None)


def test_a_lease_asked_again_of_the_next_notary_is_valid_and_its_token_was_never_written(notary: Running) -> None:
    front = notary.attach("asks-again")
    asked = make_issue()
    (number,) = front.send(asked)
    first = msgspec.msgpack.decode(front.heard(number).value, type=SignedLease)
    again = notary.followed("asks-again", {number: asked})
    lease = msgspec.msgpack.decode(again.heard(number).value, type=SignedLease)
    (key,) = again.in_force[-1].lease_keys
    public = jwt.PyJWK({"kty": "EC", "crv": "P-256", "x": key.x, "y": key.y})
    options: Any = {"verify_exp": False, "verify_iat": False, "verify_nbf": False}
    claims = [
        jwt.decode(one.lease_jwt, public, ["ES256"], audience="action-gateway", options=options)
        for one in (first, lease)
    ]
    assert claims[0] == claims[1]
    signature = first.lease_jwt.rpartition(".")[2].encode()
    files = [file for file in notary.folder.rglob("*") if file.is_file()]
    assert files
    assert not [file for file in files if signature in file.read_bytes()]


@pytest.mark.parametrize("other", [make_issue(principal="root"), make_issue(jkt="thief"), make_note()])
def test_a_front_gets_no_other_lease_by_repeating_the_number_of_one(notary: Running, other: Any) -> None:
    asked = make_issue() if isinstance(other, Issue) else make_note()
    repeated = other if isinstance(other, Issue) else make_issue()
    front = notary.attach("asks-again")
    (number,) = front.send(asked)
    front.heard(number)
    again = notary.followed("asks-again", {number: repeated})
    answer = again.heard(number)
    assert (answer.problem, b"lease_jwt" in bytes(answer.value)) == ("refused", False)


def test_a_claim_asked_again_by_its_deliverer_is_the_same_claim(start_notary: StartNotary) -> None:
    notary = start_notary(webhooks=hooks("chat"), limits=UNDISTURBED)
    notify(notary.front)
    claim = ClaimDeliveries("chat", NOW_MS, UNTIL, 5)
    (number,) = notary.deliverer.send(claim)
    told = notary.deliverer.heard(number)
    after = everything(notary)
    notary.lives -= 1  # the deliverer lives on, and has its name still
    notary.restart()
    notary.deliverer.resend({number: claim})
    assert notary.deliverer.heard(number) == told
    assert everything(notary) == after


def test_the_end_of_a_call_is_repeated_unchanged_and_no_worker_runs_it_again(notary: Running) -> None:
    front = notary.attach("asks-again")
    asked = make_open()
    number = front.begin(asked)
    worker = notary.workers.of(asked.intent_id)
    worker.word()
    told = front.finish(asked, number, make_result())
    after = everything(notary)
    again = notary.followed("asks-again", {number: asked})
    assert again.answer(number) == told
    assert everything(notary) == after
    while worker.has_news():
        worker.hear()
    assert (len(worker.words), worker.refused) == (1, []), "a worker waits for a plan that it is refused"


def test_a_call_that_was_refused_is_refused_to_its_worker_again(notary: Running) -> None:
    front = notary.attach("asks-again")
    asked = make_open(proof=ProofRecord("used", NOW))
    front.ask(UseProof(ProofRecord("used", NOW)))
    (number,) = front.send(asked)
    assert front.answer(number).code == "replay_detected"
    worker = notary.workers.of(asked.intent_id)
    while not worker.refused:
        worker.hear()
    again = notary.followed("asks-again", {number: asked})
    assert again.answer(number).code == "replay_detected"
    while len(worker.refused) < 2:
        worker.hear()
    assert worker.words == []


def test_another_front_does_not_get_the_answer_of_the_same_number(notary: Running) -> None:
    front = notary.attach("one")
    (number,) = front.send(UseProof(ProofRecord("p", NOW)))
    assert front.answer(number).is_fresh
    other = notary.followed("other", {number: UseProof(ProofRecord("p", NOW))})
    assert not other.answer(number).is_fresh


def test_reads_are_performed_again(notary: Running) -> None:
    front, read = notary.attach("reads"), GetHold("apr_1")
    (number,) = front.send(read)
    assert front.answer(number) is None
    notary.front.ask(make_hold(make_approval(approval_id="apr_1")))
    again = notary.followed("reads", {number: read})
    assert again.answer(number).approval_id == "apr_1"


def test_an_answer_that_a_slow_front_had_not_taken_outlives_the_units_of_others(
    notary: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("notary.upkeep.pace.PACED", frozenset())  # a large answer first, which keeps the other one back
    for number in notary.front.send(*[make_note(reason="x" * 5000)] * 200):
        notary.front.answer(number)
    slow = notary.attach("slow")
    look, note = slow.send(QueryEvents(EventQuery(limit=1000)), make_note(reason="once"))
    for _ in range(5):
        notary.front.ask(make_note())
    again = notary.followed("slow", {look: QueryEvents(EventQuery(limit=1)), note: make_note(reason="once")})
    again.answer(note)
    assert [event.get("reason") for event in notary.events()].count("once") == 1


def test_an_answer_outlives_a_second_notary_that_was_not_asked_for_it(notary: Running) -> None:
    front = notary.attach("late")
    (number,) = front.send(UseProof(ProofRecord("p", NOW)))
    notary.restart()
    for _ in range(3):
        notary.front.ask(make_note())
    again = notary.followed("late", {number: UseProof(ProofRecord("p", NOW))})
    assert again.answer(number).is_fresh


def test_answers_of_an_earlier_notary_are_forgotten_after_their_time(start_notary: StartNotary) -> None:
    notary = start_notary(limits=replace(UNDISTURBED, remembered_seconds=0.0))
    front = notary.attach("late")
    (number,) = front.send(UseProof(ProofRecord("p", NOW)))
    front.answer(number)
    notary.restart()
    notary.front.ask(make_note())
    with closing(connect(notary.path, writes=False)) as connection:
        assert list(remembered(connection)) == [("front-2", 1)]
    again = notary.asked_again("late", {number: UseProof(ProofRecord("p", NOW))})
    assert not again.answer(number).is_fresh


def test_a_call_asked_for_under_the_number_of_something_else_ends_no_notary(notary: Running) -> None:
    front = notary.attach("asks-again")
    (number,) = front.send(make_note())
    front.answer(number)
    notary.restart()
    again, asked = notary.attach("asks-again"), make_open()
    again.resend({number: asked})
    assert again.heard(number).problem is None, "what was answered under this number"
    worker = notary.workers.of(asked.intent_id)
    while not worker.refused:
        worker.hear()
    assert notary.front.ask(UseProof(ProofRecord("p", NOW))).is_fresh
