"""Refusals of a principal beyond so many an hour: two events a minute, which tell of all, whatever ends meanwhile."""

from pathlib import Path
from typing import Any

import pytest

from ipc.evidence.events import AuditEvent
from ipc.operations.calls import ProofRecord, Refuse, UseProof, WrittenRefusal
from ipc.operations.evidence import WriteEvent
from notary.ledger.refused import MAX_KEYS, REFUSALS_AN_HOUR, WINDOW_SECONDS, RefusalCount, pruned
from tests.notary.running import NotaryProcess, Running, settings_in
from tests.notary.samples import NOW, answered, call_event, make_approval, make_hold
from tests.support.supervised import wait_until

DENIED = {"decision": "deny", "error_code": "policy_denied", "reason": "no"}
FEW = 5


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The notary is a thread of this process."""
    monkeypatch.setattr("notary.ledger.refused.REFUSALS_AN_HOUR", FEW)


def refuse(notary: Running, count: int, **fields: Any) -> None:
    for number in range(count):
        event = call_event(**DENIED | {"trace_id": f"trc_{number}"} | fields)
        assert notary.front.ask(Refuse(event)) == WrittenRefusal()


def events(notary: Running) -> list[dict[str, Any]]:
    return [one for one in notary.events() if one["event_type"] == "ActionCall"]


def of(told: list[dict[str, Any]]) -> list[tuple[str, int | None]]:
    return [(one["trace_id"], one.get("attempts", {}).get("count")) for one in told]


def test_refusals_beyond_the_allowance_have_the_first_and_the_last_event_of_a_minute(notary: Running) -> None:
    refuse(notary, FEW + 20)
    assert of(events(notary)) == [(f"trc_{n}", None) for n in range(FEW + 1)]
    notary.clock.time += WINDOW_SECONDS
    wait_until(lambda: len(events(notary)) == FEW + 2)
    last = events(notary)[-1]
    assert of([last]) == [(f"trc_{FEW + 19}", 19)]
    assert {name: last[name] for name in DENIED} == DENIED
    refuse(notary, 3)
    assert of(events(notary)[FEW + 2 :]) == [("trc_0", None)]


def test_each_principal_and_code_has_an_allowance_of_its_own_and_each_hour_another(notary: Running) -> None:
    refuse(notary, FEW * 2)
    before = len(events(notary))
    refuse(notary, FEW, principal="another")
    refuse(notary, FEW, error_code="budget_exhausted")
    assert len(events(notary)) == before + 2 * FEW
    notary.clock.time += 3600.0
    wait_until(lambda: len(events(notary)) == before + 2 * FEW + 1)
    refuse(notary, FEW)
    assert len(events(notary)) == before + 3 * FEW + 1


def test_sessions_of_a_principal_share_its_allowance(notary: Running) -> None:
    for number in range(FEW * 2):
        refuse(notary, 1, session_id=f"ses_{number}")
    assert len(events(notary)) == FEW + 1


def test_a_refusal_that_is_counted_uses_its_proof(notary: Running) -> None:
    refuse(notary, FEW + 1)
    assert notary.front.ask(Refuse(call_event(**DENIED), ProofRecord("p", NOW))) == WrittenRefusal()
    assert not notary.front.ask(UseProof(ProofRecord("p", NOW))).is_fresh
    assert notary.front.ask(Refuse(call_event(**DENIED), ProofRecord("p", NOW))) == WrittenRefusal(is_replay=True)


def test_leases_that_are_refused_to_a_user_are_counted_apart_from_calls(notary: Running) -> None:
    refused: dict[str, Any] = {"event_type": "LeaseIssued", "decision": "deny", "error_code": "budget_exhausted"}
    for _ in range(FEW * 2):
        notary.front.ask(WriteEvent(AuditEvent(principal="uid:7", trace_id="trc_1", **refused)))
    assert [one["event_type"] for one in notary.events()].count("LeaseIssued") == FEW + 1
    refuse(notary, FEW, principal="uid:7", error_code="budget_exhausted")
    assert len(events(notary)) == FEW


def test_answers_with_a_hold_that_waits_already_are_counted_alike(notary: Running) -> None:
    approval = make_approval()
    notary.front.ask(make_hold(approval))
    before = len(events(notary))
    event = call_event(request_hash=approval.request_hash, **DENIED)
    for _ in range(FEW * 3):
        assert notary.front.ask(Refuse(event, unless_held=True)) == WrittenRefusal(held=answered(approval))
    assert len(events(notary)) == before + FEW + 1


def test_events_that_stand_for_many_are_not_counted_again(notary: Running) -> None:
    refuse(notary, FEW * 2, attempts={"count": 7, "uid": 3})
    assert len(events(notary)) == FEW * 2


def test_a_notary_that_ends_tells_what_it_has_counted(notary: Running) -> None:
    refuse(notary, FEW + 8)
    notary.stop()
    assert of(events(notary))[-1] == (f"trc_{FEW + 7}", 7)
    notary.start()
    assert notary.stored("SELECT key FROM meta WHERE key LIKE 'refused%'") == []


def test_a_killed_notary_leaves_its_counts_to_the_next_one(tmp_path: Path) -> None:
    process = NotaryProcess(settings_in(tmp_path / "state"))
    process.ready()
    front = process.attach("front-1")
    for _ in range(REFUSALS_AN_HOUR + 8):
        front.ask(Refuse(call_event(**DENIED)))
    process.kill()
    front.close()
    notary = Running(tmp_path / "state")
    wait_until(lambda: len(events(notary)) == REFUSALS_AN_HOUR + 2)
    assert events(notary)[-1]["attempts"] == {"count": 7, "has_proven": True}
    notary.close()


def test_idle_counts_are_forgotten_where_there_are_too_many_and_open_ones_are_not() -> None:
    counts = {(str(n), ""): RefusalCount(0.0, count=n % 2) for n in range(MAX_KEYS * 2)}
    assert all(one.count for one in pruned(counts).values())
    assert len(pruned(counts)) == MAX_KEYS
    assert pruned(dict(list(counts.items())[:MAX_KEYS])) == dict(list(counts.items())[:MAX_KEYS])


def test_refused_previews_are_counted_and_answered_ones_are_not(notary: Running) -> None:
    refused: dict[str, Any] = {"event_type": "ActionPreviewed", **DENIED}
    answered_ones: dict[str, Any] = {"event_type": "ActionPreviewed", "decision": "allow"}
    for _ in range(FEW * 2):
        notary.front.ask(WriteEvent(call_event(**refused)))
        notary.front.ask(WriteEvent(call_event(**answered_ones)))
    told = [one["decision"] for one in notary.events() if one["event_type"] == "ActionPreviewed"]
    assert (told.count("deny"), told.count("allow")) == (FEW + 1, FEW * 2)
