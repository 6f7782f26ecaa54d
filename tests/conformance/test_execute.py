"""Execute: headers, proof and body."""

from typing import Any

import pytest

from tests.conformance.deployment import Caller, Deployment
from tests.conformance.marks import row

PATH = "/v1/actions/text_digest/execute"


def error_of(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]


@row("execute/headers")
def test_it_takes_the_scheme_dpop_one_proof_and_json(gate: Deployment, agent: Caller) -> None:
    good = agent.headers("POST", PATH)
    assert gate.client.post(PATH, headers=good, json={"text": "x"}).status_code == 200
    bearer = agent.headers("POST", PATH)
    bearer["Authorization"] = f"Bearer {agent.token}"
    assert error_of(gate.client.post(PATH, headers=bearer, json={"text": "x"}))[0] == 401
    other = agent.headers("POST", PATH) | {"Content-Type": "text/plain"}
    assert gate.client.post(PATH, headers=other, content=b'{"text":"x"}').status_code == 415


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", PATH), ("PUT", PATH), ("POST", "/v1/actions/file_write/execute"), ("POST", "/v1/actions/text_digest"),
        ("POST", "/v1/leases"), ("POST", f"{PATH}/"),
    ],
)  # fmt: skip
@row("execute/proof-bound", "dpop-rules/3-wrong-htu")
def test_a_proof_for_something_else_is_refused(gate: Deployment, agent: Caller, method: str, path: str) -> None:
    answer = gate.client.post(PATH, headers=agent.headers(method, path), json={"text": "x"})
    assert error_of(answer) == (401, "invalid_dpop")


@pytest.mark.parametrize(
    "body", [{}, {"text": 1}, {"text": "x", "more": 1}, [], "text", None, {"text": ["x"]}], ids=str
)
@row("execute/validated", "execute-errors/422-schema_violation")
def test_a_body_that_breaks_the_schema_is_422(agent: Caller, body: Any) -> None:
    answer = agent.call("POST", PATH, body) if body is not None else agent.call("POST", PATH)
    assert error_of(answer) == (422, "schema_violation")
