"""Verification outcomes: each of the five, in the result, the receipt and the event."""

from typing import Any

from tests.conformance.deployment import Deployment
from tests.conformance.marks import rows


@rows(
    "verification-outcomes",
    {
        "verified": ("file_write", {"path": "outcome.txt", "content": "seen"}),
        "verification_failed": ("unseen", {"text": "x"}),
        "unverifiable_declared": ("text_digest", {"text": "x"}),
        "skipped": ("unchecked", {"text": "x"}),
    },
)
def test_the_outcome_is_told_everywhere(gate: Deployment, case: tuple[str, Any]) -> None:
    agent = gate.agent()
    result = agent.execute(*case)
    assert result.status_code == 200, result.text
    outcome = result.json()["verification_outcome"]
    assert outcome == {
        "file_write": "verified", "unseen": "verification_failed", "text_digest": "unverifiable_declared",
        "unchecked": "skipped",
    }[case[0]]  # fmt: skip
    assert gate.receipt(result.json()["receipt_id"])["verification_outcome"]["status"] == outcome
    assert gate.events(session_id=agent.session_id, event_type="ActionCall")[0]["verification_outcome"] == outcome
