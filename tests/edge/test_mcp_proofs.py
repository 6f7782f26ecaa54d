"""Access tokens bound by DPoP at `/mcp`: each request needs a proof of its own, which the gateway judges."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.edge_process import PUBLIC, Edge, edge, edge_config
from tests.support.gateway import Gateway
from tests.support.mcp_over_http import (
    ACCEPT,
    MCP,
    RESOURCE,
    access_token,
    asked,
    asked_with,
    bound_token,
    request_proof,
)
from tests.support.proofs import ABSENT, Key, ath, proof, used_codes

KEY = Key()


@pytest.fixture(scope="module")
def serving(gate: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edge]:
    folder: Path = tmp_path_factory.mktemp("mcp-proofs")
    with edge(edge_config(folder, gate.ready["client_socket"], MCP)) as running:
        yield running


def leases(gate: Gateway) -> int:
    return len(gate.events(event_type="LeaseIssued", decision="allow", limit=200))


def called(serving: Edge, shown: str) -> dict[str, Any]:
    """The structured answer to a call of a tool."""
    asking = {"name": "text_digest", "arguments": {"text": "a b"}}
    document = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asking}
    headers = {**ACCEPT, "Authorization": f"DPoP {shown}", "DPoP": request_proof(KEY, shown)}
    answer = serving.client().post("/mcp", json=document, headers=headers)
    assert answer.status_code == 200, answer.text
    (data,) = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: {")]
    told: dict[str, Any] = json.loads(data)["result"]["structuredContent"]
    return told


def test_a_bound_token_with_a_proof_for_each_request_has_one_lease_whose_calls_are_known_as_bound(
    serving: Edge, gate: Gateway
) -> None:
    before, shown = leases(gate), bound_token(KEY, jti="good")
    assert [called(serving, shown)["decision"] for _ in range(3)] == ["executed"] * 3
    assert leases(gate) == before + 1
    event = gate.events(event_type="ActionCall", decision="allow")[0]
    assert (event["identity_method"], event["token_binding"]) == ("jwt", "dpop")


HOSTILE: dict[str, Callable[[str], str]] = {
    "of another key": lambda shown: request_proof(Key(), shown),
    "for another method": lambda shown: proof(KEY, "GET", RESOURCE, shown),
    "for the leases": lambda shown: proof(KEY, "POST", f"{PUBLIC}/v1/leases", shown),
    "for the endpoint of proofs": lambda shown: proof(KEY, "POST", f"{PUBLIC}/v1/proofs", shown),
    "for another host": lambda shown: proof(KEY, "POST", "https://elsewhere.example/mcp", shown),
    "for a path below": lambda shown: proof(KEY, "POST", f"{RESOURCE}/x", shown),
    "for another token": lambda shown: request_proof(KEY, bound_token(KEY, jti="other")),
    "for no token": lambda shown: request_proof(KEY, shown, ath=ABSENT),
    "for a token by half its hash": lambda shown: request_proof(KEY, shown, ath=ath(shown)[:20]),
    "without an id": lambda shown: request_proof(KEY, shown, jti=ABSENT),
    "of two minutes ago": lambda shown: request_proof(KEY, shown, now=time.time() - 120),
    "of a minute ahead": lambda shown: request_proof(KEY, shown, now=time.time() + 60),
    "of no time": lambda shown: request_proof(KEY, shown, iat=ABSENT),
    "with a changed signature": lambda shown: request_proof(KEY, shown)[:-8] + "AAAAAAAA",
    "without a signature": lambda shown: request_proof(KEY, shown).rpartition(".")[0] + ".",
    "that is a word": lambda shown: "proof",
    "with a space": lambda shown: f"a {request_proof(KEY, shown)}",
    "that is too long": lambda shown: request_proof(KEY, shown, more="x" * 4096),
    "that is the token": lambda shown: shown,
}


def refused_proof(answer: httpx.Response) -> bool:
    challenge = answer.headers.get("www-authenticate", "")
    return (
        answer.status_code == 401
        and challenge.startswith("DPoP ")
        and 'error="invalid_dpop_proof"' in challenge
        and 'algs="ES256"' in challenge
    )


@pytest.mark.parametrize("is_known", [False, True], ids=["of a new caller", "of a known caller"])
@pytest.mark.parametrize("made", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_proof_that_does_not_hold_for_this_request_gives_no_access(
    serving: Edge, gate: Gateway, made: Callable[[str], str], is_known: bool
) -> None:
    shown = bound_token(KEY, jti=f"hostile {is_known}") if is_known else bound_token(KEY, jti=str(time.time_ns()))
    if is_known:
        assert asked_with(serving, shown, request_proof(KEY, shown)).status_code == 200
    before, hostile = leases(gate), made(shown)
    answer = asked_with(serving, shown, hostile)
    assert refused_proof(answer), (answer.status_code, answer.headers, answer.text)
    assert leases(gate) == before
    assert hostile not in answer.text + serving.log.read_text() or hostile == "proof"
    assert asked_with(serving, shown, request_proof(KEY, shown)).status_code == 200


def test_a_proof_counts_once(serving: Edge, gate: Gateway) -> None:
    shown = bound_token(KEY, jti="once")
    first, made = request_proof(KEY, shown), time.time()
    assert asked_with(serving, shown, first).status_code == 200
    second = request_proof(KEY, shown)
    assert asked_with(serving, shown, second).status_code == 200
    for used in (first, second):
        assert refused_proof(asked_with(serving, shown, used))
    told = gate.events(event_type="ActionCall", decision="deny")[0]
    assert told["error_code"] in used_codes(made)
    assert (told["attempts"]["count"], "identity_subject" in told) == (1, False)


def test_a_proof_that_was_used_by_a_call_gives_no_lease_later(serving: Edge, gate: Gateway, tmp_path: Path) -> None:
    shown = bound_token(KEY, jti="elsewhere")
    used = request_proof(KEY, shown)
    assert asked_with(serving, shown, used).status_code == 200
    before = leases(gate)
    with edge(edge_config(tmp_path, gate.ready["client_socket"], MCP)) as other:
        assert refused_proof(asked_with(other, shown, used))
    assert leases(gate) == before


def test_a_caller_whose_session_was_revoked_gets_another_lease_with_the_proof_of_its_next_request(
    serving: Edge, gate: Gateway
) -> None:
    shown = bound_token(KEY, jti="revoked")
    assert called(serving, shown)["decision"] == "executed"
    session = gate.events(event_type="ActionCall", decision="allow")[0]["session_id"]
    assert gate.operator().post(f"/v1/admin/sessions/{session}/revoke").status_code == 200
    before, told = leases(gate), called(serving, shown)
    assert (told["decision"], told["error"], told["is_retryable"]) == ("error", "replay_detected", True)
    assert (told["may_have_run"], leases(gate)) == (False, before)
    assert called(serving, shown)["decision"] == "executed"
    assert leases(gate) == before + 1


def test_neither_no_proof_nor_two_give_access(serving: Edge) -> None:
    shown = bound_token(KEY, jti="two")
    assert refused_proof(asked_with(serving, shown))
    assert refused_proof(asked_with(serving, shown, request_proof(KEY, shown), request_proof(KEY, shown)))


def test_a_bound_token_does_not_count_as_a_bearer_token_also_while_its_caller_is_known(serving: Edge) -> None:
    shown = bound_token(KEY, jti="bearer")
    for _ in range(2):
        for answer in (asked(serving, shown), asked_with(serving, shown, request_proof(KEY, shown), scheme="Bearer")):
            assert (answer.status_code, 'error="invalid_token"' in answer.headers["www-authenticate"]) == (401, True)
            assert answer.headers["www-authenticate"].startswith("DPoP ")
        assert asked_with(serving, shown, request_proof(KEY, shown)).status_code == 200


def test_a_bearer_token_does_not_count_with_a_proof(serving: Edge) -> None:
    shown = access_token(jti="unbound")
    answer = asked_with(serving, shown, request_proof(KEY, shown))
    assert (answer.status_code, 'error="invalid_token"' in answer.headers["www-authenticate"]) == (401, True)
    assert asked(serving, shown).status_code == 200


def test_a_proof_for_mcp_gives_no_lease_for_a_key_of_its_thief(serving: Edge) -> None:
    shown, thief = bound_token(KEY, jti="stolen"), Key()
    made = request_proof(KEY, shown)
    for scheme, header in (("DPoP", "DPoP"), ("DPoP", "Client-DPoP"), ("Bearer", "Client-DPoP")):
        answer = serving.client().post(
            "/v1/leases", json={"scopes": ["tools:call"], "dpop_jwk": thief.jwk},
            headers={"Authorization": f"{scheme} {shown}", header: made},
        )  # fmt: skip
        assert (answer.status_code, answer.json()["error"]) == (403, "identity_forbidden")
    assert serving.client().post("/v1/proofs", headers={"Authorization": f"DPoP {shown}"}).status_code == 404
