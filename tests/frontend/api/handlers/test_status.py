"""The admin status, field by field, and what draining changes of it."""

from pathlib import Path

from frontend.notary.errors import NotaryUnavailable
from tests.support.front_core import API_KEY, front_core, refuses, signed
from tests.support.held_calls import held
from tests.support.policed import policed
from tests.support.proofs import Key

STATUS = ("GET", "/v1/admin/status")


async def test_the_status_tells_every_fact_and_leaves_no_event(tmp_path: Path) -> None:
    async with policed(tmp_path) as core:
        core.services.policy = core.policy  # type: ignore[assignment]
        await held(core)
        before = await core.events()
        status, body = await core.operate(*STATUS)
        assert status == 200
        assert isinstance(body.pop("uptime_seconds"), int)
        checkpoint = body.pop("checkpoint")
        assert checkpoint is None or (checkpoint["origin"], checkpoint["witnesses"]) == ("gate.test", [])
        volume = body.pop("ledger_volume")
        assert (volume["is_full"], volume["min_free_bytes"]) == (False, core.services.settings.ledger.min_free_bytes)
        assert body == {
            "status": "ok", "version": core.services.settings.version, "actions_registered": 4, "pending_approvals": 1,
            "revocation_epoch": 0, "unresolved_intents": 0, "draining": False, "in_flight_executions": 0,
            "dependencies": {"redis": True, "opa": True}, "webhooks": {"active": False, "pending_deliveries": 0},
            "backends": {"store": "sqlite", "policy": "embedded", "ledger": "sqlite"},
            "policy_version": "p1", "weakened": [], "crash_loops": [], "clock_error": None,
            "policy_memo": {"in_use": False, "reason": "it is scripted", "entries": 0},
        }  # fmt: skip
        assert await core.events() == before


async def test_each_drain_request_is_answered_and_none_is_undone(tmp_path: Path) -> None:
    """Operators can do everything else meanwhile, agents nothing new."""
    async with policed(tmp_path, workers=0) as core:
        agent, approval_id = await held(core, action_id="pay")
        for already in (False, True):
            assert await core.operate("POST", "/v1/admin/drain") == (
                200,
                {"draining": True, "already_draining": already, "in_flight_executions": 0},
            )
        for method, path, body in (
            ("GET", "/v1/admin/epoch", b""), ("GET", "/v1/admin/policy", b""), ("GET", "/v1/approvals", b""),
            ("GET", "/v1/audit/events", b""), ("GET", "/v1/admin/policy/billing", b""),
            ("POST", "/v1/admin/policy/grant", {"principal": "billing", "actions": ["note"]}),
            ("POST", f"/v1/approvals/{approval_id}/deny", b""), ("POST", "/v1/admin/revoke-all", b""),
        ):  # fmt: skip
            assert (await core.operate(method, path, body))[0] == 200, path
        assert await agent.call() == (503, {"error": "draining"})
        lease = {"scopes": ["tools:call"], "dpop_jwk": core.operator_key.jwk}
        assert (await core.ask("POST", "/v1/leases", lease)).status == 503
        assert (await core.operate(*STATUS))[1]["draining"] is True
        events = await core.events(event_type="AdminDrain")
        assert [(event["principal"], event["decision"]) for event in events] == [("operator:op", "allow")] * 2
        assert all(event["operator_sender_binding"] == core.operator_key.jkt for event in events)


async def test_status_and_metrics_are_answered_while_the_store_is_down_to_whoever_proves_to_be_an_operator(
    tmp_path: Path,
) -> None:
    async with front_core(tmp_path, workers=0) as core:
        core.client.faults["UseProof"] = refuses(NotaryUnavailable("gone"))
        for path in ("/v1/admin/status", "/metrics"):
            good = signed(core.operator_key, "GET", path, API_KEY)
            assert (await core.ask("GET", path, b"", good)).status == 200
            for headers in (
                [], signed(Key(), "GET", path, API_KEY), signed(core.operator_key, "POST", path, API_KEY),
                signed(core.operator_key, "GET", path, API_KEY, now=core.clock.right - 120),
            ):  # fmt: skip
                assert (await core.ask("GET", path, b"", headers)).status == 401
        for method, path in (("GET", "/v1/approvals"), ("GET", "/v1/admin/epoch"), ("POST", "/v1/admin/drain")):
            headers = signed(core.operator_key, method, path, API_KEY)
            assert (await core.ask(method, path, b"", headers)).status == 503
