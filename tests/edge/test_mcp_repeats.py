"""Calls at `/mcp` whose answer was lost with their edge: under their key they run once, and have their outcome."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.edge_process import Edge, edge, edge_config
from tests.support.gateway import Gateway, wait_for
from tests.support.mcp_over_http import MCP, access_token, tool_called
from tests.support.upstream import Upstream

HEADER, META = "Idempotency-Key", "action-gateway/idempotency_key"
HELD = {"to": "acct-7", "amount_cents": 26_200, "currency": "EUR"}


@pytest.fixture(scope="module")
def other(gate: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edge]:
    """An edge that has seen no caller of the one that was killed, as one that was started anew."""
    with edge(edge_config(tmp_path_factory.mktemp("other"), gate.ready["client_socket"], MCP)) as running:
        yield running


@pytest.fixture
def killed(gate: Gateway, tmp_path: Path) -> Iterator[Edge]:
    """An edge that a test kills."""
    with edge(edge_config(tmp_path, gate.ready["client_socket"], MCP)) as running:
        yield running


def posted(up: Upstream, path: str) -> int:
    return sum(one.path == f"/{path}" for one in up.seen)


def test_a_call_whose_edge_was_killed_runs_once_under_its_key_and_is_not_said_to_be_unmade(
    killed: Edge, other: Edge, up: Upstream
) -> None:
    shown, wanted, lost = access_token(jti="killed"), {"path": "wait/killed", "message": "a"}, []
    key = {META: 'call 1 of the run "7"'}

    def call() -> None:
        try:
            tool_called(killed, shown, "http_post", wanted, meta=key)
        except httpx.TransportError as error:
            lost.append(error)

    calling = threading.Thread(target=call)
    calling.start()
    wait_for(lambda: posted(up, "wait/killed"), "the effect")
    killed.process.kill()
    calling.join()
    told = tool_called(other, shown, "gateway_recent_calls", {})
    assert told["calls"] == []
    assert told["listed_since"] in told["next"]
    up.held("killed").set()
    again = tool_called(other, shown, "http_post", wanted, meta=key)
    assert (len(lost), posted(up, "wait/killed")) == (1, 1)
    assert (again["decision"], again["output"]["status"]) == ("executed", 200)


NAMED: dict[str, dict[str, Any]] = {
    "in _meta": {"meta": {META: "key 1"}},
    "in the header": {"headers": {HEADER: r'"a \"key\""'}},
    "in both, where _meta counts": {"meta": {META: "key 3"}, "headers": {HEADER: "another"}},
}


@pytest.mark.parametrize(("path", "named"), [*enumerate(NAMED.values())], ids=NAMED.keys())
def test_a_call_under_one_key_runs_once(other: Edge, up: Upstream, path: int, named: dict[str, Any]) -> None:
    wanted = {"path": f"keyed/{path}", "message": "a"}
    first, again = (tool_called(other, access_token(), "http_post", wanted, **named) for _ in range(2))
    assert (again["receipt_id"], posted(up, f"keyed/{path}")) == (first["receipt_id"], 1)
    changed = tool_called(other, access_token(), "http_post", wanted | {"message": "b"}, **named)
    assert (changed["error"], changed["may_have_run"]) == ("idempotency_key_reused", False)


REFUSED: dict[str, dict[str, Any]] = {
    "a number": {"meta": {META: 7}},
    "empty": {"meta": {META: ""}},
    "too long": {"meta": {META: "k" * 256}},
    "another alphabet": {"meta": {META: "schlüssel"}},
    "two tokens in the header": {"headers": {HEADER: "a, b"}},
}


@pytest.mark.parametrize("named", REFUSED.values(), ids=REFUSED.keys())
def test_a_call_under_what_is_no_key_is_not_made(other: Edge, up: Upstream, named: dict[str, Any]) -> None:
    told = tool_called(other, access_token(), "http_post", {"path": "no/key", "message": "a"}, **named)
    assert (told["error"], told["may_have_run"]) == ("invalid_idempotency_key", False)
    assert posted(up, "no/key") == 0


def test_a_held_call_of_a_killed_edge_is_not_said_to_be_denied_and_its_key_tells_the_outcome(
    killed: Edge, other: Edge, gate: Gateway
) -> None:
    shown, key, operator = access_token(jti="held"), {META: "held"}, gate.operator()
    calling = threading.Thread(target=_lost, args=(killed, shown, key))
    calling.start()
    (held,) = wait_for(lambda: operator.get("/v1/approvals?status=pending").json()["approvals"], "the hold")
    killed.process.kill()
    calling.join()
    told = tool_called(other, shown, "payment_transfer", HELD, meta=key)
    assert (told["decision"], told["approval_id"]) == ("pending_approval", held["approval_id"])
    assert "same idempotency key" in told["next"]
    assert operator.post(f"/v1/approvals/{held['approval_id']}/approve").status_code == 200
    assert tool_called(other, shown, "payment_transfer", HELD, meta=key)["decision"] == "executed"


def _lost(serving: Edge, shown: str, key: dict[str, str]) -> None:
    with pytest.raises(httpx.TransportError):
        tool_called(serving, shown, "payment_transfer", HELD, meta=key)
