"""Every outcome of a call past admission: its answer, its one event, and what it costs the budget."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from msgspec.structs import force_setattr

from frontend.errors import GateError
from frontend.http.requests import CompleteBody, Request
from frontend.notary.errors import NotaryRefused, NotaryUnavailable
from ipc.operations.leases import ReadBudget
from tests.support.front_core import ALLOW, DENY, HOLD, Core, action, front_core, refuses, registry_of, signed

GONE = NotaryUnavailable("the database is gone", "store")
NO_BUDGETS = NotaryUnavailable("no such table: budgets", "budget")
SENT_NO_MORE = NotaryRefused("it is not open")
PATH = "/v1/actions/echo/execute"


class Row(NamedTuple):
    """One way for a call to end. `left` is what remains of a budget of three calls."""

    arrange: Callable[[Core, Path], None]
    status: int
    code: str | None
    decision: str
    left: int = 3
    action_id: str = "echo"
    body: bytes | object = None
    claims: tuple[tuple[str, Any], ...] = ()


def nothing(core: Core, folder: Path) -> None:
    """All is well."""


def answers(answer: Any) -> Callable[[Core, Path], None]:
    return lambda core, folder: setattr(core.policy, "answer", answer)


def breaks(operation: str, error: Exception) -> Callable[[Core, Path], None]:
    return lambda core, folder: core.client.faults.__setitem__(operation, refuses(error))


def loads(**changes: Any) -> Callable[[Core, Path], None]:
    def arrange(core: Core, folder: Path) -> None:
        core.services.configuration.current.registry = registry_of(folder / "other", action(), **changes)

    return arrange


def needs_a_secret(core: Core, folder: Path) -> None:
    core.services.configuration.current.registry = registry_of(folder / "other", action(secrets=[{"name": "token"}]))


def holds_and(*faults: tuple[str, Exception]) -> Callable[[Core, Path], None]:
    def arrange(core: Core, folder: Path) -> None:
        core.policy.answer = HOLD
        for operation, error in faults:
            core.client.faults[operation] = refuses(error)

    return arrange


def holds_too_many(core: Core, folder: Path) -> None:
    async def with_room_for_none(operation: Any, args: Any, kwargs: Any) -> Any:
        return await operation(msgspec.structs.replace(args[0], limit=0), **kwargs)

    core.policy.answer = HOLD
    core.client.faults["Hold"] = with_room_for_none


def without_workers(core: Core, folder: Path) -> None:
    core.desk.answers_needs = False
    for worker_id in list(core.desk.processes):
        core.desk.end(worker_id)
    force_setattr(core.services.pipeline.execution, "worker_wait_seconds", 0.05)


def forgets_the_session(core: Core, folder: Path) -> None:
    async def of_another(operation: Any, args: Any, kwargs: Any) -> Any:
        return await operation(ReadBudget("ses_nobody"), **kwargs)

    core.policy.answer = HOLD
    core.client.faults["ReadBudget"] = of_another


ROWS = {
    "allowed": Row(nothing, 200, None, "allow", left=2),
    "held": Row(answers(HOLD), 202, None, "pending_approval", left=2),
    "provider failed": Row(nothing, 502, "action_execution_failed", "error", left=2, action_id="die"),
    "no proof of ours": Row(nothing, 401, "invalid_dpop", "deny", claims=(("htm", "GET"),)),
    "policy denies": Row(answers(DENY), 403, "policy_denied", "deny"),
    "module not trusted": Row(loads(verdict="missing"), 403, "action_not_registered", "deny"),
    "module changed": Row(loads(verdict="mismatch"), 403, "action_digest_mismatch", "deny"),
    "secret missing": Row(needs_a_secret, 502, "action_execution_failed", "error"),
    "no such session": Row(forgets_the_session, 403, "budget_session_not_found", "deny"),
    "no such action": Row(nothing, 404, "action_not_found", "deny", action_id="nothing"),
    "body too large": Row(nothing, 413, "body_too_large", "deny", body={"n": "x" * 2000}),
    "not json": Row(nothing, 422, "schema_violation", "deny", body=b"{"),
    "not utf-8": Row(nothing, 422, "schema_violation", "deny", body=b'{"n":"\xff"}'),
    "schema": Row(nothing, 422, "schema_violation", "deny", body={"m": 1}),
    "too many holds": Row(holds_too_many, 429, "too_many_pending_approvals", "deny"),
    "our fault": Row(answers(RuntimeError("ours")), 500, "internal_error", "error"),
    "our fault on the way": Row(breaks("Open", RuntimeError("ours")), 500, "internal_error", "error"),
    "no receipt": Row(breaks("Close", GONE), 500, "evidence_persistence_failed", "error", left=2),
    "no such intent": Row(breaks("Close", SENT_NO_MORE), 500, "evidence_persistence_failed", "error", left=2),
    "policy is gone": Row(answers(GateError("policy_engine_unavailable")), 503, "policy_engine_unavailable", "error"),
    "policy is late": Row(answers(GateError("policy_engine_timeout")), 503, "policy_engine_timeout", "error"),
    "no worker": Row(without_workers, 503, "overloaded", "error"),
    "no intent": Row(breaks("Open", GONE), 503, "replay_cache_unavailable", "error"),
    "no budgets": Row(holds_and(("ReadBudget", GONE)), 503, "budget_store_unavailable", "error"),
    "no debit": Row(breaks("Open", NO_BUDGETS), 503, "budget_store_unavailable", "error"),
    "hold not stored": Row(holds_and(("Hold", GONE)), 503, "replay_cache_unavailable", "error"),
    "hold without budgets": Row(holds_and(("Hold", NO_BUDGETS)), 503, "budget_store_unavailable", "error"),
}  # fmt: skip


EXECUTE_TABLE = {
    "lease_expired", "invalid_lease", "invalid_dpop", "replay_detected", "missing_auth_header", "policy_denied",
    "action_not_registered", "action_digest_mismatch", "budget_exhausted", "budget_session_not_found",
    "action_not_found", "body_too_large", "schema_violation", "evidence_persistence_failed", "internal_error",
    "action_execution_failed", "draining", "policy_engine_unavailable", "policy_engine_timeout",
    "replay_cache_unavailable", "budget_store_unavailable", "clock_error",
}  # fmt: skip
"""Codes of docs/contract.md, "Execute endpoint"."""
TOLD_BELOW = {
    "lease_expired", "invalid_lease", "replay_detected", "missing_auth_header", "budget_exhausted", "draining",
    "clock_error",
}  # fmt: skip
"""Those that need more than one request, have no lease to name, or leave no event."""


def test_no_code_of_the_contract_is_left_out() -> None:
    assert {row.code for row in ROWS.values() if row.code in EXECUTE_TABLE} | TOLD_BELOW == EXECUTE_TABLE


@pytest.mark.parametrize("name", ROWS)
async def test_an_outcome_has_its_answer_one_event_and_its_price(tmp_path: Path, name: str) -> None:
    row = ROWS[name]
    async with front_core(tmp_path, action(), action("die")) as core:
        agent = await core.agent(max_calls=3)
        row.arrange(core, tmp_path)
        sent = {"n": 1} if row.body is None else row.body
        answer = await agent.send("POST", f"/v1/actions/{row.action_id}/execute", sent, **dict(row.claims))
        body = msgspec.json.decode(answer.body)
        assert (answer.status, body.get("error")) == (row.status, row.code)
        (event,) = await core.events(event_type="ActionCall")
        assert (event["decision"], event.get("error_code")) == (row.decision, row.code)
        headers = dict(answer.headers)
        assert headers["X-Trace-Id"] == event["trace_id"]
        assert headers.get("X-Receipt-Id") == (event["receipt_id"] if name == "provider failed" else None)
        assert (event["session_id"], event["principal"]) == (agent.session_id, "dev:anonymous")
        core.client.faults.clear()
        assert await core.remaining(agent) == row.left
        if "budgets_after" in event:
            assert event["budgets_after"] == {"calls_remaining": row.left}


@pytest.mark.parametrize("code", ["bad_request", "request_timeout"])
async def test_a_body_that_never_arrives_leaves_an_event(tmp_path: Path, code: str) -> None:
    class Lost(CompleteBody):
        async def read(self, cap: int) -> bytes:
            raise GateError(code)

    async with front_core(tmp_path) as core:
        agent = await core.agent(3)
        request = Request("POST", PATH, headers=signed(agent.key, "POST", PATH, agent.token), body=Lost())
        assert msgspec.json.decode((await core.dispatch.respond(request)).body)["error"] == code
        (event,) = await core.events(event_type="ActionCall")
        assert event["error_code"] == code


async def test_a_forbidden_call_of_a_session_without_calls_left_is_denied_by_policy(core: Core) -> None:
    agent = await core.agent(max_calls=1)
    assert (await agent.call())[0] == 200
    core.policy.answer = DENY
    status, body = await agent.call()
    assert (status, body["error"]) == (403, "policy_denied")
    core.policy.answer = GateError("policy_engine_timeout")
    assert await agent.call() == (503, {"error": "policy_engine_timeout"})
    for answer in (ALLOW, HOLD):
        core.policy.answer = answer
        assert await agent.call(body={"n": 2}) == (403, {"error": "budget_exhausted"})
    codes = [event.get("error_code") for event in await core.events(event_type="ActionCall")]
    assert codes == ["budget_exhausted", "budget_exhausted", "policy_engine_timeout", "policy_denied", None]


async def test_the_providers_own_words_are_answered_where_the_manifest_says_so_and_nowhere_else(tmp_path: Path) -> None:
    for expose, words in ((True, '"invalid: it is closed"'), (False, None)):
        async with front_core(tmp_path / str(expose), action("complains", expose_provider_error=expose)) as core:
            answer = await (await core.agent()).send("POST", "/v1/actions/complains/execute", {"n": 1})
            assert (answer.status, dict(answer.headers).get("X-Provider-Error")) == (502, words)


async def test_draining_and_overload_are_refused_before_anything_is_asked(core: Core) -> None:
    agent = await core.agent()
    core.client.asked.clear()
    with core.services.admission.enter():
        object.__setattr__(core.services.admission, "_ceiling", 1)
        answer = await agent.send("POST", PATH, {"n": 1})
        assert (answer.status, dict(answer.headers)["Retry-After"]) == (503, "1")
    core.services.admission.drain()
    assert await agent.call() == (503, {"error": "draining"})
    # but for the pulses, which ask once a second
    assert set(core.client.asked) <= {"ReadStore", "ReadLedger"}
