"""Admin socket endpoints: learned domains and learned paths."""

from collections.abc import Iterator

import pytest

from tests.conformance.deployment import Caller, Deployment
from tests.conformance.marks import row, rows
from tests.conformance.shapes import seconds_of

KINDS = {"domains": ("any_host", "rule.gateway.invalid"), "paths": ("few_files", "rule/file.txt")}
"""Kind of rule -> an action and what it may reach."""
STAYS = {"domains": "stays.gateway.invalid", "paths": "stays/file.txt"}


def named(suffix: str) -> dict[str, str]:
    """Row -> kind, for a test of both."""
    return {f"{kind}{suffix}": kind for kind in KINDS}


@pytest.fixture(autouse=True)
def clean(gate: Deployment) -> Iterator[None]:
    """Remove the rules that a test adds."""
    yield
    for kind in KINDS:
        gate.operator().delete(f"/v1/admin/{kind}/clear")


def pair(kind: str) -> dict[str, str]:
    """The rule, as an operator writes it."""
    action, value = KINDS[kind]
    return {"action_id": action, kind.removesuffix("s"): value}


def pairs(operator: Caller, kind: str) -> list[tuple[str, str]]:
    answer = operator.get(f"/v1/admin/{kind}")
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) >= {kind}
    return [(one["action_id"], one[kind.removesuffix("s")]) for one in answer.json()[kind]]


ALSO = {
    "domains": [
        "admin-endpoints/domains-add",
        *(f"learned-domain/{name}" for name in ("domain", "action_id", "source-cli", "added_at")),
    ],
    "paths": [
        "admin-endpoints/paths-add", *(f"learned-path/{name}" for name in ("path", "action_id", "source", "added_at")),
    ],
}  # fmt: skip


@rows("admin-endpoints", named(""), ALSO)
def test_a_rule_is_added_and_listed(operator: Caller, case: str) -> None:
    assert pairs(operator, case) == []
    answer = operator.post(f"/v1/admin/{case}", pair(case))
    assert answer.status_code == 200
    assert pair(case).items() <= answer.json().items()
    assert pairs(operator, case) == [KINDS[case]]
    (rule,) = operator.get(f"/v1/admin/{case}").json()[case]
    assert rule["source"] == "cli"
    assert seconds_of(rule["added_at"]) > 0


@rows("admin-endpoints", named("-remove"))
def test_a_rule_is_removed(operator: Caller, case: str) -> None:
    operator.post(f"/v1/admin/{case}", pair(case))
    operator.post(f"/v1/admin/{case}", pair(case) | {case.removesuffix("s"): STAYS[case]})
    answer = operator.delete(f"/v1/admin/{case}", pair(case))
    assert (answer.status_code, answer.json()["removed"]) == (200, True)
    assert pairs(operator, case) == [(KINDS[case][0], STAYS[case])]


@rows("admin-endpoints", named("-clear"))
def test_rules_are_cleared(operator: Caller, case: str) -> None:
    operator.post(f"/v1/admin/{case}", pair(case))
    answer = operator.delete(f"/v1/admin/{case}/clear")
    assert (answer.status_code, answer.json()["cleared"]) == (200, True)
    assert pairs(operator, case) == []


@row("learned-domain/joins-allowlist", "behaviour/3-domains-join")
def test_a_call_that_goes_there_is_not_held_any_more(gate: Deployment) -> None:
    agent, operator = gate.agent(), gate.operator()
    body = {"host": "joins.gateway.invalid"}
    assert agent.execute("any_host", body).status_code == 202
    rule = {"action_id": "any_host", "domain": "joins.gateway.invalid"}
    assert operator.post("/v1/admin/domains", rule).status_code == 200
    answer = agent.execute("any_host", body | {"host": "joins.gateway.invalid"})
    assert (answer.status_code, answer.json()) == (502, {"error": "action_execution_failed"})
    assert agent.execute("http_host", body).status_code == 202  # another action has not learned it


@row("learned-path/used-by-files")
def test_a_call_that_names_it_is_not_held_and_writes_it(gate: Deployment) -> None:
    agent, operator = gate.agent(), gate.operator()
    body = {"path": "used/two.txt", "content": "learned"}
    assert agent.execute("few_files", body).status_code == 202
    assert operator.post("/v1/admin/paths", {"action_id": "few_files", "path": "used/two.txt"}).status_code == 200
    answer = agent.execute("few_files", body)
    assert answer.status_code == 200, answer.text
    assert (gate.state / "files" / "used" / "two.txt").read_text() == "learned"
