"""Learned domains and paths of a running gateway, with the default policy: from a hold to a call that just runs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.gateway import Bearer, Gateway, gateway, wait_for
from tests.support.manifests import PATIENT, example, open_policy, patient, write_manifests
from tests.support.upstream import Upstream

HOSTS = ("one.gateway.test", "two.gateway.test", "sub.three.gateway.test")
ACTIONS: dict[str, dict[str, Any]] = {
    "any_host": example(
        "http_fetch", action_id="any_host", template={"url_template": "http://{host}/{+path}"},
        io={"request_schema": {"required": ["host", "path"], "properties": {"host": {"type": "string"}}}},
        **PATIENT,
    ),
    "few_files": example("file_write", action_id="few_files", fs={"allowed_paths": ["ok/*"]}, **PATIENT),
}  # fmt: skip


def config(folder: Path, up: Upstream) -> str:
    top = patient(folder / "actions")
    write_manifests(folder / "actions", *ACTIONS.values())
    policy = open_policy(folder / "policy", *ACTIONS)
    resolve = "".join(f'"{host}" = "{up.address}"\n' for host in (*HOSTS, "upstream.gateway.test"))
    return f'{top}policy_dir = "{policy}"\n[egress.unsafe_resolve]\n{resolve}'


@pytest.fixture(scope="module")
def gate(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with an action that asks for its host and one with few paths."""
    folder: Path = tmp_path_factory.mktemp("gate")
    with gateway(folder, f"front_processes = 2\n{config(folder, up)}") as running:
        yield running


def change(operator: Bearer, method: str, path: str, body: Any = None) -> httpx.Response:
    headers = operator.headers(method, path)
    return operator.http.request(method, path, headers=headers, **({} if body is None else {"json": body}))


def held(answer: httpx.Response) -> str:
    assert answer.status_code == 202, answer.text
    return str(answer.json()["approval_id"])


def test_a_domain_is_held_run_once_learned_used_and_taken_back(
    gate: Gateway, agent: Bearer, operator: Bearer, up: Upstream
) -> None:
    def call() -> httpx.Response:
        return agent.execute("any_host", {"host": HOSTS[0], "path": "a"})

    approval_id = held(call())
    detail = operator.get(f"/v1/approvals/{approval_id}").json()
    assert (detail["unresolved_domains"], detail["policy_rule"]) == ([HOSTS[0]], "hold_unresolved_domain")
    before = len(up.seen)
    answer = operator.post(f"/v1/approvals/{approval_id}/approve")
    assert answer.status_code == 200, answer.text
    assert "learned_domain" not in answer.json()
    assert (len(up.seen), up.seen[-1].headers["host"]) == (before + 1, HOSTS[0])

    approval_id = held(call())  # that was for one call
    refused = operator.post(f"/v1/approvals/{approval_id}/approve?learn_domain=localhost")
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_domain")
    assert agent.get(f"/v1/approvals/{approval_id}/poll").json()["state"] == "pending"
    answer = operator.post(f"/v1/approvals/{approval_id}/approve?learn_domain={HOSTS[0]}")
    assert (answer.status_code, answer.json()["learned_domain"]) == (200, HOSTS[0])

    assert call().status_code == 200
    (item,) = operator.get("/v1/admin/domains?action=any_host").json()["domains"]
    assert (item["domain"], item["source"], item["added_by"]) == (HOSTS[0], "approval", "dev")
    gone = change(operator, "DELETE", "/v1/admin/domains", {"action_id": "any_host", "domain": HOSTS[0]})
    assert gone.json() == {"removed": True}
    held(call())
    assert len(up.seen) == before + 3


def test_a_wildcard_covers_what_lies_below_it(gate: Gateway, agent: Bearer, operator: Bearer) -> None:
    rule = {"action_id": "any_host", "domain": "*.Three.gateway.test"}
    assert change(operator, "POST", "/v1/admin/domains", rule).json()["domain"] == "*.three.gateway.test"
    assert agent.execute("any_host", {"host": HOSTS[2], "path": "a"}).status_code == 200
    held(agent.execute("any_host", {"host": "three.gateway.test", "path": "a"}))
    assert change(operator, "DELETE", "/v1/admin/domains/clear").json()["cleared"] is True
    held(agent.execute("any_host", {"host": HOSTS[2], "path": "a"}))


def test_nothing_is_learned_from_a_call_whose_effect_was_not_confirmed(agent: Bearer, operator: Bearer) -> None:
    for path, status, told in (("status/404", 200, "verification_failed"), ("status/503", 502, None)):
        approval_id = held(agent.execute("any_host", {"host": HOSTS[1], "path": path}))
        answer = operator.post(f"/v1/approvals/{approval_id}/approve?learn_domain={HOSTS[1]}")
        assert (answer.status_code, answer.json().get("learn_error")) == (status, told)
        assert "learned_domain" not in answer.json()
    assert operator.get("/v1/admin/domains").json() == {"domains": []}


def test_a_path_is_held_learned_used_and_taken_back(gate: Gateway, agent: Bearer, operator: Bearer) -> None:
    def call(name: str) -> httpx.Response:
        return agent.execute("few_files", {"path": f"new/{name}", "content": name})

    approval_id = held(call("a"))
    detail = operator.get(f"/v1/approvals/{approval_id}").json()
    assert detail["approved_files"]["allowed_paths"] == ["new/a"]
    answer = operator.post(f"/v1/approvals/{approval_id}/approve?learn_path=new/*")
    assert (answer.status_code, answer.json()["learned_path"]) == (200, "new/*")
    assert call("b").json()["verification_outcome"] == "verified"
    assert (gate.state / "files" / "new" / "b").read_text() == "b"
    hidden = change(operator, "POST", "/v1/admin/paths", {"action_id": "few_files", "path_glob": "new/.*"})
    assert hidden.json() == {"path": "new/.*", "path_glob": "new/.*", "action_id": "few_files"}
    assert call(".hidden").json()["error"] == "policy_denied"
    assert change(operator, "DELETE", "/v1/admin/paths/clear?action=few_files").json()["count"] == 2
    held(call("c"))
    assert not (gate.state / "files" / "new" / "c").exists()


def test_a_front_that_is_killed_forgets_nothing_that_was_learned(gate: Gateway, operator: Bearer) -> None:
    rule = {"action_id": "any_host", "domain": HOSTS[1]}
    assert change(operator, "POST", "/v1/admin/domains", rule).status_code == 200
    gate.child("front").kill()

    def listed() -> Any:
        try:
            return gate.operator().get("/v1/admin/domains").json()["domains"]
        except httpx.TransportError:
            return None

    assert [item["domain"] for item in wait_for(listed, "the successor's list")] == [HOSTS[1]]
