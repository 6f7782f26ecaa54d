"""A policy with remembered decisions decides as the same policy that is asked each time, after any history.

The policies show in their decision what they have read: an answer that was meant for another question shows itself.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frontend.errors import GateError
from frontend.policy.engine import PolicySources
from frontend.policy.question import parse_decision
from tests.policy.test_default_policy import DATA
from tests.policy.test_documentation import REGO
from tests.support.policy import DEFAULT_POLICY, HEADER, SmallSupervisor, question, running_engine
from tests.support.properties import FEW
from workers.rego.evaluator import CompiledPolicy, EvaluationError

SHOWING = (
    'decision := {"allow": false, "requires_approval": false, "deny_reason": sprintf("%v", [shown]), "rule": "shows", '
    '"allowed_sinks": [], "policy_version": "1"}\n\n'
)
TEXT = json.dumps(DATA | {"policy_version": "1", "agents": ["agent"], "names": ["principal", "owner"]})


def showing(body: str) -> dict[str, str]:
    return {"gateway.rego": HEADER + SHOWING + body + "\n"}


REMEMBERED: dict[str, dict[str, str]] = {
    "the default policy": {"gateway.rego": DEFAULT_POLICY.read_text()},
    "the policy of the documentation": {"gateway.rego": REGO[3]},
    "an index": showing('shown := input["principal"]'),
    "an import": {
        "gateway.rego": HEADER + "import input.principal as p\nimport input as i\n\n" + SHOWING
        + "shown := [p, i.action_id]\n",
    },
    "a rule of another module": showing("shown := data.other.who")
    | {"other.rego": "package other\n\nimport rego.v1\n\nwho := [input.principal, data.third.what]\n"}
    | {"third.rego": "package third\n\nimport rego.v1\n\nwhat contains x if some x in input.scopes\n"},
    "data alone": showing('shown := data.acl["agent"]'),
    "a member of a field": showing('shown := object.get(input.budgets_before, "calls_remaining", -1)'),
    "functions and parameters": showing(
        "f(input_, x) := concat(x, [input_, input.action_id])\n\nshown := f(input.principal, input.egress_profile)"
    ),
    "comprehensions": showing("shown := [x | x := input.scopes[_]; not x in input.required_scopes]"),
    "negation and else": showing(
        'shown := 1 if {\n\tnot input.owner == "a"\n} else := 2 if {\n\tinput.fs_path\n} else := 3'
    ),
    "a partial object": showing("o[k] := v if {\n\tsome v, k in input.scopes\n}\n\nshown := [o, input.principal]"),
    "data by the input": showing("shown := [data.acl[input.principal].actions | true]"),
}  # fmt: skip
ASKED_EACH_TIME: dict[str, dict[str, str]] = {
    "a variable index": showing("shown := [v | some k; v := input[k]]"),
    "any index": showing('shown := [1 | input[_] == "agent"]'),
    "a default of a field": showing('shown := object.get(input, "principal", "")'),
    "a field that is named by another": showing("shown := [input[input.egress_profile] | true]"),
    "fields that are named by data": showing("shown := [v | some k in data.names; v := input[k]]"),
    "a function of the whole": showing("f(x) := x.principal\n\nshown := f(input)"),
    "a parameter that is named input": showing(
        'f(input) := input.principal\n\nshown := [x | x := [f({"principal": "other"}), input.owner]]'
    ),
    "a with": showing(
        'who := input.principal\n\nshown := [a, who] if {\n\ta := who with input.principal as "someone"\n}'
    ),
    "a copy": showing("shown := x.principal if {\n\tx := input\n}"),
    "every member": showing("shown := [p | some p in input]"),
    "a walk": showing('shown := [p | walk(input, [p, "agent"])]'),
    "the whole": showing("shown := input"),
    "a rule that is named by the input": showing(
        'r.agent := input.owner\n\nr.heir := input.action_id\n\nshown := [r[input.principal] | true]'
    ),
}  # fmt: skip

TEXTS = st.sampled_from(["agent", "heir", "Agent", "a", "", "é", "e\u0301", '"', "\\", "principal", "read", "pay"])
LISTS = st.lists(st.sampled_from(["a", "b", "tools:call", "http_read", "a,b"]), max_size=2).map(tuple)
QUESTIONS = st.fixed_dictionaries(
    {"principal": TEXTS},
    optional={
        "owner": st.none() | TEXTS,
        "action_id": TEXTS,
        "action_version": TEXTS,
        "action_risk_level": st.sampled_from(["low", "high"]),
        "action_trust_verdict": st.sampled_from(["digest_ok", "mismatch"]),
        "egress_profile": st.sampled_from(["principal", "owner", "none"]),
        "fs_path": st.none() | TEXTS,
        "calls_remaining": st.sampled_from([None, 0, 1, 2]),
        "request_hash": TEXTS,
        "request": st.sampled_from(["{}", '{"/a":1}', '{"/a":true}', '{"/a":"1"}', '{"/a":[1]}']),
        **dict.fromkeys(("scopes", "required_scopes", "requested_sinks", "targets", "unresolved_domains"), LISTS),
    },
)


class Both:
    """One engine with one policy process, which takes a policy after the other; beside it the same policy without."""

    def __init__(self, supervisor: SmallSupervisor, portal: BlockingPortal) -> None:
        self.supervisor, self.engine, self._portal = supervisor, supervisor.engine, portal

    def load(self, name: str) -> None:
        modules = (REMEMBERED | ASKED_EACH_TIME)[name]
        self._plain = CompiledPolicy(modules, TEXT)
        self._portal.call(self.engine.load, PolicySources(modules, TEXT, "1"))

    def agree(self, **changes: Any) -> None:
        """On one question."""
        one = question(**changes)
        try:
            wanted = parse_decision(self._plain.evaluate(json.loads(json.dumps(one.as_input()))))
        except EvaluationError:
            with pytest.raises(GateError):
                self._portal.call(self.engine.decide, one)
        else:
            assert self._portal.call(self.engine.decide, one) == wanted, changes


@pytest.fixture(scope="module")
def both() -> Iterator[Both]:
    with start_blocking_portal("trio") as portal, portal.wrap_async_context_manager(running_engine(None)) as supervisor:
        yield Both(supervisor, portal)
        assert supervisor.asked_for == [], "one process lives through all of it"


@pytest.mark.parametrize("name", [*REMEMBERED, "the whole"])
def test_with_and_without_memory_the_same_is_decided(both: Both, name: str) -> None:
    @settings(FEW, suppress_health_check=list(HealthCheck))
    @given(asked=st.lists(QUESTIONS, min_size=5, max_size=10))
    def agree(asked: list[dict[str, Any]]) -> None:
        for changes in [*asked, *asked[:3]]:
            both.agree(**changes)

    both.load(name)
    agree()
    assert (both.engine.memo_status.entries > 0) is (name in REMEMBERED), both.engine.memo_status


@pytest.mark.parametrize("name", ASKED_EACH_TIME)
def test_a_policy_that_may_read_any_field_is_asked_each_time(both: Both, name: str) -> None:
    both.load(name)
    assert not both.engine.memo_status.in_use
    for principal in ("agent", "heir", "agent"):
        both.agree(principal=principal, owner="a")
    assert both.engine.memo_status.entries == 0
