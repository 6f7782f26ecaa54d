"""DPoP rules 1 to 5, and the claims of a proof: each is needed, and each must be right."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from latchgate import LatchGateClient

from tests.conformance.deployment import Caller, Deployment
from tests.conformance.marks import BOTH_MODES, row, rows
from tests.support.coded import Coded
from tests.support.gateway import Prover, b64
from tests.support.proofs import ABSENT, Key, proof

PATH = "/v1/actions/text_digest/execute"
BODY = {"text": "x"}


def execute(gate: Deployment, headers: dict[str, str]) -> httpx.Response:
    return gate.client.post(PATH, headers=headers, json=BODY)


def refused(answer: httpx.Response, code: str, status: int = 401) -> None:
    assert (answer.status_code, answer.json()) == (status, Coded(code))


@BOTH_MODES
@row("dpop-rules/1-public-base-url")
def test_the_host_header_counts_for_nothing(gate: Deployment, agent: Caller) -> None:
    # Over TCP a dev gateway answers to its loopback names alone, which are one address in its proofs, too.
    host = f"localhost:{gate.gateway.base.rpartition(':')[2]}" if gate.mode == "dev" else "elsewhere.test"
    headers = agent.headers("POST", PATH) | {"Host": host}
    assert execute(gate, headers).status_code == 200
    other = {"Authorization": f"DPoP {agent.token}", "Host": host}
    other["DPoP"] = agent.prover.proof("POST", f"http://elsewhere.test{PATH}", agent.token)
    refused(execute(gate, other), "invalid_dpop")


@row("dpop-rules/3-wrong-key")
def test_a_wrong_key_is_invalid(gate: Deployment, agent: Caller) -> None:
    agent.prover = Prover()
    refused(execute(gate, agent.headers("POST", PATH)), "invalid_dpop")


@row("dpop-rules/3-iat-outside")
def test_an_iat_outside_the_window_is_invalid(gate: Deployment, agent: Caller) -> None:
    for seconds in (-120, 60):
        refused(execute(gate, agent.headers("POST", PATH, iat=int(time.time()) + seconds)), "invalid_dpop")
    assert execute(gate, agent.headers("POST", PATH, iat=int(time.time()) - 30)).status_code == 200


@row("dpop-rules/4-retry")
def test_a_retry_needs_a_proof_of_its_own_whatever_became_of_the_first_try(gate: Deployment, agent: Caller) -> None:
    path = "/v1/actions/forbidden_export/execute"
    headers = agent.headers("POST", path)
    assert gate.client.post(path, headers=headers, json={"table": "t"}).status_code == 403
    refused(gate.client.post(path, headers=headers, json={"table": "t"}), "replay_detected")


@BOTH_MODES
@row("dpop-rules/5-renewal")
def test_the_public_client_renews_under_sixty_seconds(gate: Deployment) -> None:
    async def story() -> list[Any]:
        where = {"socket": gate.gateway.ready["client_socket"], "public_base_url": gate.base}
        async with LatchGateClient(agent_id="renews", **where) as client:
            sessions = []
            for left in (300, 120, 59):  # a machine that stands still for a minute here is not thought of
                await client.execute("text_digest", BODY)
                sessions.append(client.session_id)
                client._lease_expires_at = datetime.now(UTC) + timedelta(seconds=left)
            await client.execute("text_digest", BODY)
            return [*sessions, client.session_id]

    first, second, third, fourth = asyncio.run(story())
    assert first == second == third
    assert fourth not in (None, first)


WRONG: dict[str, list[Any]] = {
    "htm": [ABSENT, "GET", "post", "", 1, ["POST"]],
    "htu": [ABSENT, "", PATH, "https://elsewhere.test" + PATH, 1],
    "iat": [ABSENT, "now", True, -1, int(time.time()) - 10_000, int(time.time()) + 10_000, None],
    "jti": [ABSENT, "", 1, "x" * 129],
    "ath": [ABSENT, "", b64(b"0" * 32), 1],
}


@rows("dpop-claims", {name: name for name in WRONG})
def test_the_claim_is_needed_and_must_be_right(gate: Deployment, agent: Caller, case: str) -> None:
    key = Key(agent.prover.key)

    def send(**changes: Any) -> Any:
        text = proof(key, "POST", gate.base + PATH, agent.token, **changes)
        headers = {"Authorization": f"DPoP {agent.token}", "DPoP": text}
        return gate.client.post(PATH, headers=headers, json={"text": "x"})

    assert send().status_code == 200
    for value in WRONG[case]:
        answer = send(**{case: value})
        assert (answer.status_code, answer.json()) == (401, Coded("invalid_dpop")), (case, value)
