"""Gateways that share a Redis see each other's changes, and keys of ended things expire."""

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis.stateful import run_state_machine_as_test

from ipc.operations.calls import Closed, Open, ProofRecord, Refusal, UseProof
from ipc.operations.caps import SumCap
from ipc.operations.holds import MoveHold, OrphanedHolds
from ipc.operations.leases import ListSessions, ReadBudget, Revoke, SignedLease
from ipc.settings import StoreSettings
from notary.remote_units import POLL_SECONDS
from tests.notary.backends.order import budgeted
from tests.notary.capped_calls import POINTER, WINDOWS, opening_of, play, uses_of
from tests.notary.conftest import StartNotary
from tests.notary.running import Running
from tests.notary.samples import (
    NOW,
    call_event,
    fresh_proof,
    held_and_claimed,
    make_approved,
    make_claim,
    make_hold,
    make_issue,
    make_note,
    make_open,
    make_revocation,
    make_revoke,
    outcome_text,
)
from tests.support.asking import Told
from tests.support.gateway import wait_for
from tests.support.properties import FEW
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.usefixtures("patient_backends")


def test_a_proof_used_at_one_gateway_is_used_at_the_other(start: StartNotary) -> None:
    one, other = start("one"), start("other")
    assert one.front.ask(UseProof(ProofRecord("p", NOW))).is_fresh
    assert not other.front.ask(UseProof(ProofRecord("p", NOW))).is_fresh
    assert not one.front.ask(UseProof(ProofRecord("p", NOW))).is_fresh


def test_in_one_unit_the_same_proof_is_used_once(start: StartNotary) -> None:
    one = start()
    answers = [one.front.answer(number) for number in one.front.send(*[UseProof(ProofRecord("p", NOW))] * 5)]
    assert [answer.is_fresh for answer in answers] == [True, False, False, False, False]


def test_one_claim_of_many_wins(start: StartNotary) -> None:
    one, other = start("one"), start("other")
    asked = make_hold()
    one.front.ask(asked)
    numbers = [(running, running.front.send(make_claim(asked.approval, running.front.front_id))[0])
               for running in (one, other)]  # fmt: skip
    won = [running.front.answer(number) for running, number in numbers]
    assert [claimed is None for claimed in won].count(True) == 1
    # It is neither seen as lost by the other, nor ended there.
    loser, winner = (one, other) if won[0] is None else (other, one)
    assert loser.front.ask(OrphanedHolds(())) == []
    failed = MoveHold(asked.approval.approval_id, "claimed", "failed", outcome_text(error_code="x", claimed_by="alice"))
    with pytest.raises(Told, match="another front"):
        loser.front.ask(failed)
    assert winner.front.ask(failed).state == "failed"


def test_a_budget_is_exact_over_two_gateways(start: StartNotary) -> None:
    one, other = start("one"), start("other")
    session_id = one.front.ask(make_issue(max_calls=8)).session_id
    asked = [(running, running.front.send(budgeted(session_id))[0]) for _ in range(8) for running in (one, other)]
    answers = [running.front.answer(number) for running, number in asked]
    refused = [answer for answer in answers if getattr(answer, "code", None) == "budget_exhausted"]
    assert len(refused) == 8
    assert one.front.ask(ReadBudget(session_id)).remaining == 0


def test_a_revocation_reaches_the_fronts_of_the_other_gateway_within_a_second(start: StartNotary) -> None:
    one, other = start("one"), start("other")
    revoke: Revoke = make_revoke()
    current = one.front.ask(revoke).current
    wait_for(lambda: other.front.ask(make_note()) is None and other.front.in_force[-1].epoch == current, "the epoch")
    assert other.remote.patience() <= POLL_SECONDS <= 0.5, "what the second is made of"


def test_a_session_revoked_at_one_gateway_opens_no_call_at_the_other(start: StartNotary) -> None:
    one, other = start("one"), start("other")
    other.look_no_more()
    session_id = one.front.ask(make_issue()).session_id
    one.front.ask(make_revocation(session_id))
    opened = other.front.ask(make_open(event=call_event(session_id=session_id)))
    assert (opened.code, opened.cause) == ("invalid_lease", "its session was revoked")
    assert other.front.in_force[-1].revoked == (session_id,)
    other.remote._poll_at = 0.0
    started = one.restart()
    assert started.ask(make_open(event=call_event(session_id=session_id))).code == "invalid_lease"


