"""Requests of approvals that were not carried out: kept with plan and hash, over a restart, and marked as ended."""

from pathlib import Path
from typing import Any

from tests.integration.test_reloads import held_by_module_of_its_own, reload
from tests.support.gateway import Bearer, config_for, gateway, wait_for
from tests.support.manifests import open_policy, patient, trust
from tests.support.upstream import Upstream

GROWN = (
    "state", "status", "claimed_by", "claimed_at", "completed_at", "deny_reason", "error_code", "approval_signature",
)  # fmt: skip
PAYMENT = {"to": "acct-7", "amount_cents": 25000, "currency": "EUR"}


def unchanged(detail: dict[str, Any]) -> dict[str, Any]:
    """The members that say what was held."""
    return {name: value for name, value in detail.items() if name not in GROWN}


def detail_of(operator: Bearer, approval_id: str, query: str = "") -> dict[str, Any]:
    answer = operator.get(f"/v1/approvals/{approval_id}{query}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_what_was_denied_failed_or_expired_is_shown_as_it_was_held_after_a_restart(
    up: Upstream, tmp_path: Path
) -> None:
    patient(tmp_path / "actions")
    open_policy(tmp_path / "policy", "more", version="v1")
    more = f'manifests_dir = "{tmp_path / "actions"}"\nlease_ttl_seconds = 3600\npolicy_dir = "{tmp_path / "policy"}"'
    held: dict[str, dict[str, Any]] = {}
    with gateway(tmp_path, config_for(up.address, more)) as gate:
        operator = gate.operator()
        _, failing, _ = held_by_module_of_its_own(gate, tmp_path, b"kept")
        agent = gate.agent()
        for state, amount in (("denied", 1), ("expired", 2)):
            answer = agent.execute("payment_transfer", PAYMENT | {"amount_cents": amount})
            held[state] = detail_of(operator, answer.json()["approval_id"])
        held["failed"] = detail_of(operator, failing)
        path = f"/v1/approvals/{held['denied']['approval_id']}/deny"
        assert operator.post(path, {"reason": "too much"}).status_code == 200
        (tmp_path / "actions" / "more.yaml").unlink()
        trust(tmp_path / "actions")
        assert reload(gate)["decision"] == "allow"
        assert operator.post(f"/v1/approvals/{failing}/approve").status_code == 409
        assert operator.post("/v1/admin/revoke-all").status_code == 200
        wait_for(lambda: gate.events(event_type="ApprovalExpired"), "the end of what waited")
        base = gate.base
    with gateway(tmp_path, config_for(up.address, f'public_base_url = "{base}"\n{more}')) as gate:
        operator = gate.operator()
        for state, before in held.items():
            shown = detail_of(operator, before["approval_id"], "?ended=true")
            assert shown["state"] == state
            assert unchanged(shown) == unchanged(before)
            assert shown["request"]
            assert shown["shown_hash"].startswith("sha256:")
        denied = detail_of(operator, held["denied"]["approval_id"])
        assert (denied["claimed_by"], denied["deny_reason"]) == ("dev", "too much")
        assert detail_of(operator, failing)["error_code"] == "plan_integrity"
        assert operator.get(f"/v1/approvals/{held['expired']['approval_id']}").status_code == 404
