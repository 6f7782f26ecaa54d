"""The status on a terminal: what a person reads of the gateway's facts."""

from typing import Any

import pytest

from tests.support.gatectl import Gatectl, pointed_at
from tests.support.scripted_gateway import scripted_gateway

STATUS: dict[str, Any] = {
    "status": "ok", "version": "1", "uptime_seconds": 1, "actions_registered": 1, "draining": False,
    "in_flight_executions": 0, "dependencies": {"redis": True, "opa": True},
}  # fmt: skip


def line_of(gatectl: Gatectl, name: str, **more: Any) -> str:
    with scripted_gateway({"GET /v1/admin/status": (200, STATUS | more)}) as server:
        lines = gatectl.done("--address", server.url, "status").out.splitlines()
    return next((line.removeprefix(name).strip() for line in lines if line.startswith(name)), "")


@pytest.mark.parametrize(
    ("is_active", "pending", "shown"),
    [(False, 0, "none"), (True, 0, "0 waiting"), (True, 12, "12 waiting"), (False, 3, "3 waiting"),
     (True, None, "waiting deliveries not known")],
)  # fmt: skip
def test_webhooks_are_shown_with_their_waiting_deliveries(
    gatectl: Gatectl, is_active: bool, pending: int | None, shown: str
) -> None:
    webhooks = {"active": is_active, "pending_deliveries": pending}
    assert line_of(gatectl, "webhooks", webhooks=webhooks) == shown


def test_problems_that_stop_calls_are_shown_if_there_are_any(gatectl: Gatectl) -> None:
    volume = {"free_bytes": 19_000_000, "min_free_bytes": 33_554_432, "is_full": True}
    told = "full: 19,000,000 bytes free, 33,554,432 needed; calls are refused: docs/runbooks/full-disk.md"
    assert line_of(gatectl, "ledger volume", status="degraded", ledger_volume=volume) == told
    assert line_of(gatectl, "ledger volume", ledger_volume=volume | {"is_full": False}) == ""
    assert line_of(gatectl, "crash loops", crash_loops=["template", "front 2"]) == "template, front 2"
    assert line_of(gatectl, "crash loops", crash_loops=[]) == ""


@pytest.mark.parametrize(
    ("fault", "check", "found", "mend"),
    [
        ({"ledger_full": True}, "ledger volume", "full: calls and leases are refused", "docs/runbooks/full-disk.md"),
        ({"opa": False}, "policy engine", "is down: calls are refused", "docs/failure-modes.md"),
        ({"crash_loops": ["template"]}, "crash loops", "template", "gateway ps"),
        ({"clock_error": {"cause": "it went back", "until": "2026-11-21T11:12:13.123Z"}}, "gateway's clock",
         "calls are refused until 2026-11-21T11:12:13.123Z: it went back", "docs/operations.md"),
    ],
)  # fmt: skip
def test_doctor_says_why_calls_are_refused_now(
    gatectl: Gatectl, fault: dict[str, Any], check: str, found: str, mend: str
) -> None:
    ready = {"status": "not_ready", "redis": True, "opa": True, "ledger": True, "approval_store": True}
    ready |= {"egress_proxy": None, "crash_loops": [], "ledger_full": False, "clock_error": None, "draining": False}
    script = {"GET /v1/admin/status": (200, STATUS), "GET /healthz": (200, {"status": "ok"})}
    with scripted_gateway(script | {"GET /readyz": (503, ready | fault)}) as server:
        ran = pointed_at(gatectl, server.url).here("doctor", "--json")
    rows = {one["check"]: one for one in ran.json["checks"]}
    assert (ran.code, rows[check]["result"], rows[check]["found"]) == (1, "fail", found)
    assert mend in rows[check]["mend"]
    others = {"ledger volume", "policy engine", "crash loops", "gateway's clock"} - {check}
    assert {rows[one]["result"] for one in others} == {"ok"}


def test_doctor_sends_nobody_back_to_itself(gatectl: Gatectl) -> None:
    script = {
        "GET /v1/admin/status": (401, {"error": "invalid_operator_token"}),
        "GET /healthz": (200, {"status": "ok"}),
    }
    with scripted_gateway(script) as server:
        ran = pointed_at(gatectl, server.url).here("doctor", "--json")
    (row,) = [one for one in ran.json["checks"] if one["check"] == "credential"]
    mend = "check operator_key_file of the context, [[operators]] of the gateway"
    assert (row["result"], row["mend"]) == ("fail", mend)
    away = gatectl.here("--address", "http://127.0.0.1:1", "doctor", "--json")
    assert [one["check"] for one in away.json["checks"] if "gatectl doctor" in (one["mend"] or "")] == []


@pytest.mark.parametrize(("is_up", "shown"), [(True, "answers"), (False, "is down")])
def test_a_configured_egress_proxy_is_shown(gatectl: Gatectl, is_up: bool, shown: str) -> None:
    assert line_of(gatectl, "egress proxy", dependencies=STATUS["dependencies"] | {"egress_proxy": is_up}) == shown
    assert line_of(gatectl, "egress") == ""


@pytest.mark.parametrize(
    ("cosigned", "shown"),
    [({"has_cosigned": True, "size": 12, "time": "2026-11-23T05:00:00.000Z"}, "cosigned, 2026-11-23T05:00:00.000Z"),
     ({"has_cosigned": False, "problem": "no answer in time"}, "has cosigned nothing; no answer in time"),
     ({"has_cosigned": False, "size": 7, "time": "T"}, "cosigned 7 entries, T")],
)  # fmt: skip
def test_the_last_checkpoint_is_shown_with_its_witnesses(
    gatectl: Gatectl, cosigned: dict[str, Any], shown: str
) -> None:
    none: dict[str, Any] = {"size": None, "time": None, "problem": None}
    checkpoint = {
        "origin": "gate.test", "size": 12, "root": "cm9vdA==", "time": "2026-11-23T05:00:00.000Z", "age_seconds": 65,
        "witnesses": [{"name": "city", **none, **cosigned}],
    }  # fmt: skip
    assert line_of(gatectl, "checkpoint", checkpoint=checkpoint).startswith("12 entries, ")
    assert line_of(gatectl, "witness city", checkpoint=checkpoint) == shown
    assert line_of(gatectl, "checkpoint", checkpoint=None) == ""
