"""MCP over HTTP at the edge: clients of the official package, a real edge with TLS, a real gateway."""

from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client

from tests.support.certificates import made_certificate
from tests.support.edge_process import PUBLIC, Edge, edge, edge_config, edge_tells
from tests.support.gateway import Gateway, wait_for
from tests.support.issued_tokens import token
from tests.support.mcp_over_http import (
    ACCEPT,
    HANDSHAKE,
    MCP,
    MODERN,
    PING,
    RESOURCE,
    access_token,
    asked,
    mcp_client,
    tool_called,
)

TLS = '[tls]\ncertificate_file = "certificate.pem"\nkey_file = "key.pem"\n'
METADATA = f"{PUBLIC}/.well-known/oauth-protected-resource/mcp"


@pytest.fixture(scope="module")
def serving(gate: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edge]:
    folder: Path = tmp_path_factory.mktemp("mcp-edge")
    roots = made_certificate(folder, "127.0.0.1")
    with edge(edge_config(folder, gate.ready["client_socket"], TLS + MCP), roots) as running:
        yield running


def with_client(
    serving: Edge, shown: str, act: Callable[[Client], Coroutine[Any, Any, Any]], mode: str = "auto"
) -> Any:
    """The result of one function, given a client."""

    async def run() -> Any:
        async with mcp_client(serving, shown, mode) as client:
            return await act(client)

    return anyio.run(run)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_a_client_lists_tools_calls_one_and_reads_its_receipt(serving: Edge, gate: Gateway, mode: str) -> None:
    async def act(client: Client) -> tuple[list[str], dict[str, Any], dict[str, Any]]:
        listed = [one.name for one in (await client.list_tools()).tools]
        called = await client.call_tool("text_digest", {"text": "a b"})
        told = called.structured_content or {}
        receipt = await client.call_tool("gateway_receipt", {"receipt_id": told["receipt_id"]})
        return listed, told, receipt.structured_content or {}

    listed, told, receipt = with_client(serving, access_token(), act, mode)
    assert {"text_digest", "gateway_receipt"} <= set(listed)
    assert (told["decision"], told["output"]["words"]) == ("executed", 2)
    assert receipt["signature_status"] == "verified"
    event = gate.events(event_type="ActionCall")[0]
    assert (event["trace_id"], event["identity_method"], event["token_binding"]) == (told["trace_id"], "jwt", "bearer")


def test_a_call_asks_the_gateway_for_no_list_of_actions_once_its_tool_is_known(serving: Edge, gate: Gateway) -> None:
    def manifests() -> float:
        lines = gate.operator().get("/metrics").text.splitlines()
        asked = [line for line in lines if "gate_http_answers_total{" in line and 'route="/v1/actions' in line]
        return sum(float(line.rpartition(" ")[2]) for line in asked if "execute" not in line)

    shown = access_token(jti="known")
    for revision in (HANDSHAKE, MODERN):
        assert tool_called(serving, shown, "text_digest", {"text": "a"}, revision)["decision"] == "executed"
        before = manifests()
        assert tool_called(serving, shown, "text_digest", {"text": "a"}, revision)["decision"] == "executed"
        assert manifests() == before


def test_a_held_call_is_answered_once_approved_and_no_other_caller_learns_of_it(serving: Edge, gate: Gateway) -> None:
    operator, seen = gate.operator(), []

    def pending() -> list[dict[str, Any]]:
        return list(operator.get("/v1/approvals?status=pending").json()["approvals"])

    def approve() -> None:
        (held,) = wait_for(pending, "the hold of a call over MCP")
        status = {"approval_id": held["approval_id"]}
        other = access_token(jti="b")
        seen.append(with_client(serving, other, lambda one: one.call_tool("gateway_approval_status", status)))
        assert operator.post(f"/v1/approvals/{held['approval_id']}/approve").status_code == 200

    async def call(client: Client) -> dict[str, Any]:
        told: list[dict[str, Any]] = []

        async def transfer() -> None:
            wanted = {"to": "acct-7", "amount_cents": 26_100, "currency": "EUR"}
            told.append((await client.call_tool("payment_transfer", wanted)).structured_content or {})

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(transfer)
            await anyio.to_thread.run_sync(approve)
        return told[0]

    assert with_client(serving, access_token(jti="a"), call)["decision"] == "executed"
    assert seen[0].is_error
    assert seen[0].structured_content["error"] == "approval_not_found"


