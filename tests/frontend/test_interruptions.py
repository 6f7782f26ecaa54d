"""A call that something comes between, at any of its steps.

The clock breaks, the process ends, the store answers too late, an equal call runs beside it, the registry is
swapped: no call is paid for that did not run, and whatever ran is in evidence once.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from frontend.actions.registry import Registry
from frontend.stores.interface import StoreUnavailable
from tests.support.front_core import ALLOW, HOLD, Agent, Core, action, does_and_says, front_core, hangs, refuses, then

GONE = StoreUnavailable("the store is gone")


async def test_without_a_clock_nothing_is_allowed_and_nothing_is_lost(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        agent = await core.agent(max_calls=3)

        async def breaks_the_clock() -> None:
            core.clock.is_broken = True

        for answer in (ALLOW, HOLD):
            core.policy.answer, core.policy.before = answer, breaks_the_clock
            assert await agent.call() == (503, {"error": "clock_error"})
            assert await agent.call() == (503, {"error": "clock_error"})
            core.clock.is_broken = False
        assert await core.remaining(agent) == 3
        assert await core.store.approval_list(None, 10) == []
        core.policy.answer, core.policy.before = ALLOW, trio.lowlevel.checkpoint
        assert (await agent.call())[0] == 200


@pytest.mark.parametrize("when", ["budget_debit", "approval_hold"])
async def test_a_clock_that_breaks_between_two_steps_costs_no_call_and_leaves_no_hold(
    tmp_path: Path, when: str
) -> None:
    async with front_core(tmp_path) as core:
        agent = await core.agent(max_calls=3)
        core.policy.answer = HOLD
        core.store.faults[when] = then(lambda: setattr(core.clock, "is_broken", True))
        assert await agent.call() == (503, {"error": "clock_error"})
        core.clock.is_broken = False
        assert await core.remaining(agent) == 3
        assert await core.store.approval_list(("pending",), 10) == []


# ------------------------------------------------------------------ the end of the process, at every step


async def cut_call(core: Core, agent: Agent, arrange: Callable[[trio.CancelScope], None]) -> None:
    """A call whose task is cancelled, as it is at the end of drain."""
    with trio.fail_after(60), trio.CancelScope() as scope:
        arrange(scope)
        await agent.call("echo")
        raise AssertionError("the call was answered")
    core.store.faults.clear()
    core.ledger.faults.clear()


@pytest.mark.parametrize("held", [False, True], ids=["allowed", "held"])
@pytest.mark.parametrize(
    ("part", "operation"),
    [("store", "check_in"), ("store", "budget_read"), ("store", "budget_debit"), ("store", "approval_hold")],
)
async def test_a_call_that_is_cut_before_its_dispatch_is_given_back_and_in_evidence(
    tmp_path: Path, held: bool, part: str, operation: str
) -> None:
    if operation == "approval_hold" and not held:
        return
    async with front_core(tmp_path) as core:
        agent = await core.agent(max_calls=3)
        core.policy.answer = HOLD if held else ALLOW
        await cut_call(core, agent, lambda scope: core.store.faults.update({operation: then(scope.cancel)}))
        (event,) = await core.events(event_type="ActionCall")
        assert (event["decision"], event["error_code"]) == ("error", "draining")
        assert await core.remaining(agent) == 3
        assert await core.store.approval_list(("pending",), 10) == [], "no hold without evidence"
        assert await core.ledger.unresolved_count() == 0


async def test_a_call_that_is_cut_while_its_worker_runs_leaves_a_receipt_that_says_so(tmp_path: Path) -> None:
    async with front_core(tmp_path, action("hang")) as core:
        agent = await core.agent(max_calls=3)
        begun = trio.Event()
        core.ledger.faults["begin"] = then(begun.set)
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(agent.call, "hang")
                await begun.wait()
                await wait_all_tasks_blocked()  # the worker has it
                assert core.desk.idle() == 0
                nursery.cancel_scope.cancel()
        (event,) = await core.events(event_type="ActionCall")
        assert (event["decision"], event["error_code"]) == ("error", "action_execution_failed")
        receipt = await core.ledger.receipt(event["receipt_id"])
        assert receipt.normalized_result["kind"] == "cancelled"
        assert receipt.failure_class == "internal_error"
        assert await core.ledger.unresolved_count() == 0
        assert await core.remaining(agent) == 2, "what was dispatched is not given back"


async def test_a_call_that_is_cut_once_its_result_is_here_leaves_its_own_receipt(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        agent = await core.agent(max_calls=3)

        def arrange(scope: trio.CancelScope) -> None:
            async def cancelled_at_the_door(operation: Any, args: Any, kwargs: Any) -> Any:
                scope.cancel()
                core.ledger.faults.clear()
                await trio.lowlevel.checkpoint()
                raise AssertionError("not cancelled")

            core.ledger.faults["record"] = cancelled_at_the_door

        await cut_call(core, agent, arrange)
        (event,) = await core.events(event_type="ActionCall")
        assert event["decision"] == "allow"
        assert await core.ledger.unresolved_count() == 0


async def test_an_answer_that_is_cut_after_its_evidence_leaves_no_second_event(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        agent = await core.agent(max_calls=3)
        reached = trio.Event()
        core.ledger.faults["record"] = hangs(reached, first_does=True)
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(agent.call)
                await reached.wait()
                core.ledger.faults.clear()
                nursery.cancel_scope.cancel()
        assert [event["decision"] for event in await core.events(event_type="ActionCall")] == ["allow"]


# ------------------------------------------------------------------ answers of a store that come too late


async def test_a_hold_whose_storing_was_answered_too_late_does_not_wait_for_an_operator(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        agent = await core.agent(max_calls=3)
        core.policy.answer = HOLD
        core.store.faults["approval_hold"] = does_and_says(GONE)
        assert await agent.call() == (503, {"error": "approval_store_unavailable"})
        assert await core.store.approval_list(("pending",), 10) == []
        assert await core.remaining(agent) == 3


async def test_a_hold_that_may_still_be_pending_keeps_its_debit(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        agent = await core.agent(max_calls=3)
        core.policy.answer = HOLD
        core.store.faults["approval_hold"] = does_and_says(GONE)
        core.store.faults["approval_move"] = refuses(GONE)
        assert await agent.call() == (503, {"error": "approval_store_unavailable"})
        assert await core.remaining(agent) == 2, "whoever approves it now runs a call that was paid for"


async def test_two_equal_calls_at_once_are_one_hold_and_one_debit(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        agent = await core.agent(max_calls=5)
        core.policy.answer = HOLD
        answers: list[tuple[int, Any]] = []

        async def call() -> None:
            answers.append(await agent.call())

        both_asked = trio.Event()

        async def meet() -> None:
            if len(core.policy.questions) >= 2:
                both_asked.set()
            await both_asked.wait()

        core.policy.before = meet
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            nursery.start_soon(call)
        assert [status for status, _ in answers] == [202, 202]
        assert len({body["approval_id"] for _, body in answers}) == 1
        assert await core.remaining(agent) == 4
        assert len(await core.events(decision="pending_approval")) == 2


async def test_a_registry_that_is_swapped_in_the_middle_of_a_call_does_not_change_it(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        agent = await core.agent()

        async def swap() -> None:
            core.services.configuration.registry = Registry()

        core.policy.before = swap
        assert (await agent.call())[0] == 200
        assert await agent.call() == (404, {"error": "action_not_found"})
