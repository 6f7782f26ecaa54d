"""GET /v1/audit/summary of a whole gateway: its span is whole and bounded."""

from typing import Any

import pytest

from tests.support.gateway import Gateway


def summary(gate: Gateway, query: str = "") -> Any:
    answer = gate.operator().get(f"/v1/audit/summary{query}")
    assert answer.status_code == 200, answer.text
    return answer.json()


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
