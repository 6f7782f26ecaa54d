"""A front's notifications: real calls, real decisions, one message each."""

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import trio
from standardwebhooks import Webhook

from frontend.notary.errors import NotaryUnavailable
from frontend.policy.question import Decision
from ipc.settings import DEFAULT_KINDS
from tests.frontend.webhooks.samples import SECRET, event_ids, hook, kept, notifying_core, settled
from tests.support.front_core import ALLOW, DENY, HOLD, Agent, Core, refuses, signed, then
from tests.support.webhook_receiver import Receiver
from tests.support.worker_desk import until

Drive = Callable[[Core, Agent], Awaitable[Any]]


async def hears(receiver: Receiver, kind: str, after: int) -> None:
    await until(lambda: kind in [one.kind for one in receiver.received[after:]])


async def hold_of(core: Core, agent: Agent, number: int = 1) -> str:
    core.policy.answer = HOLD
    status, answer = await agent.call(body={"n": number})
    core.policy.answer = ALLOW
    assert status == 202
    return str(answer["approval_id"])


def calls(action_id: str = "echo", policy: Decision = ALLOW) -> Drive:
    async def drive(core: Core, agent: Agent) -> None:
        core.policy.answer = policy
        await agent.call(action_id)
        core.policy.answer = ALLOW

    return drive


def settles(verb: str) -> Drive:
    async def drive(core: Core, agent: Agent) -> None:
        await core.operate("POST", f"/v1/approvals/{await hold_of(core, agent)}/{verb}")

    return drive


async def expires(core: Core, agent: Agent) -> None:
    await hold_of(core, agent)
    path = core.services.settings.state_dir + "/ledger.sqlite3"
    with closing(sqlite3.connect(path)) as store, store:
        past = "UPDATE approvals SET expires_at = expires_at - 400 WHERE session_id = ?"
        store.execute(past, (agent.session_id,))
    await core.services.upkeep.expiry.expire()


def operates(path: str) -> Drive:
    async def drive(core: Core, agent: Agent) -> None:
        assert (await core.operate("POST", path))[0] == 200

    return drive


DRIVES: list[tuple[Drive, str, dict[str, Any]]] = [
    # the steps, the type of the last message, some of its data
    (calls(), "action.executed", {"decision": "allow", "action_id": "echo", "verification_outcome": ...,
                                  "receipt_id": ..., "grant_id": ..., "request_hash": ..., "policy_rule": "allow"}),
    (calls("die"), "action.failed", {"decision": "error", "error_code": "action_execution_failed", "receipt_id": ...}),
    (calls(policy=DENY), "action.denied", {"decision": "deny", "error_code": "policy_denied", "policy_rule": "acl",
                                           "deny_reason": "not you", "risk_level": "low", "policy_version": "p1"}),
    (calls("nothing"), "action.denied", {"error_code": "action_not_found", "action_id": None}),
    (calls(policy=HOLD), "approval.pending", {"decision": "pending_approval", "approval_id": ..., "session_id": ...}),
    (settles("approve"), "action.executed", {"approval_id": ..., "approved_by": "op", "receipt_id": ...}),
    (settles("deny"), "approval.denied", {"approval_id": ..., "approved_by": "op", "decision": "deny"}),
    (expires, "approval.expired", {"approval_id": ..., "decision": "deny", "session_id": ...}),
    (operates("/v1/admin/revoke-all"), "revocation",
     {"principal": "operator:op", "change": {"previous_epoch": 0, "current_epoch": 1}}),
    (operates("/v1/admin/drain"), "gateway.draining", {"principal": "operator:op", "decision": "allow"}),
]  # fmt: skip


async def test_every_kind_comes_of_its_event_with_what_identifies_it(tmp_path: Path, receiver: Receiver) -> None:
    async with notifying_core(tmp_path, receiver) as core:
        agents = [await core.agent() for _ in DRIVES]
        for agent, (drive, kind, data) in zip(agents, DRIVES, strict=True):
            before = len(receiver.received)
            await drive(core, agent)
            await hears(receiver, kind, before)
            await settled(tmp_path)
            (told,) = [one.json for one in receiver.received[before:] if one.kind == kind]
            shown = {name: told["data"].get(name) for name in data}
            assert {**shown, **{name: ... for name in data if data[name] is ... and shown[name]}} == data
            assert told["data"]["dev_mode"] is True
            (event,) = [one for one in await core.events() if one["event_id"] == told["id"]]
            assert (told["timestamp"], told["gateway_version"]) == (event["timestamp"], core.services.settings.version)
            assert {name: event[name] for name in told["data"]} == told["data"]
            if not core.services.pools.census()["compute"].members:
                core.desk.start()
                await until(lambda: core.desk.idle() == 1)
        for one in receiver.received:
            assert Webhook(SECRET).verify(one.body, one.headers) == one.json
            assert one.headers["webhook-id"] == one.json["id"] == one.json["data"]["event_id"]
        heard = {one.kind for one in receiver.received}
        assert heard == set(DEFAULT_KINDS) - {"budget.exhausted"}
        assert len(set(receiver.ids)) == len(receiver.ids)


