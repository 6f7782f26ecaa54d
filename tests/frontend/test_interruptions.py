"""A call that something comes between, at any of its steps.

The clock breaks, the process ends, the notary answers too late, an equal call runs beside it, the registry is swapped,
the epoch rises: no call is paid for that did not run, and whatever ran is in evidence once.
"""

import signal
from pathlib import Path

import trio

from frontend.actions.registry import Registry
from frontend.notary.errors import NotarySilent, NotaryUnavailable
from ipc.operations.holds import ListHolds
from tests.frontend.calls.words import word_taken
from tests.support.front_core import (  # fmt: skip
    ALLOW,
    HOLD,
    Core,
    action,
    does_and_says,
    front_core,
    refuses,
)
from tests.support.supervised import wait_until
from tests.support.worker_desk import until

GONE = NotaryUnavailable("the database is gone", "store")
LATE = NotarySilent("no answer within 10 s")


async def test_without_a_clock_nothing_is_allowed_and_nothing_is_lost(core: Core) -> None:
    agent = await core.agent(max_calls=3)

    async def breaks_the_clock() -> None:
        core.clock.is_broken = True

    for answer in (ALLOW, HOLD):
        core.policy.answer, core.policy.before = answer, breaks_the_clock
        assert await agent.call() == (503, {"error": "clock_error"})
        assert await agent.call() == (503, {"error": "clock_error"})
        core.clock.is_broken = False
    assert await core.remaining(agent) == 3
    assert (await core.real.ask(ListHolds(None, 10))).approvals == []
    core.policy.answer, core.policy.before = ALLOW, trio.lowlevel.checkpoint
    assert (await agent.call())[0] == 200


# ------------------------------------------------------------------ the end of the process, at every step


async def test_a_call_that_is_cut_while_it_waits_for_a_worker_is_not_paid_for_and_in_evidence(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0) as core:
        agent = await core.agent(max_calls=3)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.call)
            await until(lambda: core.services.pools.census()["compute"].waiting == 1)
            nursery.cancel_scope.cancel()
        (event,) = await core.events(event_type="ActionCall")
        assert (event["decision"], event["error_code"]) == ("error", "draining")
        assert (await core.remaining(agent), await core.unresolved()) == (3, 0)
        assert "Open" not in core.client.asked


async def test_a_call_that_is_cut_while_its_worker_runs_leaves_a_receipt_that_says_so(tmp_path: Path) -> None:
    async with front_core(tmp_path, action("hang")) as core:
        agent = await core.agent(max_calls=3)
        begun = trio.Event()
        core.client.on_begun = begun.set
        core.desk.killed = lambda: wait_until(lambda: not core.notary_thread.state.under_way)
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(agent.call, "hang")
                await begun.wait()
                await word_taken(core)
                assert core.desk.idle() == 0
                nursery.cancel_scope.cancel()
        (event,) = await core.events(event_type="ActionCall")
        assert (event["decision"], event["error_code"]) == ("error", "action_execution_failed")
        receipt = await core.receipt(event["receipt_id"])
        assert receipt["normalized_result"]["kind"] == "cancelled"
        assert receipt["failure_class"] == "internal_error"
        assert await core.unresolved() == 0
        assert await core.remaining(agent) == 2, "what was dispatched is not given back"
        assert core.desk.kills == [("compute-1", "its call was cut")]


async def test_a_call_that_is_cut_as_its_worker_dies_unbegun_is_withdrawn_once(core: Core) -> None:
    agent = await core.agent(max_calls=3)
    ((worker_id, process),) = core.desk.processes.items()
    process.send_signal(signal.SIGSTOP)  # it will not take the word
    state = core.notary_thread.state
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.call)
            await until(lambda: bool(state.under_way))
            process.kill()
            core.desk.note_end(worker_id, process.wait(60))
            wait_until(lambda: state.unbegun)  # which the front has not heard
            nursery.cancel_scope.cancel()
    (event,) = await core.events(event_type="ActionCall")
    assert (event["decision"], event["error_code"]) == ("error", "draining")
    assert (await core.remaining(agent), await core.unresolved()) == (3, 0)
    assert core.client.asked.count("Withdraw") == 1


# ------------------------------------------------------------------ answers of the notary that come too late


async def test_a_hold_of_which_nothing_can_be_known_keeps_its_debit_and_its_one_event(core: Core) -> None:
    agent = await core.agent(max_calls=3)
    core.policy.answer = HOLD
    core.client.faults |= {"Hold": does_and_says(LATE), "GetHold": refuses(GONE)}
    assert await agent.call() == (503, {"error": "replay_cache_unavailable"})
    assert await core.remaining(agent) == 2, "whoever approves it now runs a call that was paid for"
    assert [event["decision"] for event in await core.events(event_type="ActionCall")] == ["pending_approval"]


async def test_an_open_that_is_not_answered_is_undone_and_its_proof_is_no_replay(core: Core) -> None:
    agent = await core.agent(max_calls=3)
    core.client.gives_up_opens(core.notary_thread)
    assert await agent.call() == (503, {"error": "replay_cache_unavailable"})
    (event,) = await core.events(event_type="ActionCall")
    assert event["error_code"] == "replay_cache_unavailable"
    assert (await core.remaining(agent), await core.unresolved()) == (3, 0)
    assert core.desk.kills == [("compute-1", "the notary does not say whether its call may run")]


async def test_an_open_that_is_refused_after_its_time_has_one_event(core: Core) -> None:
    agent = await core.agent(max_calls=1)
    assert (await agent.call())[0] == 200
    core.client.gives_up_opens(core.notary_thread)
    assert (await agent.call(body={"n": 2}))[0] == 503
    assert (await agent.call("unknown"))[0] == 404  # its event is written after those of the call before
    events = await core.events(event_type="ActionCall")
    assert len({one["trace_id"] for one in events}) == len(events) == 3


async def test_an_open_that_can_not_be_undone_stays_unresolved_and_shows(core: Core) -> None:
    agent = await core.agent(max_calls=3)
    core.client.gives_up_opens(core.notary_thread)
    core.client.faults["Withdraw"] = refuses(LATE)
    assert await agent.call() == (503, {"error": "replay_cache_unavailable"})
    await until(lambda: core.desk.ended != {})
    assert (await core.remaining(agent), await core.unresolved()) == (2, 1)
    assert await core.events(event_type="ActionCall") == [], "the end of the intent will be the call's one event"


async def test_a_close_whose_answer_was_lost_is_a_failure_with_its_receipt(core: Core) -> None:
    agent = await core.agent(max_calls=3)
    core.client.faults["Close"] = does_and_says(LATE)
    assert await agent.call() == (500, {"error": "evidence_persistence_failed"})
    assert await core.unresolved() == 0
    assert [event["decision"] for event in await core.events(event_type="ActionCall")] == ["allow"]


# ------------------------------------------------------------------ what changes beside a call


async def test_a_registry_that_is_swapped_in_the_middle_of_a_call_does_not_change_it(core: Core) -> None:
    agent = await core.agent()

    async def swap() -> None:
        core.services.configuration.current.registry = Registry()

    core.policy.before = swap
    assert (await agent.call())[0] == 200
    assert await agent.call() == (404, {"error": "action_not_found"})
