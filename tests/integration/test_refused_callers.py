"""A flood of requests that prove nothing leaves little: few events, few lines, and not one of them uncounted."""

import os
from pathlib import Path
from typing import Any

from tests.support.gateway import Gateway, Prover, gateway

FLOOD = 150
NAMELESS = "a-text-that-a-caller-chose"


def refusals(gate: Gateway) -> list[dict[str, Any]]:
    """Events of calls that were refused without a proof."""
    return [one for one in gate.events(event_type="ActionCall", limit=1000) if one["decision"] == "deny"]


def test_every_refused_call_is_counted_in_few_events_and_lines_whatever_ends_the_gateway(tmp_path: Path) -> None:
    path = "/v1/actions/text_digest/execute"
    with gateway(tmp_path) as gate:
        http, agent = gate.over("client_socket"), gate.agent()
        thief = Prover()
        for number in range(FLOOD):
            stolen = {
                "Authorization": f"DPoP {agent.token}", "DPoP": thief.proof("POST", gate.base + path, agent.token)
            }  # fmt: skip
            headers = stolen if number % 3 == 0 else {"Authorization": "DPoP x", "DPoP": "y"}
            asked = path if number % 3 != 2 else f"/v1/actions/{NAMELESS}{number}/execute"
            assert http.post(asked, headers=headers, json={"text": "x"}).status_code == 401
        assert gate.operator().post("/v1/admin/drain").status_code == 200
        gate.stop()
        said = [line for line in gate.log.read_text().splitlines() if "invalid_dpop" in line or "invalid_lease" in line]
        assert len(said) <= FLOOD / 10
        assert NAMELESS not in gate.log.read_text()
    with gateway(tmp_path) as gate:
        told = refusals(gate)
        assert len(told) <= FLOOD / 10
        counted = dict.fromkeys(("invalid_dpop", "invalid_lease"), 0)
        for event in told:
            counted[event["error_code"]] += event["attempts"]["count"]
            assert event["attempts"]["uid"] == os.getuid()
        assert counted == {"invalid_dpop": FLOOD // 3, "invalid_lease": FLOOD - FLOOD // 3}
        assert {one["session_id"] for one in told if one["error_code"] == "invalid_dpop"} == {agent.session_id}
        assert gate.operator().get("/v1/audit/verify").json()["intact"]
    assert NAMELESS.encode() not in b"".join(one.read_bytes() for one in (tmp_path / "state").glob("ledger.sqlite3*"))
