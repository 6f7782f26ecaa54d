"""A gateway killed as a whole, and started again on what it left: what it knew, granted and learned still holds.

One gateway lives twice for all of these tests, which come in the order of its second life: the last ones end it.
"""

import json
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.coded import Coded
from tests.support.gateway import STOP_SECONDS, Bearer, Gateway, gateway
from tests.support.manifests import PATIENT, example, open_policy, patient, write_manifests
from tests.support.processes import attempt
from tests.support.proofs import used_codes
from tests.support.upstream import Upstream

ME = "dev:anonymous"
HOST = "one.gateway.test"
FETCH = {"host": HOST, "path": "a"}
DIGEST = "/v1/actions/text_digest/execute"
RULE = {"action_id": "any_host", "domain": HOST}
ANY_HOST = example(
    "http_fetch", action_id="any_host", template={"url_template": "http://{host}/{+path}"},
    io={"request_schema": {"required": ["host", "path"], "properties": {"host": {"type": "string"}}}}, **PATIENT,
)  # fmt: skip


@dataclass
class Left:
    """The facts about the first life."""

    agent: Bearer
    """Two calls of four are used up."""
    revoked: Bearer
    headers: dict[str, str]
    """The facts about a completed call."""
    signed_at: float
    receipt_id: str
    approval_id: str
    policy: Any


@dataclass
class Life:
    """The second one, and what the first one left."""

    gate: Gateway
    left: Left


def change(operator: Bearer, what: str, *actions: str, principal: str = ME) -> list[str]:
    answer = operator.post(f"/v1/admin/policy/{what}", {"principal": principal, "actions": list(actions)})
    assert answer.status_code == 200, answer.text
    return list(answer.json()["actions"])


def live(gate: Gateway) -> Left:
    """The first life, up to its end."""
    operator, revoked = gate.operator(), gate.agent()
    change(operator, "revoke", "spin")
    change(operator, "grant", "spin", principal="other")
    pair = {"action_id": "spin", "agent_id": "other"}
    assert operator.post("/v1/admin/policy/allowlist", pair).status_code == 200
    assert operator.post("/v1/admin/revoke-all").json()["current_epoch"] == 1
    assert operator.post("/v1/admin/domains", RULE).status_code == 200
    agent = gate.agent(max_calls=4)
    receipt_id = agent.execute("text_digest", {"text": "0"}).json()["receipt_id"]
    payment = {"to": "acct-1", "amount_cents": 1, "currency": "EUR"}
    approval_id = agent.execute("payment_transfer", payment).json()["approval_id"]
    policy = operator.get("/v1/admin/policy").json()
    signed_at, headers = time.time(), agent.headers("POST", DIGEST)
    assert gate.http.post(DIGEST, headers=headers, json={"text": "1"}).status_code == 200
    return Left(agent, revoked, headers, signed_at, receipt_id, approval_id, policy)


def kill_whole(gate: Gateway) -> None:
    """As the kernel does when memory runs out: the supervisor goes without a word, and takes everybody with it."""
    everything = psutil.Process(gate.process.pid).children(recursive=True)
    gate.process.kill()
    gate.process.wait(STOP_SECONDS)
    psutil.wait_procs(everything, timeout=STOP_SECONDS)
    assert not [process for process in everything if process.is_running() and process.status() != "zombie"]


@pytest.fixture(scope="module")
def life(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    """The second life of a gateway."""
    folder: Path = tmp_path_factory.mktemp("lives")
    top = patient(folder / "actions")
    write_manifests(folder / "actions", ANY_HOST)
    top += f'policy_dir = "{open_policy(folder / "policy", "any_host")}"\n'
    tables = "[egress.unsafe_resolve]\n" + "".join(
        f'"{host}" = "{up.address}"\n' for host in (HOST, "upstream.gateway.test")
    )
    with gateway(folder, top + tables) as gate:
        left = live(gate)
        kill_whole(gate)
        base = gate.base
    with gateway(folder, f'{top}public_base_url = "{base}"\n{tables}') as gate:
        for bearer in (left.agent, left.revoked):
            bearer.http = gate.http
        yield Life(gate, left)


def test_proofs_leases_budgets_holds_and_receipts_are_still_there(life: Life, operator: Bearer) -> None:
    answer = life.gate.http.post(DIGEST, headers=life.left.headers, json={"text": "1"})
    assert (answer.status_code, answer.json()["error"] in used_codes(life.left.signed_at)) == (401, True), answer.text
    agent, left = life.left.agent, life.left
    assert agent.get(f"/v1/receipts/{left.receipt_id}").json()["signature_status"] == "verified"
    assert operator.post(f"/v1/approvals/{left.approval_id}/approve").status_code == 200
    assert agent.execute("text_digest", {"text": "2"}).status_code == 200
    assert agent.execute("text_digest", {"text": "3"}).json() == {"error": "budget_exhausted"}
    assert operator.get("/v1/audit/verify").json()["intact"] is True


def test_what_was_revoked_and_granted_still_is(life: Life, agent: Bearer, operator: Bearer) -> None:
    assert operator.get("/v1/admin/epoch").json() == {"current_epoch": 1}
    assert life.left.revoked.execute("text_digest", {"text": "x"}).json() == Coded("invalid_lease")
    assert agent.execute("text_digest", {"text": "x"}).status_code == 200
    assert agent.execute("spin", {"seconds": 0.01}).status_code == 403
    assert operator.get("/v1/admin/policy").json() == life.left.policy


def test_what_was_learned_is_known(life: Life, agent: Bearer, operator: Bearer) -> None:
    assert agent.execute("any_host", FETCH).status_code == 200
    assert operator.post("/v1/admin/domains", RULE).json() == {"error": "domain_already_exists"}


def test_while_it_drains_the_operator_goes_on(life: Life, operator: Bearer) -> None:
    assert operator.post("/v1/admin/drain").status_code == 200
    assert operator.post("/v1/admin/reload").status_code == 200
    assert change(operator, "grant", "spin")[-1] == "text_digest"
    assert operator.get("/v1/admin/status").json()["status"] == "draining"
    assert life.gate.stop(signal.SIGTERM) == 0


def test_a_broken_file_of_what_was_learned_keeps_it_from_starting(life: Life) -> None:
    folder, file = life.gate.state.parent, life.gate.state / "fronts" / "learned.json"
    assert life.gate.stop() == 0
    file.write_bytes(file.read_bytes()[:-5])
    ended = attempt(
        "dev", "--listen", "127.0.0.1:0", "--state-dir", str(life.gate.state), "--config", str(folder / "gateway.toml")
    )
    assert ended.returncode == 78, ended.stderr
    said = [json.loads(line) for line in ended.stderr.splitlines() if line.startswith("{")]
    causes = [line["cause"] for line in said if "learned.json" in str(line.get("cause"))]
    assert causes
    assert all("move it away" in cause for cause in causes)


@pytest.fixture(scope="module")
def gate(life: Life) -> Gateway:
    """In its second life."""
    return life.gate
