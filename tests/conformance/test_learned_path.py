"""Learned path: what operators added to a filesystem action's paths."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conformance.deployment import Deployment
from tests.conformance.marks import row, rows
from tests.conformance.shapes import seconds_of

Learned = dict[str, Any]
RULE = {"action_id": "few_files", "path": "learned/one.txt"}


@pytest.fixture(scope="module", autouse=True)
def clean(gate: Deployment) -> Iterator[None]:
    """Remove the rules that this module has learned."""
    yield
    gate.operator().delete("/v1/admin/paths/clear")


@pytest.fixture(scope="module")
def learned(gate: Deployment) -> Learned:
    """One, as it is listed."""
    operator = gate.operator()
    assert operator.post("/v1/admin/paths", RULE).status_code == 200
    paths = operator.get("/v1/admin/paths").json()["paths"]
    return dict(next(one for one in paths if one["path"] == RULE["path"]))


@rows(
    "learned-path",
    {
        "path": lambda one: one["path"] == RULE["path"],
        "action_id": lambda one: one["action_id"] == RULE["action_id"],
        "source": lambda one: one["source"] == "cli",
        "added_at": lambda one: seconds_of(one["added_at"]) > 0,
    },
)
def test_the_rule_has_it(learned: Learned, case: Callable[[Learned], bool]) -> None:
    assert case(learned)


@row("learned-path/used-by-files")
def test_a_call_that_names_it_is_not_held_and_writes_it(gate: Deployment) -> None:
    agent, operator = gate.agent(), gate.operator()
    body = {"path": "used/two.txt", "content": "learned"}
    assert agent.execute("few_files", body).status_code == 202
    assert operator.post("/v1/admin/paths", {"action_id": "few_files", "path": "used/two.txt"}).status_code == 200
    answer = agent.execute("few_files", body)
    assert answer.status_code == 200, answer.text
    assert (gate.state / "files" / "used" / "two.txt").read_text() == "learned"
