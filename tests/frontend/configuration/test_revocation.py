"""Revoking everything at once: what dies, when, whatever else breaks, and what lives on."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import jwt
import msgspec
import pytest
import trio

from frontend.auth.epochs import Epochs
from frontend.errors import GateError
from frontend.evidence.ledger import LedgerUnavailable
from frontend.stores.interface import StoreUnavailable
from tests.support.front_core import HOLD, Agent, Core, does_and_says, front_core, lose_store, refuses, then
from tests.support.held_calls import held, state_of
from tests.support.worker_desk import until

REVOKE = ("POST", "/v1/admin/revoke-all")
EPOCH = ("GET", "/v1/admin/epoch")
FULL = LedgerUnavailable("the disk is full")
GONE = StoreUnavailable("gone")
DEAD = (401, {"error": "invalid_lease"})


class Answers:
    """What came of requests that were started."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self.found: dict[str, Any] = {}

    def start(self, name: str, ask: Callable[[], Awaitable[Any]]) -> None:
        async def keep() -> None:
            self.found[name] = await ask()

        self._nursery.start_soon(keep)

    async def of(self, name: str) -> Any:
        await until(lambda: name in self.found)
        return self.found[name]


async def told(core: Core) -> list[tuple[str, str | None, str | None]]:
    """What evidence says of revocations, oldest first."""
    return [
        (event["decision"], event.get("error_code"), event.get("reason"))
        for event in reversed(await core.events(event_type="AdminRevokeAll"))
    ]