async def test_an_endpoint_hears_once_of_what_it_asked_for_and_first_of_the_most_special(
    tmp_path: Path, receiver: Receiver
) -> None:
    wishes = {
        "both": ("action.denied", "budget.exhausted"), "special": ("budget.exhausted",), "common": ("action.denied",),
        "other": ("revocation",),
    }  # fmt: skip
    hooks = [
        hook(name=name, events=events, url=f"http://hooks.test/{name}") for name, events in wishes.items()
    ]  # fmt: skip
    async with notifying_core(tmp_path, receiver, *hooks) as core:
        agent = await core.agent(max_calls=1)
        await agent.call()
        assert (await agent.call())[1] == {"error": "budget_exhausted"}
        await settled(tmp_path)
        (event_id,) = await event_ids(core, decision="deny")
    heard = sorted((one.line.split("/")[1].split(" ")[0], one.kind, one.json["id"]) for one in receiver.received)
    assert heard == [
        ("both", "budget.exhausted", event_id), ("common", "action.denied", event_id),
        ("special", "budget.exhausted", event_id),
    ]  # fmt: skip


async def test_who_is_not_authenticated_makes_nobody_hear(tmp_path: Path, receiver: Receiver) -> None:
    async with notifying_core(tmp_path, receiver) as core:
        agent = await core.agent()
        await core.ask("POST", "/v1/actions/echo/execute", {"n": 1})
        await agent.call(htm="GET")
        await core.ask("POST", "/v1/actions/echo/execute", {"n": 1}, [("authorization", "DPoP x"), ("dpop", "y")])
        assert len(await core.events(decision="deny")) == 3
        await agent.call()
        await settled(tmp_path)
    assert [one.kind for one in receiver.received] == ["action.executed"]


async def test_a_recorded_request_makes_nobody_hear_while_nobody_can_say_that_it_is_one(
    tmp_path: Path, receiver: Receiver
) -> None:
    async with notifying_core(tmp_path, receiver) as core:
        agent = await core.agent()
        path = "/v1/actions/echo/execute"
        recorded = signed(agent.key, "POST", path, agent.token, now=core.clock.right)
        await core.ask("POST", path, {"n": 1}, recorded)
        core.client.faults["Open"] = core.client.faults["Refuse"] = refuses(NotaryUnavailable("gone"))
        for _ in range(3):
            assert (await core.ask("POST", path, {"n": 1}, recorded)).status == 503
        core.client.faults.clear()
        assert await core.events(decision="error") == []
        await settled(tmp_path)
    assert [one.kind for one in receiver.received] == ["action.executed"]


async def test_the_same_call_again_while_it_waits_is_the_same_hold(tmp_path: Path, receiver: Receiver) -> None:
    async with notifying_core(tmp_path, receiver) as core:
        agent = await core.agent(max_calls=1)
        first = await hold_of(core, agent)
        assert [await hold_of(core, agent) for _ in range(2)] == [first] * 2  # the second by a budget that is used up
        events = await core.events(decision="pending_approval")
        assert [event.get("is_repeated") for event in events] == [True, True, None]
        await settled(tmp_path)
    assert [one.kind for one in receiver.received] == ["approval.pending"]


async def test_a_delivery_is_there_exactly_when_its_event_is(tmp_path: Path, receiver: Receiver) -> None:
    async def refuses(operation: Any, args: Any, kwargs: Any) -> Any:
        raise NotaryUnavailable("full")

    async with notifying_core(tmp_path, receiver) as core:
        agent = await core.agent()
        core.client.faults["Refuse"], core.policy.answer = refuses, DENY
        assert (await agent.call())[1] == {"error": "replay_cache_unavailable"}
        core.client.faults.clear()
        assert kept(tmp_path, "outbox") == await core.events(event_type="ActionCall") == []
        core.client.faults["Close"], core.policy.answer = refuses, ALLOW
        assert (await agent.call())[1] == {"error": "evidence_persistence_failed"}
        core.client.faults.clear()
        await agent.call()
        await settled(tmp_path)
        assert sorted(receiver.ids) == await event_ids(core, event_type="ActionCall")
        assert sorted(one.kind for one in receiver.received) == ["action.executed", "action.failed"]


async def test_what_was_written_and_not_heard_of_is_found_all_the_same(tmp_path: Path, receiver: Receiver) -> None:
    """The call is cut between the ledger's commit and its word."""
    async with notifying_core(tmp_path, receiver) as core:
        agent, scope = await core.agent(), trio.CancelScope()
        core.client.faults["Close"] = then(scope.cancel)
        with scope:
            await agent.call()
        core.client.faults.clear()
        await until(lambda: bool(receiver.received))
        assert receiver.ids == await event_ids(core, event_type="ActionCall")


async def test_without_endpoints_no_event_pays_for_them(tmp_path: Path) -> None:
    async with notifying_core(tmp_path, None, hook(disable=True)) as core:
        await (await core.agent()).call()
        assert kept(tmp_path, "outbox") == []
        assert (await core.operate("GET", "/v1/admin/status"))[1]["webhooks"] == {
            "active": False, "pending_deliveries": 0
        }  # fmt: skip
