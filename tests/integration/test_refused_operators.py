"""Failed attempts to authenticate as an operator leave evidence, and a flood of them only a little."""

import os
from pathlib import Path

from tests.support.gateway import Bearer, Gateway, Prover, gateway

TRIES = 40


def impostor(gate: Gateway, token: str) -> Bearer:
    """A user of this host with a key of their own, at the admin socket."""
    return Bearer(gate.over("admin_socket"), gate.base, token, Prover())


def test_every_try_is_counted_in_few_events_that_say_who_it_was(tmp_path: Path) -> None:
    with gateway(tmp_path) as gate:
        stolen = impostor(gate, gate.operator().token)
        for _ in range(TRIES):
            assert stolen.get("/v1/admin/status").status_code == 401
        first, *_ = gate.events(event_type="OperatorAuthFailed")[::-1]
        assert first["attempts"]["count"] == 1
        assert first["principal"] == f"uid:{os.getuid()}"
        assert (first["error_code"], first["attempts"]["operator"]) == ("invalid_dpop", "dev")
        assert len(first["attempts"]["thumbprint"]) == 43
        text = gate.operator().get("/metrics").text
        assert f'gate_operator_auth_failures_total{{code="invalid_dpop"}} {TRIES}.0' in text
        gate.stop()
    with gateway(tmp_path) as gate:
        told = gate.events(event_type="OperatorAuthFailed")
        assert sum(event["attempts"]["count"] for event in told) == TRIES
        # One at once, one for each minute that the tries took, one at the end.
        assert len(told) <= TRIES / 4
        assert gate.operator().get("/v1/audit/verify").json()["intact"]