def test_the_metadata_names_resource_issuers_and_scope(serving: Edge) -> None:
    for path in ("", "/mcp"):
        answer = serving.client().get(f"/.well-known/oauth-protected-resource{path}")
        assert answer.status_code == 200
        assert answer.json() == {
            "resource": RESOURCE, "authorization_servers": ["https://login.example"],
            "scopes_supported": ["tools:call"], "bearer_methods_supported": ["header"],
            "dpop_signing_alg_values_supported": ["ES256"],
        }  # fmt: skip


def test_a_request_without_a_token_is_told_where_tokens_come_from(serving: Edge) -> None:
    answer = asked(serving, None)
    told = f'resource_metadata="{METADATA}", scope="tools:call"'
    challenges = [f"Bearer {told}", f'DPoP {told}, algs="ES256"']
    assert (answer.status_code, answer.headers.get_list("www-authenticate")) == (401, challenges)


REFUSED = {
    "for the leases' audience": token(scope="tools:call"),
    "for another resource": access_token(aud="https://elsewhere.example/mcp"),
    "for no resource": access_token(aud=[]),
    "of another issuer": access_token(iss="https://other.example"),
    "of a subject without a mapping": access_token(sub="stranger"),
    "ended": access_token(exp=1),
    "bound to a key": access_token(cnf={"jkt": "k"}),
    "with a changed signature": access_token()[:-6] + "AAAAAA",
    "with a space, which no token has": f"a {access_token()}",
    "not a token": "no-token",
    "with a payload that is not JSON": "e30.e.e30",
}


@pytest.mark.parametrize("shown", REFUSED.values(), ids=REFUSED.keys())
def test_a_token_that_does_not_count_gives_no_access(serving: Edge, shown: str) -> None:
    answer = asked(serving, shown)
    assert answer.status_code == 401, answer.text
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]
    assert shown not in answer.text + str(answer.headers) + serving.log.read_text()


@pytest.mark.parametrize("scopes", [{"scope": "openid"}, {"scope": "", "scp": ["a"]}, {"scope": "tools:caller"}])
def test_a_token_without_the_scope_is_told_which_one_it_needs(serving: Edge, scopes: dict[str, Any]) -> None:
    answer = asked(serving, access_token(**scopes))
    challenge = answer.headers["www-authenticate"]
    assert (answer.status_code, 'error="insufficient_scope"' in challenge) == (403, True)
    assert 'scope="tools:call"' in challenge


def test_a_token_in_any_other_place_or_twice_does_not_count(serving: Edge) -> None:
    client, shown = serving.client(), access_token()
    headers = {**ACCEPT, "Content-Type": "application/json"}
    twice = client.post("/mcp", json=PING, headers=[*headers.items(), *[("Authorization", f"Bearer {shown}")] * 2])
    other = client.post("/mcp", json=PING, headers={**headers, "Authorization": f"DPoP {shown}"})
    query = client.post("/mcp", json=PING, headers=headers, params={"access_token": shown})
    assert [one.status_code for one in (twice, other, query)] == [401, 401, 401]


def test_pages_of_another_origin_and_other_methods_are_refused(serving: Edge) -> None:
    assert asked(serving, access_token(), Origin="https://evil.example").status_code == 403
    assert asked(serving, access_token(), Origin=PUBLIC).status_code == 200
    for method in ("GET", "DELETE", "PUT"):
        answer = serving.client().request(method, "/mcp", headers={"Authorization": f"Bearer {access_token()}"})
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("given", ["of-another", "s" * 8000], ids=["of another", "large"])
def test_there_are_no_sessions_and_the_id_of_one_counts_for_nothing(serving: Edge, given: str) -> None:
    answer = asked(serving, access_token(), **{"Mcp-Session-Id": given, "Last-Event-ID": given})
    assert (answer.status_code, "mcp-session-id" in answer.headers) == (200, False)


def test_an_edge_without_the_section_has_no_such_endpoint(before: Edge) -> None:
    assert asked(before, access_token()).status_code == 404
    assert before.client().get("/.well-known/oauth-protected-resource").status_code == 404


def test_authorization_servers_are_checked_before_anything_starts(tmp_path: Path) -> None:
    for given in ("[]", '["login.example"]', '["https://a b"]'):
        config = edge_config(tmp_path, tmp_path / "none.sock", f"[mcp]\nauthorization_servers = {given}\n")
        code, told = edge_tells(config, "--check")
        assert (code, "authorization_servers" in told) == (78, True), told
