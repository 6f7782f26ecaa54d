"""Callers who have proven nothing: counted all, told of once a minute. Callers who have: an event each."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from msgspec.structs import replace

from frontend.calls.refusals import RefusedRequest
from frontend.deadlines import CallDeadlines
from frontend.errors import GateError
from frontend.http.answers import Answer
from frontend.notary.errors import NotaryUnavailable
from frontend.telemetry.lines import MAX_LINES
from ipc.evidence.events import ACTION_CALL
from tests.support.front_core import DENY, HOLD, Agent, Core, action, front_core, refuses, signed
from tests.support.logs import capture_logs
from tests.support.patience import PATIENT
from tests.support.proofs import Key
from tests.support.worker_desk import until

PATH = "/v1/actions/echo/execute"
HOUR = replace(PATIENT, calls=CallDeadlines(refusal_seconds=3600.0, lines_seconds=3600.0))

pytestmark = pytest.mark.front(workers=0, deadlines=HOUR)
NAMELESS = "i-am-a-text-of-the-caller"
Headers = list[tuple[str, str]]
FLOOD = 30


async def send(core: Core, headers: Headers, uid: int | None = 7, path: str = PATH, body: bytes = b'{"n":1}') -> Answer:
    return await core.ask("POST", path, body, headers, uid=uid)


async def refused(core: Core, headers: Headers, uid: int | None = 7, path: str = PATH, status: int = 401) -> str:
    answer = await send(core, headers, uid, path)
    assert answer.status == status, answer.body
    return dict(answer.headers)["X-Trace-Id"]


def of_the_front(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The log without checkpoints, which the notary, a thread of this process, makes on its own schedule."""
    return [one for one in lines if one["event"] != "checkpoint"]


async def calls(core: Core) -> list[dict[str, Any]]:
    return (await core.events(event_type="ActionCall"))[::-1]


def nothing(_core: Core, _agent: Agent) -> Headers:
    return []


def no_lease(_core: Core, _agent: Agent) -> Headers:
    return [("authorization", "DPoP x"), ("dpop", "y")]


def stolen_lease(_core: Core, agent: Agent) -> Headers:
    return signed(Key(), "POST", PATH, agent.token)


def old_lease(core: Core, agent: Agent) -> Headers:
    core.clock.ahead = 400
    return signed(agent.key, "POST", PATH, agent.token, now=core.clock.right)


@pytest.mark.parametrize(
    ("headers", "code", "names"),
    [(nothing, "missing_auth_header", False), (no_lease, "invalid_lease", False),
     (stolen_lease, "invalid_dpop", True), (old_lease, "lease_expired", False)],
)  # fmt: skip
async def test_a_flood_of_calls_that_prove_nothing_leaves_two_events_and_every_one_is_counted(
    core: Core, headers: Callable[[Core, Agent], Headers], code: str, names: bool
) -> None:
    agent = await core.agent()
    with capture_logs() as lines:
        traces = [await refused(core, headers(core, agent)) for _ in range(FLOOD)]
        (first,) = await calls(core)
        await core.services.refusals.tell_due()
    assert (first["trace_id"], first["decision"], first["error_code"]) == (traces[0], "deny", code)
    assert (first["attempts"], first["action_id"]) == ({"count": 1, "uid": 7}, "echo")
    (_, after) = await calls(core)
    assert (after["attempts"], after["error_code"]) == ({"count": FLOOD - 1, "uid": 7}, code)
    for event in (first, after):
        assert event["principal"] == ("dev:anonymous" if names else "uid:7")
        assert event.get("session_id") == (agent.session_id if names else None)
    lines = of_the_front(lines)
    assert [(one.get("code"), one.get("refused_with")) for one in lines] == [(code, None), (None, code)]
    assert core.services.metrics.calls.value("echo", "deny", code) == FLOOD


async def test_a_request_that_is_sent_again_and_again_asks_the_notary_once(tmp_path: Path) -> None:
    async with front_core(tmp_path, deadlines=HOUR) as core:
        agent = await core.agent()
        recorded = signed(agent.key, "POST", PATH, agent.token)
        assert (await send(core, recorded)).status == 200
        for _ in range(3):
            await refused(core, recorded)
        core.client.asked.clear()
        for _ in range(FLOOD):
            await refused(core, recorded)
        # but for the pulses, which ask once a second
        assert set(core.client.asked) <= {"ReadStore", "ReadLedger"}
        await core.services.refusals.tell_due()
        told = [one for one in await calls(core) if one.get("error_code") == "replay_detected"]
        assert [one.get("attempts", {}).get("count") for one in told] == [None, 1, FLOOD + 1]
        assert {one["session_id"] for one in told} == {agent.session_id}
        assert (await agent.call())[0] == 200, "the session has its requests left"


