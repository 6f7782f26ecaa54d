"""Keys of calls at the notary: what a call made again is answered with, whatever happened to the first."""

from typing import Any

from ipc.operations.calls import CallKey, Closed, Open, Refuse, RepeatedCall, Withdraw, WrittenRefusal
from ipc.operations.idempotency import ReadKeptOutput
from tests.notary.running import Running
from tests.notary.samples import (
    NOW,
    call,
    call_event,
    fresh_proof,
    make_issue,
    make_open,
    make_resolution,
    make_result,
    make_revocation,
    make_revoke,
)

KEY = CallKey("k")


def keyed(**given: Any) -> Open:
    """An Open under the key."""
    return make_open(idempotency=KEY, **given)


def answer(notary: Running, asked: Open | None = None) -> tuple[str | None, str]:
    """Code and call of the answer to a call made again."""
    told = notary.front.ask(asked or keyed())
    assert isinstance(told, RepeatedCall), told
    return told.code, told.call_id


def test_a_call_that_is_running_is_answered_so_on_another_front_too(notary: Running) -> None:
    first = keyed()
    notary.front.begin(first)
    other = notary.attach("another")
    told = other.ask(keyed())
    assert (told.code, told.call_id) == ("call_in_progress", first.intent_id)
    assert len(notary.stored("SELECT 1 FROM intents")) == 1


def test_a_call_whose_end_is_not_known_is_never_opened_again(notary: Running) -> None:
    first = keyed()
    notary.front.begin(first)
    notary.restart()
    assert answer(notary) == ("call_in_progress", first.intent_id), "its worker may still tell"
    notary.clock.time = NOW + first.terms.timeout_seconds + 61
    assert answer(notary) == ("outcome_unknown", first.intent_id)
    assert len(notary.stored("SELECT 1 FROM intents")) == 1


def resolved(notary: Running, outcome: str) -> str:
    """A call that an operator has resolved: its intent."""
    first = keyed()
    notary.front.begin(first)
    notary.restart()
    notary.clock.time = NOW + first.terms.timeout_seconds + 61
    assert notary.front.ask(make_resolution(first.intent_id, outcome)) is not None
    return first.intent_id


def test_a_call_that_an_operator_says_has_happened_was_executed(notary: Running) -> None:
    intent_id = resolved(notary, "happened")
    assert answer(notary) == ("already_executed", intent_id)


def test_a_call_that_an_operator_says_has_not_happened_is_made_anew(notary: Running) -> None:
    resolved(notary, "did_not_happen")
    assert isinstance(notary.front.ask(keyed()), Closed)


def test_a_call_that_was_withdrawn_is_made_anew(notary: Running) -> None:
    first = keyed()
    notary.front.send(first, Withdraw(first.intent_id, "error", "overloaded"))
    assert isinstance(notary.front.ask(keyed()), Closed)


def test_keys_outlive_restarts_revocations_and_the_front_and_end_with_their_time(notary: Running) -> None:
    call(notary.front, keyed(), make_result())
    notary.restart()
    notary.front.ask(make_revoke())
    assert answer(notary, keyed(epoch=1))[0] == "already_executed"
    notary.clock.time = NOW - 10_000
    assert answer(notary, keyed(epoch=1))[0] == "already_executed", "a clock that is set back keeps it longer"
    notary.clock.time = NOW + 2 * 86_400
    assert isinstance(notary.front.ask(keyed(epoch=1)), Closed)


def test_a_call_that_failed_fails_again_with_its_receipt(notary: Running) -> None:
    closed = call(notary.front, keyed(), make_result("host_io"))
    told = notary.front.ask(keyed())
    assert (told.code, told.closed) == (None, closed)
    event = notary.last_event()
    assert (event["decision"], event["error_code"], event["is_repeated"]) == ("error", "action_execution_failed", True)


def test_a_call_that_failed_and_can_not_have_run_is_made_anew(notary: Running) -> None:
    failed = call(notary.front, keyed(terms={"only_computes": True}), make_result("fuel"))
    assert failed.failure is not None
    assert failed.failure.may_have_run == "no"
    assert notary.front.ask(keyed()).kind == "success"


def test_a_refusal_gives_way_to_the_outcome_and_a_used_proof_does_not(notary: Running) -> None:
    call(notary.front, keyed(), make_result())
    event = call_event(decision="deny", error_code="budget_exhausted")
    told = notary.front.ask(Refuse(event, keyed().proof, idempotency=KEY))
    assert isinstance(told, WrittenRefusal)
    assert told.repeated is not None
    assert told.repeated.code == "already_executed"
    used = keyed()
    notary.front.ask(used)
    assert notary.front.ask(Refuse(event, used.proof, idempotency=KEY)).is_replay


def test_a_refused_call_of_a_revoked_lease_gets_no_outcome(notary: Running) -> None:
    lease = notary.front.ask(make_issue(principal="uid:1000"))
    event = call_event(session_id=lease.session_id)
    call(notary.front, keyed(event=event), make_result())
    denied = call_event(session_id=lease.session_id, decision="deny", error_code="budget_exhausted")
    assert notary.front.ask(Refuse(denied, fresh_proof(), idempotency=KEY)).repeated is not None
    stale = call_event(session_id=lease.session_id, decision="deny", error_code="invalid_lease")
    assert notary.front.ask(Refuse(stale, fresh_proof(), idempotency=KEY)).repeated is None
    notary.front.ask(make_revocation(lease.session_id))
    assert notary.front.ask(Refuse(denied, fresh_proof(), idempotency=KEY)).repeated is None


def test_an_output_is_kept_and_stands_in_no_remembered_answer(notary: Running) -> None:
    asked = make_open(idempotency=CallKey("k", keeps_output=True))
    call(notary.front, asked, make_result(output='{"a":"a-kept-output"}'))
    told = notary.front.ask(keyed())
    assert (told.code, told.closed.kind, told.trace_id) == (None, "success", asked.event.trace_id)
    assert notary.front.ask(ReadKeptOutput(told.call_id)) == '{"a":"a-kept-output"}'
    assert b"a-kept-output" not in bytes(str(told), "utf-8")


def test_a_principal_with_too_many_keys_is_refused_and_forgets_none(notary: Running, monkeypatch: Any) -> None:
    monkeypatch.setattr("notary.operations.idempotency.MAX_KEYS", 2)
    for key in ("a", "b"):
        assert isinstance(notary.front.ask(make_open(idempotency=CallKey(key))), Closed)
    refused = notary.front.ask(make_open(idempotency=CallKey("c")))
    assert (refused.code, refused.retry_after) == ("too_many_idempotency_keys", 3600)
    assert answer(notary, make_open(idempotency=CallKey("a")))[0] == "already_executed"
