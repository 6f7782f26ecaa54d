"""Execution intent: what GET /v1/admin/intents tells of a call that was dispatched and has no receipt."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.deployment import Deployment
from tests.conformance.marks import row, rows
from tests.conformance.shapes import is_id, is_integer, is_sha256, seconds_of
from tests.conformance.underway import Intent, intents, still_workers


@pytest.fixture(scope="module")
def story(gate: Deployment) -> tuple[Intent, dict[str, Any], Intent | None]:
    """The intent of a call that is under way, the call's answer, and the intent after it."""
    agent = gate.agent()
    with still_workers(gate) as workers:
        call, intent = workers.begin(lambda: agent.execute("spin", {}))
        assert gate.events(session_id=agent.session_id, event_type="ActionCall") == []
    answer = call.answer()
    assert answer is not None
    assert answer.status_code == 200
    after = [one for one in intents(gate) if one["intent_id"] == intent["intent_id"]]
    return intent, answer.json(), after[0] if after else None


Story = tuple[Intent, dict[str, Any], Intent | None]


@row("execution-intent/before-dispatch")
def test_it_is_there_before_the_provider_has_run(gate: Deployment) -> None:
    """Workers stand still: whatever is there then, no provider has had a hand in it."""
    agent = gate.agent()
    file = gate.state / "files" / "after.intent"
    with still_workers(gate, files=True) as workers:
        call, intent = workers.begin(lambda: agent.execute("file_write", {"path": file.name, "content": "x"}))
        assert intent["action_id"] == "file_write"
        assert not file.exists()
    assert call.status() == 200
    assert file.exists()


@row("execution-intent/before-dispatch")
def test_without_an_intent_no_provider_runs(gate: Deployment) -> None:
    agent = gate.agent()
    file = gate.state / "files" / "without.intent"
    with gate.without("journal"):
        answer = agent.execute("file_write", {"path": file.name, "content": "x"})
        assert answer.status_code == 503
        assert not file.exists()
    assert not file.exists()
    assert agent.execute("file_write", {"path": file.name, "content": "x"}).status_code == 200
    assert file.exists()


@row("execution-intent/resolved-by-receipt", "events/2-intent-then-receipt")
def test_its_receipt_resolves_it(gate: Deployment, story: Story) -> None:
    intent, result, after = story
    assert after is None
    receipt = gate.receipt(result["receipt_id"])
    assert receipt["grant_id"] == intent["grant_id"]
    assert seconds_of(intent["dispatched_at"]) <= seconds_of(receipt["finished_at"])


@rows(
    "execution-intent",
    {
        "intent_id": lambda intent, result: is_id("intent_", intent["intent_id"]),
        "trace_id": lambda intent, result: intent["trace_id"] == result["trace_id"],
        "action_id": lambda intent, result: intent["action_id"] == "spin",
        "dispatched_at": lambda intent, result: seconds_of(intent["dispatched_at"]) > 0,
        "age_seconds": lambda intent, result: is_integer(intent["age_seconds"]),
        "grant_id": lambda intent, result: intent["grant_id"] == result["grant_id"],
        "provider_module": lambda intent, result: is_sha256(intent["provider_module"]),
    },
)
def test_the_intent_has_it(story: Story, case: Callable[[Intent, dict[str, Any]], bool]) -> None:
    assert case(story[0], story[1])


@row("execution-intent/principal")
def test_the_principal_is_the_callers(gate: Deployment, story: Story) -> None:
    assert story[0]["principal"] == gate.principal
