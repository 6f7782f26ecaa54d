"""Floods of requests that prove nothing, to agents' and operators' endpoints: few events and lines, and all counted."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.gateway import Bearer, Gateway, Prover, gateway

FLOOD = 150
TRIES = 40
NAMELESS = "a-text-that-a-caller-chose"
EXECUTE = "/v1/actions/text_digest/execute"


@dataclass
class Flooded:
    """A gateway that was flooded and stopped, and that runs again."""

    gate: Gateway
    log: str
    """The log of the first run."""
    metrics: str
    """The metrics after the flood of operators' requests."""
    first: dict[str, Any]
    """The event of the first refused operator, as it was during the flood."""
    session_id: str
    """The session whose token was stolen."""


@pytest.fixture(scope="module")
def flooded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flooded]:
    """Flood both kinds of endpoint, drain, stop and start again."""
    folder: Path = tmp_path_factory.mktemp("flooded")
    with gateway(folder) as gate:
        metrics = flood_operators(gate)
        (first,) = gate.events(event_type="OperatorAuthFailed")[-1:]
        session_id = flood_agents(gate)
        assert gate.operator().post("/v1/admin/drain").status_code == 200
        gate.stop()
        log = gate.log.read_text()
    with gateway(folder) as gate:
        yield Flooded(gate, log, metrics, first, session_id)


def flood_operators(gate: Gateway) -> str:
    """Use the operator's token with another key; the metrics afterwards."""
    stolen = Bearer(gate.over("admin_socket"), gate.base, gate.operator().token, Prover())
    for _ in range(TRIES):
        assert stolen.get("/v1/admin/status").status_code == 401
    return gate.operator().get("/metrics").text


def flood_agents(gate: Gateway) -> str:
    """Use an agent's token with another key, and tokens that are none; the session of the agent."""
    http, agent, thief = gate.over("client_socket"), gate.agent(), Prover()
    for number in range(FLOOD):
        stolen = {
            "Authorization": f"DPoP {agent.token}", "DPoP": thief.proof("POST", gate.base + EXECUTE, agent.token)
        }  # fmt: skip
        headers = stolen if number % 3 == 0 else {"Authorization": "DPoP x", "DPoP": "y"}
        path = EXECUTE if number % 3 != 2 else f"/v1/actions/{NAMELESS}{number}/execute"
        assert http.post(path, headers=headers, json={"text": "x"}).status_code == 401
    return agent.session_id


def test_every_refused_call_is_counted_in_few_events(flooded: Flooded) -> None:
    events = flooded.gate.events(event_type="ActionCall", decision="deny", limit=1000)
    assert len(events) <= FLOOD / 10
    counted = dict.fromkeys(("invalid_dpop", "invalid_lease"), 0)
    for event in events:
        counted[event["error_code"]] += event["attempts"]["count"]
        assert event["attempts"]["uid"] == os.getuid()
    assert counted == {"invalid_dpop": FLOOD // 3, "invalid_lease": FLOOD - FLOOD // 3}
    assert {one["session_id"] for one in events if one["error_code"] == "invalid_dpop"} == {flooded.session_id}


def test_a_flood_of_refused_calls_is_few_lines_of_the_log_without_the_callers_text(flooded: Flooded) -> None:
    said = [line for line in flooded.log.splitlines() if "invalid_dpop" in line or "invalid_lease" in line]
    assert len(said) <= FLOOD / 10
    files = b"".join(one.read_bytes() for one in flooded.gate.state.glob("ledger.sqlite3*"))
    assert NAMELESS not in flooded.log
    assert NAMELESS.encode() not in files


def test_the_first_refused_operator_is_in_evidence_at_once(flooded: Flooded) -> None:
    first = flooded.first
    assert (first["error_code"], first["principal"]) == ("invalid_dpop", f"uid:{os.getuid()}")
    assert (first["attempts"]["count"], first["attempts"]["operator"]) == (1, "dev")
    assert len(first["attempts"]["thumbprint"]) == 43
    assert f'gate_operator_auth_failures_total{{code="invalid_dpop"}} {TRIES}.0' in flooded.metrics


def test_every_refused_operator_is_counted_in_few_events(flooded: Flooded) -> None:
    """One at once, one for each minute that the tries took, one at the end."""
    events = flooded.gate.events(event_type="OperatorAuthFailed")
    assert sum(event["attempts"]["count"] for event in events) == TRIES
    assert len(events) <= TRIES / 4


def test_a_flooded_ledger_is_intact(flooded: Flooded) -> None:
    assert flooded.gate.operator().get("/v1/audit/verify").json()["intact"] is True
