"""Limits of an action: over any of them the call ends with 502, and its receipt says which it was."""

from typing import Any

from tests.conformance.deployment import Caller, Deployment
from tests.conformance.marks import rows


@rows(
    "call-limits",
    {
        "fuel": ("little_fuel", {"text": "x"}, "fuel limit of 1000"),
        "memory_mb": ("little_memory", {"memory_mb": 1}, "memory limit"),
        "timeout_seconds": ("little_time", {"seconds": 1}, "time limit of 0.1 s"),
        "max_io_calls": ("no_io", {"path": "a", "content": "b"}, "I/O call limit of 0"),
    },
)
def test_over_the_limit_it_is_502(gate: Deployment, agent: Caller, case: tuple[str, Any, str]) -> None:
    action, body, words = case
    answer = agent.execute(action, body)
    assert (answer.status_code, answer.json()) == (502, {"error": "action_execution_failed"})
    assert words in gate.receipt_of(agent)["normalized_result"]["reason"]