async def test_callers_who_have_proven_who_they_are_keep_an_event_for_each_refusal(core: Core) -> None:
    agent = await core.agent()
    core.policy.answer = DENY
    traces = [dict((await agent.send("POST", PATH, {"n": 1})).headers)["X-Trace-Id"] for _ in range(5)]
    await core.raise_epoch()
    traces += [dict((await agent.send("POST", PATH, {"n": 1})).headers)["X-Trace-Id"] for _ in range(5)]
    told = await calls(core)
    assert [one["trace_id"] for one in told] == traces
    assert [one["error_code"] for one in told] == ["policy_denied"] * 5 + ["invalid_lease"] * 5
    assert not [one for one in told if "attempts" in one]


async def test_users_and_codes_are_told_apart_and_what_differs_is_left_out(core: Core) -> None:
    one, other = await core.agent(), await core.agent()
    for agent in (one, one, other):
        await refused(core, stolen_lease(core, agent))
    await refused(core, [], uid=8)
    await refused(core, [], uid=None)
    told = await calls(core)
    assert [each["attempts"].get("uid") for each in told] == [7, 8, None]
    await core.services.refusals.tell_due()
    last = (await calls(core))[-1]
    assert last["attempts"] == {"count": 2, "uid": 7}
    assert (last["principal"], "session_id" in last, "lease_jti" in last) == ("dev:anonymous", False, False)


async def test_refusals_without_an_event_are_counted_in_the_next_event(core: Core) -> None:
    core.client.faults["Refuse"] = refuses(NotaryUnavailable("the disk is full"))
    with capture_logs() as lines:
        for _ in range(3):
            await refused(core, [])
        await core.services.refusals.tell_due()
    assert [one["count"] for one in lines if one["event"] == "refusals left no event"] == [1, 3]
    core.client.faults.clear()
    await core.services.refusals.tell_due()
    assert [one["attempts"]["count"] for one in await calls(core)] == [3]


async def test_counted_refusals_are_reported_after_each_minute(tmp_path: Path) -> None:
    at_once = replace(PATIENT, calls=CallDeadlines(refusal_seconds=0.0, upkeep_seconds=0.002))
    async with front_core(tmp_path, workers=0, deadlines=at_once) as core, trio.open_nursery() as nursery:
        nursery.start_soon(core.services.refusals.run)
        for told in (2, 4):
            core.client.faults["Refuse"] = refuses(NotaryUnavailable("the disk is full"))
            await refused(core, [])
            await refused(core, [], uid=8)
            core.client.faults.clear()
            with trio.fail_after(60):
                while len(await calls(core)) < told:
                    await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()


async def test_the_first_refusal_is_in_evidence_though_its_caller_leaves_meanwhile(core: Core) -> None:
    with trio.CancelScope() as caller:

        async def leaves(operation: Any, args: Any, kwargs: Any) -> Any:
            caller.cancel()
            return await operation(*args, **kwargs)

        core.client.faults["Refuse"] = leaves
        await send(core, [])
    assert [one["attempts"]["count"] for one in await calls(core)] == [1]


@pytest.mark.parametrize(("code", "decision"), [("internal_error", "error"), ("missing_auth_header", "deny")])
async def test_an_internal_error_is_no_denial(core: Core, code: str, decision: str) -> None:
    await core.services.refusals.note(RefusedRequest(ACTION_CALL, 7, GateError(code)))
    assert [(one["decision"], one["error_code"]) for one in await calls(core)] == [(decision, code)]


