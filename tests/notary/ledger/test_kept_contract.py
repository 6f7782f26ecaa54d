"""Kept values of events as all kinds of ledger show, find and erase them."""

import json
from typing import Any

import pytest

from ipc.evidence.kept_values import KeptValue, KeptValues
from ipc.evidence.records import EventQuery, KeptFilter
from ipc.operations.erasing import ErasedKept, EraseKept
from ipc.operations.evidence import QueryEvents
from notary.reading import shown_kept
from tests.notary.running import Running, query
from tests.notary.samples import ERASED, NOW, call_event, make_note, make_open, record_call
from tests.support.asking import Told


def payment(invoice: str, amount: float = 100, iban: str = "3000") -> KeptValues:
    values = (("/invoice", invoice, "kept"), ("/amount", amount, "kept"), ("/iban", iban, "masked"))
    return KeptValues(tuple(KeptValue(pointer, json.dumps(value), kind) for pointer, value, kind in values))


def pay(kept: Running, invoice: str, **given: Any) -> str:
    """Its trace id. Each call is a second later than the one before."""
    kept.clock.time += 1
    event = call_event(principal=given.pop("principal", "uid:1000"))
    kept.front.ask(make_open(event=event, kept=payment(invoice, **given)))
    return event.trace_id or ""


def shown(kept: Running, /, **given: Any) -> list[dict[str, Any]]:
    answer = kept.front.ask(QueryEvents(EventQuery(**given), with_kept=True)).events
    return [json.loads(one) for one in answer]


def found(kept: Running, *wanted: tuple[str, str], **given: Any) -> list[str]:
    """Trace ids of the events that keep these values."""
    filters = tuple(KeptFilter(*one) for one in wanted)
    return [one["trace_id"] for one in shown(kept, kept=filters, **given)]


def test_an_event_is_shown_with_its_kept_values_and_one_without_as_it_is_stored(kept: Running) -> None:
    trace_id = pay(kept, "in_7")
    record_call(kept.front)
    bare, full = kept.front.ask(QueryEvents(EventQuery(event_type="ActionCall"), with_kept=True)).events
    assert [bare, full[: full.index(b',"kept_state":')] + b"}"] == query(kept.front, event_type="ActionCall")
    event = json.loads(full)
    assert (event["trace_id"], event["kept_state"]) == (trace_id, "whole")
    assert event["kept_values"] == {"/invoice": "in_7", "/amount": 100, "/iban": "3000"}
    assert set(event["kept"]) == set(event["kept_values"])


def test_erased_values_are_shown_as_erased(kept: Running) -> None:
    pay(kept, "in_7")
    (event,) = shown(kept, event_type="ActionCall")
    assert kept.front.ask(EraseKept(ERASED, event["event_id"])) == ErasedKept(3, 0, None)
    (event,) = shown(kept, event_type="ActionCall")
    assert event["kept_state"] == "erased"
    assert event["kept_values"] == {"/invoice": None, "/amount": None, "/iban": None}
    assert found(kept, ("/invoice", "in_7")) == []


@pytest.mark.parametrize("common", [shown_kept.COMMON, 2, 0])
def test_events_are_found_by_a_kept_value_newest_first_and_page_by_page(
    kept: Running, common: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown_kept, "COMMON", common)
    traces = [pay(kept, f"in_{number % 2}", amount=number) for number in range(6)]
    record_call(kept.front)
    kept.front.ask(make_note())
    assert found(kept, ("/invoice", "in_1")) == traces[::-2]
    assert found(kept, ("/invoice", "in_1"), limit=2) == [traces[5], traces[3]]
    assert found(kept, ("/invoice", "in_1"), before=NOW + 4, limit=2) == [traces[1]]
    assert found(kept, ("/invoice", "in_0"), after=NOW + 1) == [traces[4], traces[2]]
    assert found(kept, ("/invoice", "in_0"), decision="allow", principal="uid:1000") == traces[4::-2]
    assert found(kept, ("/invoice", "in_0"), principal="uid:7") == []
    assert found(kept, ("/invoice", "in_0"), trace_id=traces[2]) == [traces[2]]
    assert found(kept, ("/invoice", "in_0"), ("/amount", "4")) == [traces[4]]
    assert found(kept, ("/invoice", "in_0"), ("/amount", "3")) == []
    assert found(kept, ("/amount", "4"), ("/invoice", "in_0"), ("/iban", "3000")) == []


@pytest.mark.parametrize(
    ("kind", "value", "asked"),
    [("a number", 500, ["500", "5e2", "500.0"]), ("a text", "500", ["500"]), ("a flag", True, ["true"]),
     ("a text of a number", "5e2", ["5e2"]), ("a text with quotes", 'a "b" é', ['a "b" é'])],
)  # fmt: skip
def test_a_value_is_asked_for_as_people_write_it(kept: Running, kind: str, value: Any, asked: list[str]) -> None:
    kept.clock.time += 1
    text = json.dumps(value, ensure_ascii=False)
    kept.front.ask(make_open(kept=KeptValues((KeptValue("/it", text), KeptValue("/other", "1")))))
    for one in asked:
        assert len(found(kept, ("/it", one))) == 1, kind
    for one in ("501", "false", "", "[500]", '"500"'):
        assert found(kept, ("/it", one)) == []
    assert found(kept, ("/other", asked[0])) == []


def test_a_masked_value_is_shown_and_not_found(kept: Running) -> None:
    pay(kept, "in_7")
    assert found(kept, ("/iban", "3000")) == []
    assert found(kept, ("/invoice", "in_7"), ("/iban", "3000")) == []


def test_a_list_with_too_many_bytes_of_values_ends_early(kept: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    traces = [pay(kept, "in_7") for _ in range(3)]
    monkeypatch.setattr(shown_kept, "MAX_SHOWN_BYTES", 200)
    assert found(kept, ("/invoice", "in_7")) == [traces[2]]
    monkeypatch.setattr(shown_kept, "MAX_SHOWN_BYTES", 1)
    assert found(kept, ("/invoice", "in_7")) == [traces[2]]


def test_a_list_with_too_many_bytes_of_events_ends_early(kept: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        kept.front.ask(make_note(trace_id=f"trc_{number}", change={"hold_unless_in": ["x" * 5000]}))
    monkeypatch.setattr(shown_kept, "MAX_SHOWN_BYTES", 12_000)
    assert [one["trace_id"] for one in shown(kept, limit=3)] == ["trc_2", "trc_1"]


def test_a_query_for_more_values_than_a_call_may_keep_is_refused(kept: Running) -> None:
    with pytest.raises(Told):
        found(kept, *[(f"/{number}", "1") for number in range(33)])
