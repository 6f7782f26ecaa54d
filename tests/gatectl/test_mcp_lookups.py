"""Tools of `gatectl mcp` that look: an agent lists what became of its calls, and reads receipts that verify."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.gatectl import Gatectl
from tests.support.gateway import Gateway
from tests.support.mcp_host import Host, hosted


@pytest.fixture(params=["auto", "legacy"])
def host(request: pytest.FixtureRequest, gatectl: Gatectl) -> Iterator[Host]:
    with hosted(gatectl, "--wait", "0", mode=request.param) as host:
        yield host


def test_an_agent_lists_what_became_of_its_calls_and_of_nobody_elses(host: Host, gatectl: Gatectl) -> None:
    done = host.told("text_digest", {"text": "a"})
    failed = host.told("http_fetch", {"path": "/status/503"})
    host.told("forbidden_export", {"table": "customers"})
    held = host.told("payment_transfer", {"to": "acct-3", "amount_cents": 77, "currency": "EUR"})
    told = host.told("gateway_recent_calls")
    assert [(one["action_id"], one["state"]) for one in told["calls"]] == [
        ("payment_transfer", "held"), ("forbidden_export", "denied"), ("http_fetch", "failed"),
        ("text_digest", "executed"),
    ]  # fmt: skip
    assert (told["decision"], told["calls"][0]["approval_id"]) == ("answered", held["approval_id"])
    assert [one["receipt_id"] for one in told["calls"][2:]] == [failed["receipt_id"], done["receipt_id"]]
    first = host.told("gateway_recent_calls", {"limit": 3})
    rest = host.told("gateway_recent_calls", {"limit": 3, "after": first["next_after"]})
    assert [one["trace_id"] for one in first["calls"] + rest["calls"]] == [one["trace_id"] for one in told["calls"]]
    with hosted(gatectl) as other:
        assert other.told("gateway_recent_calls")["calls"] == []


def test_a_receipt_is_read_whole_with_the_verdict_on_its_signature(host: Host, gate: Gateway) -> None:
    receipt_id = host.told("text_digest", {"text": "a"})["receipt_id"]
    told = host.told("gateway_receipt", {"receipt_id": receipt_id})
    assert (told["signature_status"], told["verified_by"]) == ("verified", "gateway")
    assert told["is_fully_successful"] is True
    assert told["receipt"] == gate.operator().get(f"/v1/receipts/{receipt_id}").json()


def test_receipts_are_verified_by_the_server_itself_with_keys_that_the_host_keeps(
    gatectl: Gatectl, tmp_path: Path
) -> None:
    good, other = tmp_path / "good.json", tmp_path / "other.json"
    keys = gatectl.process("receipts", "keys").json
    good.write_text(json.dumps(keys))
    other.write_text(json.dumps({"keys": []}))
    with hosted(gatectl, "--receipt-keys", str(good)) as host:
        receipt_id = host.told("text_digest", {"text": "a"})["receipt_id"]
        told = host.told("gateway_receipt", {"receipt_id": receipt_id})
        assert (told["signature_status"], told["verified_by"]) == ("verified", "this server")
    with hosted(gatectl, "--receipt-keys", str(other)) as host:
        told = host.told("gateway_receipt", {"receipt_id": receipt_id})
        assert (told["error"], told["reason"]) == ("receipt_not_verified", "its signature is unknown_kid")
        assert "receipt" not in told
    other.write_text("[]")
    assert "not a JWKS" in gatectl.process("mcp", "--receipt-keys", str(other)).err


def test_lookups_refuse_arguments_of_another_kind_and_unknown_receipts(host: Host) -> None:
    for name, arguments in (
        ("gateway_recent_calls", {"limit": 0}), ("gateway_recent_calls", {"limit": True}),
        ("gateway_recent_calls", {"after": 5}), ("gateway_receipt", {}), ("gateway_receipt", {"receipt_id": ".."}),
        ("gateway_receipt", {"receipt_id": "r" * 200}),
    ):  # fmt: skip
        assert host.told(name, arguments)["error"] == "invalid_arguments", (name, arguments)
    told = host.told("gateway_receipt", {"receipt_id": "rcpt_unknown"})
    assert (told["error"], told["status"]) == ("receipt_not_found", 404)
    assert host.told("gateway_recent_calls", {"after": "no trace"})["status"] == 400