async def test_every_lease_of_before_is_dead_everywhere_and_new_ones_live(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        agent, approval_id = await held(core)
        core.policy.answer = msgspec.structs.replace(HOLD, requires_approval=False)
        other = await core.agent()
        _, done = await other.call()
        assert await core.operate(*EPOCH) == (200, {"current_epoch": 0})
        assert await core.operate(*REVOKE) == (200, {"previous_epoch": 0, "current_epoch": 1})
        assert await core.operate(*EPOCH) == (200, {"current_epoch": 1})
        assert await other.call() == DEAD
        for caller, path in (
            (agent, f"/v1/approvals/{approval_id}/poll"),
            (other, f"/v1/receipts/{done['receipt_id']}"),
        ):
            answer = await caller.send("GET", path)
            assert (answer.status, msgspec.json.decode(answer.body)) == DEAD
        fresh = await core.agent()
        assert jwt.decode(fresh.token, options={"verify_signature": False})["epoch"] == 1
        assert (await fresh.call())[0] == 200
        (event,) = await core.events(event_type="AdminRevokeAll")
        assert (event["principal"], event["decision"]) == ("operator:op", "allow")
        assert event["operator_sender_binding"] == core.operator_key.jkt
        assert event["operator_proof_jti"]
        assert event["reason"] == "the epoch was raised from 0 to 1"


async def test_a_plan_that_was_held_before_can_not_be_approved_any_more(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        agent, approval_id = await held(core)
        assert (await core.operate(*REVOKE))[0] == 200
        status, body = await core.operate("POST", f"/v1/approvals/{approval_id}/approve")
        assert (status, body["error"]) == (409, "plan_integrity")
        assert await state_of(core, approval_id) == "failed"
        assert await core.ledger.intent_of_approval(approval_id) is None
        assert await core.remaining(agent) == 3


# ------------------------------------------------------------------ calls that are on their way


async def waits_for_a_worker(core: Core) -> None:
    await until(lambda: core.services.pools.census()["compute"].waiting == 1)


async def test_a_call_that_has_checked_in_and_waits_for_a_worker_is_not_dispatched(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0) as core, trio.open_nursery() as nursery:
        agent, answers = await core.agent(max_calls=3), Answers(nursery)
        answers.start("call", agent.call)
        await waits_for_a_worker(core)
        assert (await core.operate(*REVOKE))[0] == 200
        core.desk.start()
        assert await answers.of("call") == DEAD
        (event,) = await core.events(event_type="ActionCall")
        assert (event["decision"], event["error_code"]) == ("deny", "invalid_lease")
        assert "epoch 0 of the call, 1 is in force" in event["reason"]
        assert await core.ledger.unresolved(10) == []
        assert await core.remaining(agent) == 3, "nothing ran, so the call was given back"
        assert (await (await core.agent()).call())[0] == 200, "and the worker serves others"


async def test_a_call_that_policy_is_still_deciding_is_not_dispatched(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        agent = await core.agent()

        async def revoke() -> None:
            core.policy.before = trio.lowlevel.checkpoint
            assert (await core.operate(*REVOKE))[0] == 200

        core.policy.before = revoke
        assert await agent.call() == DEAD
        assert [event["decision"] for event in await core.events(event_type="ActionCall")] == ["deny"]


async def test_an_approved_plan_that_waits_for_a_worker_is_not_dispatched(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0) as core, trio.open_nursery() as nursery:
        agent, approval_id = await held(core)
        answers = Answers(nursery)
        answers.start("approve", lambda: core.operate("POST", f"/v1/approvals/{approval_id}/approve"))
        await waits_for_a_worker(core)
        assert (await core.operate(*REVOKE))[0] == 200
        core.desk.start()
        status, body = await answers.of("approve")
        assert (status, body["error"]) == (409, "plan_integrity")
        assert await state_of(core, approval_id) == "failed"
        assert await core.remaining(agent) == 3


async def test_another_front_on_the_same_store_dispatches_nothing_of_before_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontend.auth.epochs.FRESH_SECONDS", -1)  # however fast the worker comes
    async with (
        front_core(tmp_path) as core,
        front_core(tmp_path, workers=0, front_id="front-2-b") as second,
        trio.open_nursery() as nursery,
    ):
        agent, answers = await second.agent(), Answers(nursery)
        answers.start("call", agent.call)
        await waits_for_a_worker(second)
        assert (await core.operate(*REVOKE))[0] == 200
        second.desk.start()
        assert await answers.of("call") == DEAD
        assert await second.operate(*EPOCH) == (200, {"current_epoch": 1})


class Slow:
    """An operation that waits, before it is done, until it is let go."""

    def __init__(self) -> None:
        self.reached, self.may_go = trio.Event(), trio.Event()

    async def __call__(self, operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.reached.set()
        await self.may_go.wait()
        return await operation(*args, **kwargs)


async def test_the_answer_comes_when_nothing_of_before_can_begin_any_more(tmp_path: Path) -> None:
    """A grant that was signed in this very moment is one of before the revocation: it runs, and is waited for."""
    async with front_core(tmp_path) as core, trio.open_nursery() as nursery:
        agent, answers, slow = await core.agent(), Answers(nursery), Slow()
        core.ledger.faults["begin"] = slow
        answers.start("call", agent.call)
        await slow.reached.wait()
        answers.start("revoke", lambda: core.operate(*REVOKE))
        with trio.fail_after(60):
            while not await told(core):  # noqa: ASYNC110
                await trio.sleep(0.002)
        assert await core.store.epoch() == 1, "the revocation is in force and in evidence"
        for _ in range(20):
            await trio.lowlevel.checkpoint()
        assert answers.found == {}
        slow.may_go.set()
        assert (await answers.of("call"))[0] == 200
        assert await answers.of("revoke") == (200, {"previous_epoch": 0, "current_epoch": 1})


async def test_calls_of_the_new_epoch_keep_nobody_waiting(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0) as core:
        epochs = core.services.epochs
        async with epochs.granting(0, "invalid_lease"):
            with trio.move_on_after(0.05) as waited:
                await epochs.older_grants_done(1)
            assert waited.cancelled_caught
            with trio.fail_after(60):
                await epochs.older_grants_done(0)


async def test_a_grant_that_never_ends_does_not_keep_the_operator_waiting_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontend.auth.epochs.GRANTS_SECONDS", 0.1)
    async with front_core(tmp_path) as core, trio.open_nursery() as nursery:
        agent, answers, slow = await core.agent(), Answers(nursery), Slow()
        core.ledger.faults["begin"] = slow
        answers.start("call", agent.call)
        await slow.reached.wait()
        assert (await core.operate(*REVOKE))[0] == 200
        slow.may_go.set()
        await answers.of("call")


async def test_a_call_that_waited_for_nothing_costs_no_further_look_into_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontend.auth.epochs.FRESH_SECONDS", 60.0)
    async with front_core(tmp_path) as core:
        agent = await core.agent(max_calls=1)
        core.store.asked.clear()
        assert (await agent.call())[0] == 200
        # but for the pulse, which asks once a second
        assert [one for one in core.store.asked if one not in ("pending_count", "epoch")] == [
            "check_in", "budget_read", "budget_debit",
        ]  # fmt: skip
        assert core.store.asked.count("epoch") <= core.store.asked.count("pending_count")


async def test_a_store_that_can_not_be_asked_at_the_last_moment_dispatches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontend.auth.epochs.FRESH_SECONDS", -1)
    async with front_core(tmp_path) as core:
        agent = await core.agent(max_calls=2)
        core.store.faults["epoch"] = refuses(GONE)
        assert await agent.call() == (503, {"error": "replay_cache_unavailable"})
        core.store.faults.clear()
        assert await core.remaining(agent) == 2
        assert await core.ledger.unresolved(10) == []
        assert (await agent.call())[0] == 200


# ------------------------------------------------------------------ what breaks meanwhile


async def refused_as(agent: Agent, code: str) -> bool:
    return bool((await agent.call())[1].get("error") == code)


async def test_a_ledger_that_fails_does_not_keep_leases_alive(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        agent = await core.agent()
        core.ledger.faults["append"] = refuses(FULL)
        assert await core.operate(*REVOKE) == (500, {"error": "evidence_persistence_failed"})
        core.ledger.faults.clear()
        assert await refused_as(agent, "invalid_lease")
        assert await told(core) == []
        assert await core.operate(*REVOKE) == (200, {"previous_epoch": 1, "current_epoch": 2})
        assert [one[0] for one in await told(core)] == ["allow"]


async def test_a_clock_that_fails_does_not_keep_leases_alive(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        agent = await core.agent()
        core.store.faults["raise_epoch"] = then(lambda: setattr(core.clock, "is_broken", True))
        assert await core.operate(*REVOKE) == (503, {"error": "clock_error"})
        core.clock.is_broken = False
        assert await refused_as(agent, "invalid_lease")


async def test_a_store_that_fails_is_told_and_in_evidence(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        agent = await core.agent()
        core.store.faults |= {"raise_epoch": refuses(GONE), "epoch": refuses(GONE)}
        assert await core.operate(*REVOKE) == (503, {"error": "epoch_store_unavailable"})
        assert await core.operate(*EPOCH) == (503, {"error": "epoch_store_unavailable"})
        core.store.faults.clear()
        assert await told(core) == [("error", "epoch_store_unavailable", "gone")]
        assert (await agent.call())[0] == 200


async def test_a_store_that_did_it_and_says_it_did_not_has_revoked(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        agent = await core.agent()
        core.store.faults["raise_epoch"] = does_and_says(GONE)
        core.ledger.faults["append"] = refuses(FULL)
        assert await core.operate(*REVOKE) == (503, {"error": "epoch_store_unavailable"})
        core.store.faults.clear()
        core.ledger.faults.clear()
        assert await refused_as(agent, "invalid_lease")
        assert await core.operate(*REVOKE) == (200, {"previous_epoch": 1, "current_epoch": 2})


async def test_a_front_that_leaves_in_the_middle_still_leaves_the_evidence(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        with trio.CancelScope() as scope:
            core.store.faults["raise_epoch"] = then(scope.cancel)
            await core.operate(*REVOKE)
        assert [one[0] for one in await told(core)] == ["allow"]


async def test_revocations_at_once_each_raise_the_epoch(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0) as core, trio.open_nursery() as nursery:
        answers = Answers(nursery)
        for number in range(8):
            answers.start(str(number), lambda: core.operate(*REVOKE))
        found = [(await answers.of(str(number)))[1]["current_epoch"] for number in range(8)]
        assert sorted(found) == list(range(1, 9))
        assert len(await told(core)) == 8


async def test_a_lease_that_is_issued_without_a_store_carries_what_was_raised(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        await core.agent()
        assert (await core.operate(*REVOKE))[0] == 200
        core.store.faults["epoch"] = refuses(GONE)
        agent = await core.agent()
        core.store.faults.clear()
        assert (await agent.call())[0] == 200


async def test_a_front_that_starts_again_has_not_forgotten(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0) as core:
        agent = await core.agent()
        assert (await core.operate(*REVOKE))[0] == 200
    async with front_core(tmp_path, front_id="front-1-b") as core:
        assert await core.operate(*EPOCH) == (200, {"current_epoch": 1})
        agent.core = core
        assert await agent.call() == DEAD


async def test_a_store_that_was_lost_brings_no_revoked_lease_back(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0) as core:
        revoked = await core.agent()
        assert (await core.operate(*REVOKE))[0] == 200
        last = await core.agent()
    lose_store(tmp_path)
    async with front_core(tmp_path) as core:
        await core.services.revocation.catch_up()
        for agent in (revoked, last):  # the replay cache is lost too: proofs of either could be shown again
            agent.core = core
            assert await agent.call() == DEAD
        assert (await (await core.agent()).call())[0] == 200
        (event, _) = await core.events(event_type="AdminRevokeAll")
        assert event["principal"] == "gateway"
        assert event["change"] == {"previous_epoch": 0, "current_epoch": 2}
        assert event["reason"] == "the epoch was raised from 0 to 2, since the store had lost 1"
        await core.services.revocation.catch_up()
        assert await core.store.epoch() == 2, "what is whole is left alone"
    lose_store(tmp_path)
    async with front_core(tmp_path, workers=0) as core:
        await core.services.revocation.catch_up()
        assert await core.store.epoch() == 3


async def test_a_lost_epoch_is_raised_though_its_evidence_fails_and_not_guessed_without_evidence(
    tmp_path: Path,
) -> None:
    async with front_core(tmp_path, workers=0) as core:
        assert (await core.operate(*REVOKE))[0] == 200
    lose_store(tmp_path)
    async with front_core(tmp_path, workers=0) as core:
        core.ledger.faults["query"] = refuses(FULL)
        with pytest.raises(LedgerUnavailable):
            await core.services.revocation.catch_up()
        core.ledger.faults = {"append": refuses(FULL)}
        await core.services.revocation.catch_up()
        core.ledger.faults.clear()
        assert await core.store.epoch() == 2
        assert len(await told(core)) == 1


async def test_a_refusal_by_epoch_names_both(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0) as core:
        epochs = Epochs(core.store)  # type: ignore[arg-type]
        with pytest.raises(GateError) as refusal:
            async with epochs.granting(3, "plan_integrity"):
                raise AssertionError("nothing is granted")
        assert (refusal.value.code, refusal.value.cause) == ("plan_integrity", "epoch 3 of the call, 0 is in force")
