"""One contract for both engines: the default policy decides each question alike, embedded and in a real OPA."""

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from frontend.policy.opa import wire
from frontend.policy.question import Decision, parse_decision
from tests.policy.test_default_policy import DATA
from tests.support.opa import Opa, opa
from tests.support.policy import question

Decide = Callable[..., Decision]

PRINCIPALS = ("agent", "heir", "loner", "empty", "busy", "nobody:here", "*")
ACTIONS = ("read", "pay", "export", "unknown")
VARIATIONS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "a mismatch": {"action_trust_verdict": "mismatch"},
    "not registered": {"action_trust_verdict": "not_registered"},
    "critical": {"action_risk_level": "critical"},
    "a risk that nobody knows": {"action_risk_level": "odd"},
    "no scope": {"scopes": ()},
    "more scopes needed": {"required_scopes": ("tools:call", "pay:large")},
    "a sink that it has": {"requested_sinks": ("http_write",)},
    "a sink that it has not": {"requested_sinks": ("http_read", "fs_write")},
    "an unresolved domain": {"unresolved_domains": ("new.example",), "targets": ("GET https://new.example/",)},
    "an unresolved path": {"unresolved_paths": ("a/b",), "fs_path": "a/b"},
    "no budget": {"calls_remaining": None},
    "a spent budget": {"calls_remaining": 0},
    "text of all kinds": {"owner": "é\u2028\"\\ 漢", "fs_path": "\\\"\u202e😀"},
}  # fmt: skip


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opa]:
    with opa(tmp_path_factory.mktemp("opa")) as running:
        yield running


def in_opa(engine: Opa, data: dict[str, Any]) -> Decide:
    """Puts data in force in an OPA; gives what decides over it."""
    documents = wire.documents_of(json.dumps(data))
    pushed = engine.http.patch(
        wire.DATA, content=wire.patch(documents, wire.Mark()),
        headers={"Content-Type": "application/json-patch+json"},
    )  # fmt: skip
    assert pushed.status_code == 204, pushed.text

    def decided(**changes: object) -> Decision:
        answer = engine.http.post(wire.DECISION, json={"input": question(**changes).as_input()})
        result = wire.found_in(wire.OpaAnswer(answer.status_code, answer.content))
        return parse_decision(wire.document_in(result) or "")

    return decided


def table(ask: Decide) -> dict[tuple[str, str, str], Decision]:
    """The decision on each question."""
    return {
        (principal, action, name): ask(principal=principal, action_id=action, **changes)
        for (principal, action), (name, changes) in itertools.product(
            itertools.product(PRINCIPALS, ACTIONS), VARIATIONS.items()
        )
    }


def test_both_decide_every_question_alike(engine: Opa, deciding: Callable[[dict[str, Any]], Decide]) -> None:
    embedded, of_opa = table(deciding(DATA)), table(in_opa(engine, DATA))
    assert {decision.rule for decision in embedded.values()} >= {
        "allow", "allowlist", "trust", "acl", "scope", "sinks", "denied_action", "hold_high_risk",
        "hold_unresolved_domain", "hold_unresolved_path",
    }  # fmt: skip
    assert not {key: (decision, of_opa[key]) for key, decision in embedded.items() if decision != of_opa[key]}


def test_data_that_is_gone_decides_nothing_in_either(engine: Opa) -> None:
    for name in (*DATA, wire.MARK):
        engine.http.delete(f"/v1/data/{name}")
    answer = engine.http.post(wire.DECISION, json={"input": question().as_input()})
    assert isinstance(answer, httpx.Response)
    assert wire.document_in(wire.found_in(wire.OpaAnswer(answer.status_code, answer.content))) is None
