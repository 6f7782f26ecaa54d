"""Errors: their format."""

import unicodedata

from tests.conformance.deployment import Caller, Deployment
from tests.conformance.marks import row
from tests.conformance.outages import Outage, said_of


@row("error-format/deny_reason", "limits/deny_reason")
def test_a_denial_has_a_reason_that_is_cleaned_and_cut(agent: Caller) -> None:
    answer = agent.execute("oddly_denied", {"text": "x"})
    assert (answer.status_code, answer.json()["error"]) == (403, "policy_denied")
    reason = answer.json()["deny_reason"]
    assert reason.startswith("not ")
    assert len(reason) == 500
    assert not [one for one in reason if unicodedata.category(one) in ("Cc", "Cf")]


@row("error-format/5xx-code-only")
def test_a_5xx_has_the_code_alone_and_the_log_has_the_rest(gate: Deployment, agent: Caller, outage: Outage) -> None:
    failed = agent.execute("little_fuel", {"text": "x"})
    assert failed.json() == {"error": "action_execution_failed"}
    assert outage.frozen.json() == {"error": "policy_engine_timeout"}
    for answer, said in ((failed, said_of(gate, failed)), (outage.frozen, outage.said)):
        assert answer.status_code >= 500
        assert {one["code"] for one in said if "code" in one} == {answer.json()["error"]}
        assert any(one.get("cause") for one in said)