def test_a_session_stays_revoked_when_a_gateway_whose_clock_is_ahead_revokes_another(start: StartNotary) -> None:
    one, ahead = start("one"), start("ahead")
    ahead.clock.time += 3 * 3600
    sessions = {running: running.front.ask(make_issue()).session_id for running in (one, ahead)}
    for running, session_id in sessions.items():
        running.front.ask(make_revocation(session_id))
    started = one.restart()
    assert started.ask(make_open(event=call_event(session_id=sessions[one]))).code == "invalid_lease"


def test_all_sessions_that_were_revoked_at_one_gateway_are_heard_of_at_the_other(start: StartNotary) -> None:
    one, other = start("one"), start("other")
    sessions = {one.front.ask(make_issue()).session_id for _ in range(3)}
    for session_id in sessions:
        one.front.ask(make_revocation(session_id))

    def has_heard() -> bool:
        other.front.ask(make_note())
        return set(other.front.in_force[-1].revoked) == sessions

    wait_for(has_heard, "the revocations")


def test_keys_of_ended_things_expire(start: StartNotary, redis_server: RedisServer, prefix: str) -> None:
    one, began = start(), time.monotonic()
    session_id = one.front.ask(make_issue(max_calls=3, max_sessions=5)).session_id
    one.front.ask(make_revocation(session_id))
    one.front.ask(make_hold(calls_per_hour=5))
    one.front.ask(UseProof(fresh_proof()))
    # A key that has expired meanwhile (-2), such as the probe of a start, did have an expiry.
    lasting = {name.partition(":")[2] for name in redis_server.names(prefix) if redis_server.ask("PTTL", name) == -1}
    hold = next(name for name in lasting if name.startswith("hold:"))
    assert lasting == {"epoch", "marker", "live", "live:version", hold}
    left = [redis_server.ask("PTTL", name) for name in redis_server.names(prefix) if ":proof:" in name]
    least = 170_000 - 1000 * (time.monotonic() - began)
    assert left
    assert [one for one in left if not least < one <= 180_000] == []


def test_a_ledger_that_changes_its_store_ends_every_lease(start: StartNotary, redis_server: RedisServer) -> None:
    one = start()
    one.front.ask(make_note())
    before = one.settings
    one.settings = msgspec.structs.replace(before, store=StoreSettings())
    in_ledger = one.restart().ask(UseProof(fresh_proof())).epoch
    assert in_ledger > 0
    one.settings = before
    assert one.restart().ask(UseProof(fresh_proof())).epoch > in_ledger
    started, back, away = one.events()
    assert started["event_type"] == "GatewayStarted"
    for event, epochs, why in (
        (back, (0, in_ledger), "the store lies in the ledger again, and what was done elsewhere is not known here"),
        (away, (in_ledger, one.front.in_force[-1].epoch), "has lost its data, or is another one"),
    ):
        assert (event["event_type"], event["principal"], event["decision"]) == ("AdminRevokeAll", "gateway", "allow")
        assert event["change"] == dict(zip(("previous_epoch", "current_epoch"), epochs, strict=True))
        assert event["reason"].startswith("the epoch was raised from {} to {}: ".format(*epochs))
        assert event["reason"].endswith(why)
        assert UUID(event["trace_id"].removeprefix("trc_")).version == 7


def test_a_call_without_a_proof_of_its_own_is_held_against_a_revocation_at_another_gateway_too(
    start: StartNotary,
) -> None:
    one, other = start("one"), start("other")
    approved = held_and_claimed(other.front, other.front.front_id)
    other.look_no_more()
    current = one.front.ask(make_revoke()).current
    proven_before = other.front.ask(make_open(proof=None))
    assert (proven_before.code, str(current) in proven_before.cause) == ("invalid_lease", True)
    assert other.front.ask(make_approved(approved)).code == "plan_integrity"


def test_a_call_without_a_proof_of_its_own_may_be_of_an_epoch_that_its_gateway_has_not_heard_of(
    start: StartNotary,
) -> None:
    one, other = start("one"), start("other")
    other.look_no_more()
    current = one.front.ask(make_revoke()).current
    assert isinstance(other.front.ask(make_open(proof=None, epoch=current)), Closed)


