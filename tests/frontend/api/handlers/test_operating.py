"""Operators' acts while something fails: drain, verification of the chain, evidence that can't be read."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from frontend.notary.errors import NotaryUnavailable
from ipc.settings import IdentitySettings, PrincipalMapping
from notary.operations.table import PACED
from tests.support.front_core import Core, front_core, refuses
from tests.support.logs import capture_logs

pytestmark = pytest.mark.front(workers=0)

FULL = NotaryUnavailable("the disk is full")


async def test_a_gateway_whose_ledger_fails_can_still_be_drained(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        agent = await core.agent()
        core.client.faults["WriteEvent"] = refuses(FULL)
        assert await core.operate("POST", "/v1/admin/drain") == (500, {"error": "evidence_persistence_failed"})
        core.client.faults.clear()
        assert await agent.call() == (503, {"error": "draining"})
        status, body = await core.operate("POST", "/v1/admin/drain")
        assert (status, body["already_draining"]) == (200, True)
        (event,) = await core.events(event_type="AdminDrain")
        assert event["principal"] == "operator:op"


async def test_an_unreadable_ledger_is_503_for_every_caller(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        agent = await core.agent()
        for operation in ("QueryEvents", "ShowReceipt", "ListUnresolved"):
            core.client.faults[operation] = refuses(FULL)
        for path in ("/v1/audit/events", "/v1/receipts/rcpt_1", "/v1/admin/intents"):
            assert await core.operate("GET", path) == (503, {"error": "ledger_unavailable"})
        assert (await agent.send("GET", "/v1/receipts/rcpt_1")).status == 503


async def test_receipt_keys_are_not_shown_without_evidence_of_the_look(core: Core) -> None:
    core.client.faults["WriteEvent"] = refuses(FULL)
    assert await core.operate("GET", "/v1/receipt-keys") == (503, {"error": "evidence_store_unavailable"})
    core.client.faults.clear()
    assert (await core.operate("GET", "/v1/receipt-keys"))[0] == 200
    assert len(await core.events(event_type="ReceiptKeysRead")) == 1


async def test_no_lease_leaves_the_house_without_evidence(core: Core) -> None:
    core.client.faults["Issue"] = core.client.faults["WriteEvent"] = refuses(FULL)
    body = {"scopes": ["tools:call"], "dpop_jwk": core.operator_key.jwk}
    answer = await core.ask("POST", "/v1/leases", body)
    assert (answer.status, answer.body) == (503, b'{"error":"evidence_store_unavailable"}')
    core.services.admission.drain()
    answer = await core.ask("POST", "/v1/leases", body)
    assert (answer.status, answer.body) == (503, b'{"error":"draining"}')
    assert dict(answer.headers)["Retry-After"]


@pytest.mark.parametrize(
    ("uid", "scopes", "code"),
    [(1004, ["tools:call"], None), (1005, ["tools:call"], "identity_forbidden"),
     (1004, ["mail:send"], "scope_not_permitted"),
     (None, ["tools:call"], "identity_provider_unavailable")],
)  # fmt: skip
async def test_a_refused_lease_leaves_evidence(
    tmp_path: Path, uid: int | None, scopes: list[str], code: str | None
) -> None:
    mapped = IdentitySettings(principals={"1004": PrincipalMapping("billing-agent")})
    async with front_core(tmp_path, workers=0, identity=mapped) as core:
        body = {"scopes": scopes, "dpop_jwk": core.operator_key.jwk}
        with capture_logs() as lines:
            answer = await core.ask("POST", "/v1/leases", body, uid=uid)
        assert msgspec.json.decode(answer.body).get("error") == code
        (event,) = await core.events(event_type="LeaseIssued")
        decision = "allow" if code is None else "deny" if uid else "error"
        assert (event["decision"], event.get("error_code")) == (decision, code)
        principal = {None: None, 1005: "uid:1005"}.get(uid, "billing-agent")
        assert event.get("principal") == principal, "the name that is refused, or the user who has none"
        assert event.get("identity_method") == ("peercred" if uid == 1004 else None)
        told = [one["principal"] for one in lines if one["event"] == "a lease was refused"]
        assert told == ["billing-agent"] * (code == "scope_not_permitted")


async def test_the_time_of_a_read_is_charged_to_the_operator_who_asks(core: Core) -> None:
    asked, ask = list[Any](), core.client.ask

    async def noted(operation: Any, *, seconds: float | None = None) -> Any:
        asked.append(operation)
        return await ask(operation, seconds=seconds)

    core.client.ask = noted  # type: ignore[method-assign]
    for path in (
        "/v1/audit/events", "/v1/audit/summary", "/v1/audit/proof?event_id=evt_1", "/v1/audit/consistency?from=0",
        "/v1/receipts/rcpt_1", "/v1/admin/intents", "/v1/admin/intents/intent_1", "/v1/admin/sessions",
    ):  # fmt: skip
        assert (await core.operate("GET", path))[0] in (200, 404), path
    paced = [one for one in asked if type(one) in PACED]
    assert len({type(one) for one in paced}) == 8
    assert {one.asker for one in paced} == {"operator op"}


@pytest.mark.parametrize("reason", ["", " ", "\u200b", "\x07\n"], ids=ascii)
async def test_nothing_is_erased_for_a_reason_that_evidence_does_not_show(core: Core, reason: str) -> None:
    status, body = await core.operate(
        "POST", "/v1/admin/evidence/erase", {"principal": "uid:1000", "reason": reason}
    )  # fmt: skip
    assert (status, body["error"], body["message"].split(":")[0]) == (400, "invalid_request", "reason")
    assert await core.events(event_type="EvidenceErased") == []