async def test_the_last_round_waits_for_one_that_is_under_way(core: Core) -> None:
    for _ in range(3):
        await refused(core, [])
    entered, go_on = trio.Event(), trio.Event()

    async def slow(operation: Any, args: Any, kwargs: Any) -> Any:
        entered.set()
        await go_on.wait()
        return await operation(*args, **kwargs)

    core.client.faults["Refuse"] = slow
    ended: list[str] = []

    async def round_of(name: str) -> None:
        await core.services.refusals.tell_due()
        ended.append(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(round_of, "upkeep")
        await entered.wait()
        nursery.start_soon(round_of, "end")
        await until(lambda: core.services.refusals._telling.statistics().tasks_waiting == 1)
        assert ended == []
        go_on.set()
    assert [one["attempts"]["count"] for one in await calls(core)] == [1, 2]


async def test_an_id_that_names_no_action_stands_nowhere_in_the_ledger(core: Core) -> None:
    agent, path = await core.agent(), f"/v1/actions/{NAMELESS}/execute"
    await refused(core, [], path=path)
    await refused(core, signed(agent.key, "POST", path, agent.token), path=path, status=404)
    recorded = signed(agent.key, "POST", path, agent.token)
    for status in (404, 401, 401):
        await refused(core, recorded, path=path, status=status)
    await core.raise_epoch()
    await refused(core, signed(agent.key, "POST", path, agent.token), path=path)
    await core.services.refusals.tell_due()
    told = await calls(core)
    assert len(told) == 6
    assert all("action_id" not in one for one in told)
    assert NAMELESS not in str(await core.events())
    (named, _) = [one for one in told if one.get("error_code") == "action_not_found"]
    assert named["reason"].startswith(f"no registered action: an id of {len(NAMELESS)} characters, sha256:")
    text = (await core.ask("GET", "/metrics", b"", _of_operator(core))).body.decode()
    assert NAMELESS not in text


async def test_lines_of_one_user_and_code_are_few_and_the_rest_is_a_number(core: Core) -> None:
    agent = await core.agent()
    core.policy.answer = DENY
    with capture_logs() as lines:
        for _ in range(MAX_LINES + 5):
            await agent.call()
        core.services.refusals.lines.tell_due(0.0)
        await agent.call("nothing")
        core.services.refusals.lines.tell_due(float("inf"))
        await agent.call()
    assert [one["code"] for one in lines if one.get("decision")] == [
        *["policy_denied"] * MAX_LINES, "action_not_found", "policy_denied"
    ]  # fmt: skip
    (left,) = [one for one in lines if one["event"] == "log lines of refusals were left out"]
    assert (left["code"], left["left_out"]) == ("policy_denied", 5)
    assert len(await calls(core)) == MAX_LINES + 7, "evidence leaves nothing out"


async def test_a_call_that_ran_and_one_that_waits_have_their_lines_however_many_there_are(tmp_path: Path) -> None:
    async with front_core(tmp_path, action(), action("complains"), deadlines=HOUR) as core:
        agent = await core.agent()
        with capture_logs() as lines:
            for _ in range(MAX_LINES + 1):
                assert (await agent.call("complains"))[0] == 502
            core.policy.answer = HOLD
            assert (await agent.call())[0] == 202
        told = [(one["decision"], one.get("code")) for one in lines if one.get("decision")]
        assert told == [*[("error", "action_execution_failed")] * (MAX_LINES + 1), ("pending_approval", None)]


async def test_a_cause_is_always_logged_and_lines_without_one_are_bounded(core: Core) -> None:
    with capture_logs() as lines:
        core.client.faults["UseProof"] = refuses(NotaryUnavailable("gone"))
        for _ in range(MAX_LINES + 5):
            answer = await core.ask("GET", "/v1/approvals", b"", _of_operator(core, "/v1/approvals"))
            assert answer.status == 503
        assert len([one for one in lines if one.get("cause") == "gone"]) == MAX_LINES + 5
        lines.clear()
        core.services.admission.drain()
        for _ in range(MAX_LINES + 5):
            await refused(core, [], status=503)
        assert len(of_the_front(lines)) == MAX_LINES
        core.services.refusals.lines.tell_due(float("inf"))
        last = of_the_front(lines)[-1]
        assert (last["code"], last["left_out"], last["uid"]) == ("draining", 5, 7)


def _of_operator(core: Core, path: str = "/metrics") -> Headers:
    return signed(core.operator_key, "GET", path, "key-op-0123456789abcdef0123456789abcdef")


def test_unauthenticated_requests_are_logged_once_a_minute() -> None:
    assert CallDeadlines().refusal_seconds == 60.0, "SECURITY.md"
