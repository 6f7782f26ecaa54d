"""Behaviour rule 6: every family of metrics, of its kind and with its labels, and seen to move.

Those of webhooks are in tests/conformance/test_webhooks.py, where there are some.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tests.conformance.deployment import Deployment
from tests.conformance.marks import rows
from tests.conformance.outages import without_policy
from tests.conformance.underway import still_workers
from tests.support.gateway import Prover

BODY = {"text": "x"}


@dataclass(frozen=True)
class Case:
    """One family, and what moves it."""

    family: str
    kind: str
    act: Callable[[Deployment], Any]
    labels: frozenset[str] = frozenset()


def family_of(gate: Deployment, name: str) -> tuple[str, list[Sample]]:
    """Kind and samples of a family, as a parser of OpenMetrics reads them."""
    answer = gate.operator().get("/metrics")
    assert answer.status_code == 200, answer.text
    lines = [line for line in answer.text.splitlines() if line.startswith(name) or f" {name} " in line[:120]]
    (family,) = text_string_to_metric_families("\n".join([*lines, "# EOF", ""]))  # type: ignore[no-untyped-call]
    assert family.name == name
    return family.type, family.samples


def total(samples: list[Sample], kind: str) -> float:
    """The value of a family so far: events of a counter, observations of a histogram, a gauge's value."""
    suffix = {"counter": "_total", "histogram": "_count"}.get(kind, "")
    return sum(one.value for one in samples if one.name.endswith(suffix))


def denied_ledger(gate: Deployment) -> None:
    agent = gate.agent()
    with gate.without("ledger"):
        assert agent.execute("text_digest", BODY).status_code == 503


def replayed(gate: Deployment) -> None:
    agent = gate.agent()
    agent.prover = Prover()
    assert agent.execute("text_digest", BODY).status_code == 401


def exhausted(gate: Deployment) -> None:
    agent = gate.agent(max_calls=1)
    assert [agent.execute("text_digest", BODY).status_code for _ in range(2)] == [200, 403]


def executed(gate: Deployment) -> None:
    assert gate.agent().execute("text_digest", BODY).status_code == 200


def broke_its_schema(gate: Deployment) -> None:
    assert gate.agent().execute("other_answer", BODY).status_code == 502


def was_not_ready(gate: Deployment) -> None:
    with without_policy(gate):
        assert gate.client.get("/readyz").status_code == 503


def left_an_intent(gate: Deployment) -> None:
    agent = gate.agent()
    with still_workers(gate) as workers:
        call, _ = workers.begin(lambda: agent.execute("spin", {}))
        with gate.without("journal"):
            workers.go_on()
            assert call.status() == 500


def held(gate: Deployment) -> None:
    gate.held(gate.agent(), body={"text": "aging"})


CASES = {
    "action-calls": Case("gate_action_calls", "counter", executed, frozenset({"action_id", "outcome"})),
    "dpop-rejections": Case("gate_dpop_rejections", "counter", replayed),
    "policy-decisions": Case("gate_policy_decisions", "counter", executed),
    "provider-duration": Case("gate_provider_execution_duration_seconds", "histogram", executed),
    "budget-exhausted": Case("gate_budget_exhausted", "counter", exhausted),
    "audit-write-errors": Case("gate_audit_write_errors", "counter", denied_ledger),
    "response-schema-violations": Case("gate_response_schema_violations", "counter", broke_its_schema),
    "policy-engine-duration": Case(
        "gate_policy_request_duration_seconds", "histogram", executed, frozenset({"operation"})
    ),
    "store-duration": Case("gate_store_request_duration_seconds", "histogram", executed, frozenset({"operation"})),
    "unresolved-intents": Case("gate_unresolved_intents", "gauge", left_an_intent),
    "oldest-pending-approval": Case("gate_oldest_pending_approval_age_seconds", "gauge", held),
    "ledger-write-duration": Case("gate_ledger_write_duration_seconds", "histogram", executed),
    "readiness-degraded": Case("gate_readiness_degraded", "counter", was_not_ready, frozenset({"reason"})),
}


@rows("metrics", CASES)
def test_the_family_is_there_and_moves(gate: Deployment, case: Case) -> None:
    executed(gate)  # so that there is something of everything
    kind, before = family_of(gate, case.family)
    assert kind == case.kind
    case.act(gate)
    _, after = family_of(gate, case.family)
    assert total(after, kind) > total(before, kind) or (kind == "gauge" and total(after, kind) > 0)
    assert all(case.labels <= set(one.labels) for one in after)
