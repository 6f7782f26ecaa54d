"""Counts of calls by hour, in each kind of ledger."""

from typing import Any

import pytest

from contract.activity import AuditSummary, CountedPrincipal
from ipc.evidence.kept_values import KeptValue, KeptValues
from ipc.operations.activity import SummariseAudit
from ipc.operations.calls import CallKey, ProofRecord, Refuse
from notary.database import OpenTransaction
from notary.ledger import activity
from notary.ledger.activity_sums import SumReader
from notary.ledger.cut import BEGINNING, CLEARED, Cut, write_cut
from notary.operations import summarising
from notary.sealing.clearing import clear_slice
from tests.notary.running import Running, query
from tests.notary.samples import NOW, make_approval, make_hold, make_note, make_open, make_refuse, record_call
from tests.support.asking import Asker

HOUR = int(NOW // 3600)


def asked(front: Asker, first: int = HOUR, end: int = HOUR + 1, step: int = 1) -> AuditSummary:
    summary: AuditSummary = front.ask(SummariseAudit(first, end, step))
    return summary


def counts_of(summary: AuditSummary) -> list[dict[str, int]]:
    """The counts of decisions that are not zero, by bucket."""
    names = ("allow", "deny", "pending_approval", "error")
    return [{name: number for name in names if (number := getattr(one.counts, name))} for one in summary.buckets]


def refuse(front: Asker, **given: Any) -> None:
    front.ask(make_refuse(**given))


def test_calls_are_counted_by_hour_and_decision_as_soon_as_they_are_in_the_ledger(kept: Running) -> None:
    record_call(kept.front)
    record_call(kept.front)
    refuse(kept.front, decision="error", error_code="policy_engine_unavailable")
    kept.front.ask(make_hold())
    kept.clock.time = NOW + 3600
    refuse(kept.front)
    summary = asked(kept.front, HOUR - 1, HOUR + 3)
    assert counts_of(summary) == [{}, {"allow": 2, "pending_approval": 1, "error": 1}, {"deny": 1}, {}]
    assert [one.start for one in summary.buckets][1] == "2026-09-21T14:00:00.000Z"
    assert summary.step == "hour"
    assert summary.complete


def test_days_are_the_sums_of_their_hours(kept: Running) -> None:
    day = HOUR // 24 * 24
    for hours in (0, 1, 24):
        kept.clock.time = (day + hours) * 3600 + 1.0
        refuse(kept.front)
    summary = asked(kept.front, day - 24, day + 48, 24)
    assert (summary.step, counts_of(summary)) == ("day", [{}, {"deny": 2}, {"deny": 1}])


def test_a_clock_that_was_set_back_counts_calls_in_the_hours_of_their_events(kept: Running) -> None:
    for later in (3600.0, 0.0):
        kept.clock.time = NOW + later
        refuse(kept.front)
        asked(kept.front)
    assert counts_of(asked(kept.front, HOUR, HOUR + 2)) == [{"deny": 1}, {"deny": 1}]


def test_a_refusal_that_stands_for_many_counts_as_many(kept: Running) -> None:
    refuse(kept.front, attempts={"count": 41})
    refuse(kept.front)
    summary = asked(kept.front)
    assert counts_of(summary) == [{"deny": 42}]
    assert [(one.action_id, one.count) for one in summary.actions] == [("text_digest", 42)]


def test_a_hold_that_is_answered_again_is_counted_once(kept: Running) -> None:
    approval = make_approval()
    kept.front.ask(make_hold(approval))
    kept.front.ask(make_hold(make_approval(request_hash=approval.request_hash)))
    assert len([one for one in query(kept.front) if b"pending_approval" in one]) == 2
    assert counts_of(asked(kept.front)) == [{"pending_approval": 1}]


def test_a_call_that_is_answered_again_under_its_key_is_counted_and_summed_once(kept: Running) -> None:
    for _ in range(2):
        kept.front.ask(
            make_open(idempotency=CallKey("k", keeps_output=True), kept=KeptValues((KeptValue("/amount", "25"),)))
        )
    assert [b'"is_repeated":true' in one for one in query(kept.front)] == [True, False]
    summary = asked(kept.front)
    assert counts_of(summary) == [{"allow": 1}]
    assert [one.sum for one in summary.sums] == ["25"]


def test_acts_of_operators_are_no_calls(kept: Running) -> None:
    kept.front.ask(make_note(event_type="PolicyGranted", principal="operator:ann"))
    refuse(kept.front)
    summary = asked(kept.front)
    assert counts_of(summary) == [{"deny": 1}]
    assert [(one.principal, one.count) for one in summary.principals] == [("uid:1000", 1)]


def test_the_busiest_actions_and_principals_come_first_and_the_rest_has_no_name(
    kept: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("notary.reading.activity.MAX_NAMES", 2)
    for principal, number in (("a", 1), ("b", 3), ("c", 2)):
        for _ in range(number):
            refuse(kept.front, principal=principal)
    assert asked(kept.front).principals == (
        CountedPrincipal(principal="b", count=3), CountedPrincipal(principal=None, count=3)
    )  # fmt: skip


def test_an_hour_counts_a_bounded_number_of_names(kept: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity, "NAMES", 2)
    for name in "abcda":
        refuse(kept.front, principal=name)
        asked(kept.front)
    named = {one.principal: one.count for one in asked(kept.front).principals}
    assert named == {"a": 2, "b": 1, None: 2}


def test_kept_numbers_of_executed_calls_are_summed_exactly(kept: Running) -> None:
    def values(amount: str) -> KeptValues:
        return KeptValues(
            (KeptValue("/amount", amount), KeptValue("/to", '"acct-7"'), KeptValue("/iban", '"3"', "masked"))
        )

    for amount in ("0.1", "0.2", "1e+21", "-3"):
        kept.front.ask(make_open(kept=values(amount)))
    kept.front.ask(make_hold(kept=values("500")))
    kept.front.ask(Refuse(make_refuse().event, ProofRecord("p", NOW), kept=values("7000")))
    for first, end, step in ((HOUR, HOUR + 1, 1), (HOUR // 24 * 24, HOUR // 24 * 24 + 24, 24)):
        (total,) = asked(kept.front, first, end, step).sums
        assert (total.action_id, total.pointer, total.sum) == ("text_digest", "/amount", "999999999999999999997.3")


def sums_in(connection: OpenTransaction) -> list[str]:
    """Those of the hour and of the day."""
    reader = SumReader(connection)
    return [str(reader.opened(stored)) for (stored,) in connection.execute("SELECT sum FROM activity_sums")]


def test_a_value_that_is_about_to_be_erased_leaves_the_sums(notary: Running) -> None:
    for amount in ("25", "17.5"):
        notary.front.ask(make_open(kept=KeptValues((KeptValue("/amount", amount),))))
    asked(notary.front)
    notary.stop()
    with notary.stranger() as connection:
        first, second = (key for (key,) in connection.execute("SELECT key FROM kept_values ORDER BY seq").fetchall())
        activity.forget_values(connection, [first], is_file=True)
        assert sums_in(connection) == ["17.5", "17.5"]
        activity.forget_values(connection, [second], is_file=True)
        assert connection.execute("SELECT count(*) FROM activity_sums").fetchone() == (0,)


def test_events_that_are_about_to_leave_the_ledger_are_counted_before(notary: Running) -> None:
    for _ in range(5):
        refuse(notary.front)
    notary.stop()
    with notary.stranger() as connection:
        connection.execute("DELETE FROM meta WHERE key = 'counted'")
        connection.execute("DELETE FROM activity")
        write_cut(connection, CLEARED, Cut())
        write_cut(connection, BEGINNING, Cut(events=4))
        while clear_slice(connection, 2, is_file=True).left:
            pass
    assert counts_of(asked(notary.start())) == [{"deny": 5}]


def test_counts_are_forgotten_after_400_days(notary: Running) -> None:
    record_call(notary.front)
    asked(notary.front)
    notary.stop()
    with notary.stranger() as connection:
        for later, left in ((399, 6), (401, 0)):
            activity.forget_before(connection, NOW + later * 86_400)
            assert connection.execute("SELECT count(*) FROM activity").fetchone() == (left,)


def test_a_notary_that_starts_again_counts_each_call_once(kept: Running) -> None:
    refuse(kept.front)
    asked(kept.front)
    refuse(kept.front)
    front = kept.restart()
    refuse(front)
    assert counts_of(asked(front)) == [{"deny": 3}]


def test_a_long_ledger_is_counted_in_parts_and_says_so_until_it_is_whole(
    kept: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summarising, "COUNTED_AT_ONCE", 2)
    for _ in range(3):
        refuse(kept.front)
    first, second = asked(kept.front), asked(kept.front)
    assert (first.complete, counts_of(first)) == (False, [{"deny": 2}])
    assert (second.complete, counts_of(second)) == (True, [{"deny": 3}])
