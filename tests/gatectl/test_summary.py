"""`audit summary`: bars of plain characters where there is no terminal, and a note while events are still counted."""

from typing import Any

from tests.support.gatectl import Gatectl, pointed_at
from tests.support.scripted_gateway import scripted_gateway


def counts(**given: int) -> dict[str, int]:
    return {"allow": 0, "deny": 0, "pending_approval": 0, "error": 0} | given


SUMMARY: dict[str, Any] = {
    "step": "hour", "complete": False,
    "buckets": [
        {"start": "2026-11-21T10:00:00.000Z", "counts": counts(allow=4, deny=1)},
        {"start": "2026-11-21T11:00:00.000Z", "counts": counts()},
        {"start": "2026-11-21T12:00:00.000Z", "counts": counts(allow=1, pending_approval=1)},
    ],
    "actions": [{"action_id": "refund\x1b", "count": 4}, {"action_id": "digest", "count": 1}],
    "principals": [{"principal": None, "count": 7}],
    "sums": [{"action_id": "refund", "pointer": "/amount", "sum": "120.50"}],
}  # fmt: skip
SHOWN = f"""\
# allow  ? held  x deny  ! error
2026-11-21 10:00  5  {"#" * 38}{"x" * 10}
2026-11-21 11:00  0
2026-11-21 12:00  2  {"#" * 10}{"?" * 10}
total (UTC)  allow 5  held 1  deny 1  error 0

busiest actions
  refund\\u001b  4  {"#" * 48}
  digest        1  {"#" * 12}

busiest principals
  others  7  {"#" * 48}

ACTION  VALUE    SUM
refund  /amount  120.50
"""


def test_calls_over_time_are_bars_of_plain_characters_without_a_terminal(gatectl: Gatectl) -> None:
    with scripted_gateway({"GET /v1/audit/summary": (200, SUMMARY)}) as server:
        ran = pointed_at(gatectl, server.url).done("audit", "summary")
    assert ran.out == SHOWN
    assert "still being counted" in ran.err
