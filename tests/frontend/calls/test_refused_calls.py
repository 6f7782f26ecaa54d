"""Refusals of calls: one event and one log line for each, also under faults."""

import gc
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
import trio.testing
from msgspec.structs import force_setattr

from frontend.calls.pipeline import UNCHECKED_EVENTS
from frontend.http.requests import CompleteBody, Request
from frontend.notary.errors import NotaryUnavailable
from frontend.policy.question import Decision, Question
from ipc.settings import LimitSettings
from tests.frontend.calls.test_refusals import of_the_front
from tests.support.front_core import ALLOW, DENY, HOLD, Agent, Core, action, front_core, refuses, signed
from tests.support.logs import capture_logs

pytestmark = pytest.mark.front(workers=0)

GONE = NotaryUnavailable("the database is gone", "store")
PATH = "/v1/actions/echo/execute"


class AllowsSinks:
    policy_version = "p1"

    def __init__(self, *sinks: str) -> None:
        self.sinks = sinks
        self.requested: tuple[str, ...] = ()

    async def decide(self, question: Question) -> Decision:
        await trio.lowlevel.checkpoint()
        self.requested = question.requested_sinks
        return msgspec.structs.replace(ALLOW, allowed_sinks=self.sinks)


async def test_a_call_is_denied_unless_policy_allows_every_effect_of_its_action(tmp_path: Path) -> None:
    async with front_core(tmp_path, action(declared_side_effects=["file_write"])) as core:
        agent = await core.agent()
        policy = AllowsSinks()
        force_setattr(core.services.pipeline.deciding, "policy", policy)
        status, body = await agent.call()
        reason = "policy does not allow every sink of this action"
        assert (status, body) == (403, {"error": "policy_denied", "deny_reason": reason})
        (event,) = await core.events(event_type="ActionCall")
        assert (event["deny_reason"], event["allowed_sinks"]) == (reason, [])
        assert policy.requested == ("file_write",)
        policy.sinks = ("another", *policy.requested)
        assert (await agent.call())[0] == 200


async def test_an_error_has_one_line_of_the_log(core: Core) -> None:
    agent = await core.agent()
    core.policy.answer = RuntimeError("ours")
    with capture_logs() as lines:
        assert (await agent.call())[0] == 500
    words = [one["event"].partition(" ")[0] for one in of_the_front(lines)]
    assert words == ["a", "error"], "what went wrong, and the call's"
    core.policy.answer, core.client.faults["ReadBudget"] = HOLD, refuses(GONE)
    budgeted = await core.agent(max_calls=1)
    with capture_logs() as lines:
        assert (await budgeted.call())[0] == 503
    assert [one.get("code") for one in of_the_front(lines)] == ["budget_store_unavailable"]


async def test_a_refusal_without_evidence_is_answered_with_the_failure_that_prevented_it(core: Core) -> None:
    agent = await core.agent()
    core.policy.answer = DENY
    core.client.faults["Refuse"] = refuses(GONE)
    with capture_logs() as lines:
        assert await agent.call() == (503, {"error": "replay_cache_unavailable"})
    lines = of_the_front(lines)
    assert [(one.get("code"), one.get("decision")) for one in lines] == [
        ("evidence_store_unavailable", None), ("replay_cache_unavailable", "error"),
    ]  # fmt: skip
    assert lines[0]["cause"] == "the database is gone"
    assert core.services.metrics.calls.value("echo", "error", "replay_cache_unavailable") == 1


def without_store(core: Core) -> None:
    """The key-value store is gone, and the ledger is not."""

    async def refuse(operation: Any, args: Any, kwargs: Any) -> Any:
        if args[0].proof is not None:
            raise GONE
        return await operation(*args, **kwargs)

    core.client.faults |= {"Refuse": refuse, "Open": refuses(GONE), "Hold": refuses(GONE)}


