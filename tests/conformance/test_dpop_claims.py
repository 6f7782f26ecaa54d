"""DPoP proof claims: each is needed, and each must be right."""

import time
from typing import Any

from tests.conformance.deployment import Caller, Deployment
from tests.conformance.marks import rows
from tests.support.coded import Coded
from tests.support.gateway import b64
from tests.support.proofs import ABSENT, Key, proof

PATH = "/v1/actions/text_digest/execute"
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
