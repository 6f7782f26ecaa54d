"""GET /v1/audit/summary of a whole gateway: what was called is counted, and its span is bounded."""

from typing import Any

import pytest

from tests.support.gateway import Gateway
from tests.support.own_gateway import own_gateway

gate = own_gateway()


def summary(gate: Gateway, query: str = "") -> Any:
    answer = gate.operator().get(f"/v1/audit/summary{query}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_each_call_is_counted_once_by_its_decision_action_and_principal(gate: Gateway) -> None:
    agent = gate.agent()
    for _ in range(3):
        assert agent.execute("text_digest", {"text": "x"}).status_code == 200
    assert agent.execute("text_digest", {"no": 1}).status_code == 422
    assert agent.execute("payment_transfer", {"to": "a", "amount_cents": 1, "currency": "EUR"}).status_code == 202
    for _ in range(2):
        told = summary(gate)
        assert len(told["buckets"]) == 24
        counted = {name: sum(one["counts"][name] for one in told["buckets"]) for name in told["buckets"][0]["counts"]}
        assert counted == {"allow": 3, "deny": 1, "pending_approval": 1, "error": 0}
        assert told["actions"] == [
            {"action_id": "text_digest", "count": 4},
            {"action_id": "payment_transfer", "count": 1},
        ]
        assert told["principals"] == [{"principal": "dev:anonymous", "count": 5}]
        assert (told["sums"], told["complete"]) == ([], True)


def test_hours_and_days_are_whole_and_those_of_the_span(gate: Gateway) -> None:
    hours = summary(gate, "?after=2026-01-31T10:59:00Z&before=2026-01-31T12:00:00Z")
    assert [one["start"] for one in hours["buckets"]] == ["2026-01-31T10:00:00.000Z", "2026-01-31T11:00:00.000Z"]
    days = summary(gate, "?step=day&after=2026-01-31T23:00:00Z&before=2026-02-01T00:00:01Z")
    assert [one["start"][:10] for one in days["buckets"]] == ["2026-01-31", "2026-02-01"]


@pytest.mark.parametrize(
    "query",
    [
        "after=2026-02-01T00:00:00Z&before=2026-01-01T00:00:00Z",
        "after=2026-01-01T00:00:00Z&before=2026-02-01T00:00:01Z",
        "step=day&after=2024-01-01T00:00:00Z&before=2026-02-01T00:00:00Z",
        "step=week",
    ],
)
def test_a_span_that_is_empty_or_too_long_is_refused(gate: Gateway, query: str) -> None:
    answer = gate.operator().get(f"/v1/audit/summary?{query}")
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
