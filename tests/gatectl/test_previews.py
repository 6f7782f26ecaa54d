"""`actions preview` and `actions show`, for people."""

import re
from typing import Any

from tests.support.gatectl import Gatectl, pointed_at
from tests.support.scripted_gateway import scripted_gateway

HELD: dict[str, Any] = {
    "principal": "billing-agent", "action_id": "pay", "trace_id": "trc_1", "decision": "hold", "rule": "hold_high_risk",
    "shown": {"quorum": {"count": 3, "groups": {"finance": 1, "sec\x1b": 1}}}, "sends": None,
}  # fmt: skip


def test_a_preview_says_how_many_approvals_the_call_would_need(gatectl: Gatectl) -> None:
    asked = ("actions", "preview", "pay", "--principal", "billing-agent", "--request", "{}")
    with scripted_gateway({"POST /v1/admin/actions/pay/preview": (200, HELD)}) as server:
        out = pointed_at(gatectl, server.url).done(*asked).out
    assert "held for a person, needs 3 approvals (1 of finance, 1 of sec\\u001b)" in out


def test_an_action_is_shown_with_the_values_that_policy_decides_by(gatectl: Gatectl) -> None:
    assert re.search(r"decided by +/amount_cents, /currency\n", gatectl.done("actions", "show", "payment_transfer").out)
    assert "decided by" not in gatectl.done("actions", "show", "text_digest").out