async def test_without_the_store_refused_calls_have_an_event_each_and_a_flood_is_counted(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        agent = await core.agent()
        without_store(core)
        traces = []
        for answer in (ALLOW, DENY, HOLD, *[ALLOW] * (UNCHECKED_EVENTS + 2)):
            core.policy.answer = answer
            refused = await agent.send("POST", PATH, {"n": 1})
            assert (refused.status, msgspec.json.decode(refused.body)) == (503, {"error": "replay_cache_unavailable"})
            traces.append(dict(refused.headers)["X-Trace-Id"])
        told = (await core.events(event_type="ActionCall"))[::-1]
        assert [one["trace_id"] for one in told] == traces[:UNCHECKED_EVENTS]
        assert {(one["decision"], one["error_code"], one["session_id"]) for one in told} == {
            ("error", "replay_cache_unavailable", agent.session_id)
        }
        await core.services.refusals.tell_due()
        (last, *_) = await core.events(event_type="ActionCall")
        assert last["attempts"] == {"count": len(traces) - UNCHECKED_EVENTS}
        assert last["session_id"] == agent.session_id


async def test_an_internal_error_without_evidence_stays_an_internal_error(core: Core) -> None:
    agent = await core.agent()
    core.client.faults["Refuse"] = refuses(GONE)
    core.policy.answer = RuntimeError("ours")
    assert await agent.call() == (500, {"error": "internal_error"})


async def test_a_refusal_by_rate_uses_no_proof_so_that_what_prevents_its_event_is_the_ledger(tmp_path: Path) -> None:
    few = LimitSettings(worker_wait_seconds=60.0, session_requests_per_second=1)
    async with front_core(tmp_path, limits=few) as core:
        core.services.authentication.sessions._sessions._clock = lambda: 1000.0  # stands still
        agent = await core.agent()
        assert (await agent.call())[0] == 200
        core.client.faults["Refuse"] = refuses(GONE)
        assert (await agent.call())[0] == 429
        assert core.services.metrics.calls.value("echo", "error", "evidence_persistence_failed") == 1
        assert core.services.metrics.calls_refused.value("rate") == 1


async def test_a_refused_call_is_its_session_s_to_pay_for_and_a_copy_of_one_is_not(tmp_path: Path) -> None:
    few = LimitSettings(worker_wait_seconds=60.0, session_requests_per_second=3)
    async with front_core(tmp_path, workers=0, limits=few) as core:
        core.services.authentication.sessions._sessions._clock = lambda: 1000.0  # stands still
        agent = await core.agent()
        await _copied(core, agent)
        assert core.services.metrics.calls.value("echo", "deny", "replay_detected") == 1
        assert [(await agent.call())[0] for _ in range(3)] == [403, 403, 429]


async def test_the_cause_of_a_refusal_is_in_evidence_where_there_is_one(core: Core) -> None:
    agent = await core.agent()
    for sent in ({"m": 1}, b"{"):
        _, body = await agent.call(body=sent)
        assert (await core.events(event_type="ActionCall"))[0]["reason"] == body["reason"]
    await _copied(core, agent)
    assert "reason" not in (await core.events(event_type="ActionCall"))[0]


async def _copied(core: Core, agent: Agent) -> None:
    core.policy.answer = DENY
    headers = signed(agent.key, "POST", PATH, agent.token)
    for status in (403, 401):
        answer = await core.dispatch.respond(Request("POST", PATH, headers=headers, body=CompleteBody(b'{"n":1}')))
        assert answer.status == status


async def test_a_refused_call_leaves_nothing_of_its_body_to_the_garbage_collector(tmp_path: Path) -> None:
    body: dict[str, Any] = {"text": [[]] * 2000}
    accepted = {"max_request_bytes": 16_384, "request_schema": {"type": "object", "required": ["n"]}}
    async with front_core(tmp_path, action(io=accepted)) as core:
        agent = await core.agent()
        assert (await agent.call(body=body))[0] == 422
        gc.collect()
        gc.disable()  # the pause of a collection would be every caller's
        try:
            for _ in range(3):
                assert (await agent.call(body=body))[0] == 422
            assert gc.collect() < 2000
        finally:
            gc.enable()
