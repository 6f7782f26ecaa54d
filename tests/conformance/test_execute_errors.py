"""Execute errors, by status and code."""

import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontend.pool.channel import WorkerChannel
from ipc.channel.framing import FrameError
from ipc.messages.calling import Call
from tests.conformance.deployment import Caller, Deployment
from tests.conformance.marks import ONLY_DEV, row, rows
from tests.conformance.outages import Outage
from tests.conformance.proxied import Proxied
from tests.conformance.scene import LONG_REASON
from tests.conformance.stories import Restart
from tests.conformance.underway import still_workers
from tests.support.forged_leases import Mint
from tests.support.front_core import front_core
from tests.support.proofs import Key
from tests.support.upstream import Upstream

BODY = {"text": "x"}
PATH = "/v1/actions/text_digest/execute"
MB = 1_048_576


def refused(answer: httpx.Response, status: int, code: str) -> None:
    """Status and code, and for a 5xx nothing else."""
    assert (answer.status_code, answer.json()["error"]) == (status, code), answer.text
    assert status < 500 or answer.json() == {"error": code}


def mint(gate: Deployment, agent: Caller) -> Mint:
    """Makes leases that the gateway itself would have signed."""
    return Mint(agent.token, Key.from_pem_file(gate.lease_key))


# ------------------------------------------------------------------------------------------------ 401


@row("execute-errors/401-lease_expired")
def test_an_expired_lease_is_refused(gate: Deployment, agent: Caller) -> None:
    now = int(time.time())
    agent.token = mint(gate, agent).claims(iat=now - 600, nbf=now - 600, exp=now - 300)
    refused(agent.execute("text_digest", BODY), 401, "lease_expired")


@row("execute-errors/401-invalid_lease")
def test_an_invalid_lease_is_refused(gate: Deployment, agent: Caller) -> None:
    good = agent.token
    for token in ("nonsense", good[:-6] + "AAAAAA", good.rpartition(".")[0] + ".", mint(gate, agent).header(key=Key())):
        agent.token = token
        refused(agent.execute("text_digest", BODY), 401, "invalid_lease")


@row("execute-errors/401-invalid_dpop")
def test_an_invalid_proof_is_refused(gate: Deployment, agent: Caller) -> None:
    headers = {"Authorization": f"DPoP {agent.token}", "DPoP": "no.proof.atall"}
    refused(gate.client.post(PATH, headers=headers, json=BODY), 401, "invalid_dpop")


@row("execute-errors/401-replay_detected", "dpop-rules/2-replay")
def test_a_replay_is_refused(gate: Deployment, agent: Caller) -> None:
    headers = agent.headers("POST", PATH)
    assert gate.client.post(PATH, headers=headers, json=BODY).status_code == 200
    refused(gate.client.post(PATH, headers=headers, json=BODY), 401, "replay_detected")


@row("execute-errors/401-missing_auth_header")
def test_a_call_without_its_headers_is_refused(gate: Deployment, agent: Caller) -> None:
    for missing in ("Authorization", "DPoP"):
        headers = {name: value for name, value in agent.headers("POST", PATH).items() if name != missing}
        refused(gate.client.post(PATH, headers=headers, json=BODY), 401, "missing_auth_header")


# ------------------------------------------------------------------------------------------------ 403, 404, 413, 422


@row("execute-errors/403-policy_denied")
def test_a_call_that_policy_denies_is_refused(agent: Caller) -> None:
    answer = agent.execute("forbidden_export", {"table": "t"})
    refused(answer, 403, "policy_denied")
    assert answer.json()["deny_reason"] == "nobody exports"
    assert LONG_REASON not in agent.execute("oddly_denied", BODY).text


@rows("execute-errors", {"403-action_not_registered": "unknown", "403-action_digest_mismatch": "changed"})
def test_a_module_that_is_not_trusted(agent: Caller, case: str) -> None:
    code = {"unknown": "action_not_registered", "changed": "action_digest_mismatch"}[case]
    refused(agent.execute(case, BODY), 403, code)


@row("execute-errors/403-budget_session_not_found")
def test_a_counter_that_is_gone(gate: Deployment) -> None:
    agent = gate.agent(max_calls=2)
    assert gate.change("delete from budgets where session_id = ?", agent.session_id) == 1
    refused(agent.execute("text_digest", BODY), 403, "budget_session_not_found")


@row("execute-errors/404-action_not_found")
def test_an_unknown_action_is_not_found(agent: Caller) -> None:
    refused(agent.execute("nothing"), 404, "action_not_found")


# ------------------------------------------------------------------------------------------------ 500


@row("execute-errors/500-evidence_persistence_failed")
def test_what_ran_and_left_no_evidence(gate: Deployment) -> None:
    agent = gate.agent(max_calls=2)
    before = gate.status()["unresolved_intents"]
    with still_workers(gate) as workers:
        call, _ = workers.begin(lambda: agent.execute("spin", {}))
        with gate.without("journal"):
            workers.go_on()
            answer = call.answer()
    assert answer is not None
    refused(answer, 500, "evidence_persistence_failed")
    assert gate.status()["unresolved_intents"] == before + 1
    assert agent.execute("text_digest", BODY).status_code == 200
    refused(agent.execute("text_digest", BODY), 403, "budget_exhausted")  # the first call was not given back


