"""Kept values that are gone, or are not what their event commits to, are not shown; the search goes by its index."""

import json
from typing import Any

import pytest

from ipc.evidence.kept_values import KeptValue, KeptValues
from ipc.evidence.records import EventQuery, KeptFilter
from ipc.operations.evidence import QueryEvents
from notary.reading import queries
from tests.notary.running import Running
from tests.notary.samples import make_note, make_open

KEYS = [(number, bytes(32)) for number in (1, 2)]
OF_KEYS = ("SCAN CONSTANT ROW", "SCAN places")
KEPT = KeptValues((KeptValue("/a", "1"), KeptValue("/b", '"x"')))


def shown(notary: Running) -> dict[str, Any]:
    (event,) = notary.front.ask(QueryEvents(EventQuery(event_type="ActionCall"), with_kept=True)).events
    told: dict[str, Any] = json.loads(event)
    return told


OF_A = "UPDATE kept_values SET {} WHERE pointer = '/a'"
SPOILT = [
    *((change, "x") for change in (
        "DELETE FROM kept_values WHERE pointer = '/a'", OF_A.format("value = CAST('2' AS BLOB)"),
        OF_A.format("salt = NULL"), OF_A.format("value = NULL, salt = NULL"), OF_A.format("pointer = '/c'"),
        OF_A.format("value = CAST(substr(value, 1, 23) || 'x' AS BLOB)"),
        OF_A.format("value = zeroblob(24), erased_by = 1"),
    )),
    *((change, None) for change in ("DELETE FROM kept_keys", "UPDATE kept_keys SET keys = randomblob(length(keys))")),
]  # fmt: skip


@pytest.mark.parametrize(("change", "other"), SPOILT)
def test_a_value_without_its_key_or_not_that_of_its_commitment_is_missing_and_not_erased(
    notary: Running, change: str, other: str | None
) -> None:
    notary.front.ask(make_open(kept=KEPT))
    notary.restart()  # the rows leave the journal
    notary.execute(change)
    event = shown(notary)
    assert event["kept_state"] == "missing"
    assert event["kept_values"] == {"/a": None, "/b": other}


def test_a_search_by_kept_values_walks_neither_events_nor_values(notary: Running) -> None:
    notary.front.ask(make_note())
    filters = (KeptFilter("/a", "1"), KeptFilter("/b", "x"))
    for query in (EventQuery(kept=filters), EventQuery(kept=filters, principal="uid:1", after=1.0, before=9.0)):
        statement, values = queries.event_statement(query, KEYS)
        with notary.stranger() as connection:
            plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
        assert plan[0] == "SEARCH kept_values USING INDEX kept_values_by_value (value=? AND pointer=?)", plan
        assert "SEARCH events USING INTEGER PRIMARY KEY (rowid=?)" in plan, plan
        assert not [step for step in plan if "SCAN" in step and step not in OF_KEYS], plan


def test_a_search_by_a_common_value_goes_by_the_index_of_the_other_filters(notary: Running) -> None:
    notary.front.ask(make_note())
    filters = (KeptFilter("/a", "1"), KeptFilter("/b", "x"))
    for query, index in ((EventQuery(kept=filters), "time"), (EventQuery(kept=filters, principal="p"), "principal")):
        statement, values = queries.event_statement(query, KEYS, by_time=True)
        with notary.stranger() as connection:
            plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
        assert f"events USING INDEX events_by_{index}" in plan[0], plan
        assert sum("other USING INDEX kept_values_by_seq (seq=?)" in step for step in plan) == len(filters), plan
        assert not [step for step in plan if "TEMP" in step], plan
