"""Callers of `/mcp` at the bound of all: no subject keeps out others."""

import json
import time
from pathlib import Path

import pytest
import trio
from gateway_client.wire.address import Address

from edge.gateway import ClientSocket
from edge.mcp import callers
from edge.mcp.access_tokens import AccessClaims, ShownToken
from edge.places import GatewayPlaces
from tests.support.hostile_gateway import hostile_gateway, whole

LEASE = {
    "lease_jwt": "e.e.e", "session_id": "ses_1", "lease_jti": "lea_1", "expires_at": "2100-01-01T00:00:00.000Z",
}  # fmt: skip


async def test_where_all_have_too_many_callers_one_of_the_subject_with_most_makes_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callers, "MAX_CALLERS", 4)
    path = str(tmp_path / "gate.sock")
    known = callers.McpCallers(
        Address.parse(f"unix://{path}", "https://gate.example"), ClientSocket(path, GatewayPlaces(1))
    )  # fmt: skip

    async def admit(subject: str, token: str) -> None:
        claims = AccessClaims("https://login.example", subject, time.time() + 600, "a")
        async with known.admitted(ShownToken(token, None), claims, "127.0.0.1"):
            pass

    with hostile_gateway(whole(json.dumps(LEASE).encode(), Connection="close"), path) as behind:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(known.run)
            await trio.testing.wait_all_tasks_blocked()
            for subject, token in (("quiet", "q"), ("many", "1"), ("many", "2"), ("many", "3"), ("new", "n")):
                await admit(subject, token)
            assert len(behind.requests) == 5
            for subject, token in (("quiet", "q"), ("many", "2"), ("many", "3"), ("new", "n")):
                await admit(subject, token)
            assert len(behind.requests) == 5
            await admit("many", "1")
            assert len(behind.requests) == 6
            nursery.cancel_scope.cancel()