@row("execute-errors/500-internal_error", place="front")
async def test_a_fault_of_the_gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A front of whose code one part breaks: from outside there is no way to one."""

    async def too_large(_channel: WorkerChannel, _call: Call) -> None:
        raise FrameError("a frame of 17 MB")

    async with front_core(tmp_path) as core:
        agent = await core.agent(max_calls=3)
        with monkeypatch.context() as broken:
            broken.setattr(WorkerChannel, "give", too_large)
            assert await agent.call() == (500, {"error": "internal_error"})
        (event,) = await core.events(event_type="ActionCall")
        assert (event["error_code"], event["reason"]) == ("internal_error", "a frame of 17 MB")
        assert (await core.remaining(agent), await core.unresolved()) == (3, 0)
        assert (await agent.call())[0] == 200
        assert core.desk.kills == []


# ------------------------------------------------------------------------------------------------ 502

FAILING: dict[str, tuple[str, Any, str, str]] = {
    "502-provider-error": (
        "small_file", {"path": "large", "content": "123456789"}, "provider_error", "file would have more than 8 bytes",
    ),
    "502-fuel": ("little_fuel", BODY, "policy_violation", "fuel limit of 1000 reached"),
    # The provider is given no more, sees that, and says so.
    "502-memory": ("little_memory", {"memory_mb": 1}, "policy_violation", "memory limit of 1 MB reached"),
    "502-timeout": ("little_time", {"seconds": 1}, "timeout", "time limit of 0.1 s reached"),
    "502-io-calls": ("no_io", {"path": "a", "content": "b"}, "policy_violation", "I/O call limit of 0 reached"),
    "502-dns": ("unknown_host", {"path": "x"}, "provider_error", "could not be resolved"),
}  # fmt: skip
"""Row -> action, body, and what the receipt says of the cause: its class, and words of its reason."""
KINDS = {"provider_error": "provider_failure", "policy_violation": "provider_failure", "timeout": "timeout"}
"""Failure class -> kind of the result."""
ALSO = {
    "502-provider-error": ("receipt/kind-provider_failure", "receipt/failure_class-provider_error"),
    "502-fuel": (
        "call-limits/fuel",
        "receipt/failure_class-policy_violation",
        "verification-outcomes/provider_failed_before_verification",
    ),
    "502-memory": ("call-limits/memory_mb",),
    "502-timeout": ("call-limits/timeout_seconds", "receipt/kind-timeout", "receipt/failure_class-timeout"),
    "502-io-calls": ("call-limits/max_io_calls",),
}


@rows("execute-errors", FAILING, ALSO)
def test_a_provider_that_failed_or_met_a_limit(
    gate: Deployment, agent: Caller, case: tuple[str, Any, str, str]
) -> None:  # fmt: skip
    action, body, failure_class, words = case
    refused(agent.execute(action, body), 502, "action_execution_failed")
    receipt = gate.receipt_of(agent)
    assert words in receipt["normalized_result"]["reason"]
    assert (receipt["failure_class"], receipt["normalized_result"]["kind"]) == (failure_class, KINDS[failure_class])
    assert receipt["verification_outcome"]["status"] == "provider_failed_before_verification"


@row("execute-errors/502-memory")
def test_what_meets_the_memory_limit_is_done_where_the_limit_is_higher(agent: Caller) -> None:
    assert agent.execute("spin", FAILING["502-memory"][1]).status_code == 200


@ONLY_DEV
@row("execute-errors/502-unreachable")
def test_a_target_that_can_not_be_reached(gate: Deployment, agent: Caller) -> None:
    refused(agent.execute("closed_port", {"path": "x"}), 502, "action_execution_failed")
    assert "can't be reached" in gate.receipt_of(agent)["normalized_result"]["reason"]


@row("execute-errors/502-egress")
def test_a_module_that_asks_for_another_host_does_not_get_there(gate: Deployment, agent: Caller, up: Upstream) -> None:
    refused(agent.execute("stray"), 502, "action_execution_failed")
    assert gate.receipt_of(agent)["failure_class"] == "provider_error"
    assert not [one for one in up.seen if one.path == "/stray"]


@row("execute-errors/502-proxy")
def test_a_proxy_that_refuses(proxied: Proxied, up: Upstream) -> None:
    agent = proxied.gate.agent()
    refused(agent.execute("proxied_elsewhere", {"path": "refused-by-proxy"}), 502, "action_execution_failed")
    receipt = proxied.gate.receipt_of(agent)
    assert receipt["normalized_result"]["reason"] == "host_io: denied: the egress proxy refused the upstream"
    assert receipt["signature_status"] == "verified"
    proxied.was_asked(403, "proxied_elsewhere")
    assert not [one for one in up.seen if one.path == "/refused-by-proxy"]


# ------------------------------------------------------------------------------------------------ 503


@row("execute-errors/503-policy_engine_unavailable")
def test_a_policy_engine_that_is_gone(outage: Outage) -> None:
    refused(outage.gone, 503, "policy_engine_unavailable")


@row("execute-errors/503-policy_engine_timeout")
def test_a_policy_engine_that_does_not_answer(outage: Outage) -> None:
    refused(outage.frozen, 503, "policy_engine_timeout")


@row("execute-errors/503-budget_store_unavailable")
def test_a_budget_that_can_not_be_read(gate: Deployment) -> None:
    agent = gate.agent(max_calls=2)
    with gate.without_table("budgets"):
        answer = agent.execute("text_digest", BODY)
    refused(answer, 503, "budget_store_unavailable")


@row("execute-errors/503-clock_error", "service/fail-closed-clock")
def test_a_clock_that_is_wrong(restart: Restart) -> None:
    assert restart.before.wrong_clock is not None
    refused(restart.before.wrong_clock, 503, "clock_error")