def test_the_budgets_of_a_unit_are_asked_for_at_once(start: StartNotary, monkeypatch: pytest.MonkeyPatch) -> None:
    one = start()
    sessions = [one.front.ask(make_issue(max_calls=2)).session_id for _ in range(4)]
    assert one.thread.state.stores is not None
    client, asked = one.thread.state.stores.client, list[int]()
    many = client.many

    def counting(commands: Sequence[tuple[str | int, ...]]) -> list[Any]:
        asked.append(sum(command[0] == "HGET" for command in commands))
        return many(commands)

    monkeypatch.setattr(client, "many", counting)
    numbers = one.front.send(*(budgeted(session_id) for session_id in sessions))
    assert all(isinstance(one.front.answer(number), Closed) for number in numbers)
    assert 8 in asked, "two fields of four sessions, in one turn"
    assert [one.front.ask(ReadBudget(session_id)).remaining for session_id in sessions] == [1] * 4
    asked.clear()
    assert [shown.calls_remaining for shown in one.front.ask(ListSessions(9)).sessions] == [1] * 4
    assert 8 in asked, "those of a page, too"


def session(gateway: Running, **given: Any) -> str:
    """That of a lease of one agent."""
    return str(gateway.front.ask(make_issue(**{"jkt": "key"} | given)).session_id)


def test_a_session_goes_on_at_the_other_gateway_and_after_a_start(start: StartNotary) -> None:
    one, other = start("one"), start("other")
    first = session(one)
    assert [session(other), session(one), session(other, jkt="another") == first] == [first, first, False]
    other.restart()
    assert session(other) == first


def test_leases_asked_for_at_once_at_two_gateways_are_of_one_session(start: StartNotary) -> None:
    gateways = [start("one"), start("other")]
    for key in ("a", "b", "c"):
        asked = [(one.front, one.front.send(*(make_issue(jkt=key) for _ in range(5)))) for one in gateways]
        issued = [
            msgspec.msgpack.decode(front.heard(number).value, type=SignedLease)
            for front, numbers in asked
            for number in numbers
        ]
        assert len({lease.session_id for lease in issued}) == 1


def test_a_session_that_one_gateway_has_revoked_is_continued_by_neither(start: StartNotary) -> None:
    one, other = start("one"), start("other")
    first = session(one)
    one.clock.time = other.clock.time = one.clock.time + 200
    assert session(other) == first
    assert one.front.ask(make_revocation(first)) is not None
    for passed in (0, 250):
        one.clock.time = other.clock.time = one.clock.time + passed
        assert first not in (session(one), session(other))
        opened = other.front.ask(make_open(event=call_event(session_id=first)))
        assert opened == Refusal("invalid_lease", "its session was revoked")


ACTION, PAYER = "text_digest", "uid:1000"


def spending(value: str, subject: str = PAYER) -> Open:
    return opening_of(ACTION, subject, uses_of(subject, value, is_spared=True))


def used(notary: Running, per: str = "all") -> dict[str, str]:
    """Subject -> total and unknown part."""
    sums = notary.front.ask(SumCap(ACTION, POINTER, per, WINDOWS[per])).sums
    return {one.subject: f"{one.total} {one.unknown}" for one in sums}


def test_sums_of_two_gateways_are_exact_and_never_above_a_cap(start: StartNotary) -> None:
    one, other = start("one"), start("other")
    run_state_machine_as_test(play([(one, one.front), (other, other.front)]), settings=FEW)


def test_calls_at_two_fronts_of_each_of_two_gateways_never_go_above_a_cap(start: StartNotary) -> None:
    one, other = start("one"), start("other")
    fronts = [one.front, one.attach("more"), other.front, other.attach("others")]
    payers = ["a", "b", "c"]  # each may pay 50, all of them 100
    asked = [(front, spending("7", payer)) for _ in range(3) for payer in payers for front in fronts]
    numbers = [(front, front.send(opening)[0], opening) for front, opening in asked]
    ends = [(front.answer(number), opening) for front, number, opening in numbers]
    opened = Counter(opening.event.principal for end, opening in ends if isinstance(end, Closed))
    assert {type(end) for end, _ in ends} == {Closed, Refusal}
    assert opened.total() == 100 // 7, "as many as the cap of all allows, and no more"
    assert max(opened.values()) <= 50 // 7
    assert used(one) == used(other) == {"": "98 0"}
    assert used(one, "principal") == {str(payer): f"{7 * count} 0" for payer, count in opened.items()}
