"""The embedded engine over real policy processes: hangs, kills, crashes and reloads under load."""

import os
import signal
from collections import Counter

import pytest
import trio
import trio.testing
from msgspec.structs import replace

from frontend.errors import GateError
from frontend.policy.engine import PolicyRefused
from tests.support.patience import PATIENCE, PATIENT
from tests.support.policy import ALLOW_ALL, LOOP_ON_SPIN, SmallSupervisor, document, question, running_engine, sources

HANGING = (
    f"decision := {document()} if count([1 | some x in numbers.range(1, 9000); some y in numbers.range(1, 9000); "
    "x == y + 0.5]) == 0"
)
CODES = {"policy_engine_unavailable", "policy_engine_timeout"}


def impatient(supervisor: SmallSupervisor, question_seconds: float = 0.3) -> None:
    """Set this deadline for later questions, and a short one for a process that hangs."""
    supervisor.engine.deadlines = replace(PATIENT.policy, question_seconds=question_seconds, stall_seconds=0.2)


async def keep_asking(supervisor: SmallSupervisor, outcomes: Counter[str], **changes: object) -> None:
    """Ask until cancelled, counting rules and codes."""
    while True:
        try:
            decision = await supervisor.engine.decide(question(**changes))
            outcomes[decision.rule] += 1
        except GateError as error:
            outcomes[error.code] += 1
        await trio.lowlevel.checkpoint()  # a decision that is remembered has none


async def test_calls_beside_one_that_hangs_are_served_after_it() -> None:
    async with running_engine(LOOP_ON_SPIN) as supervisor, trio.open_nursery() as nursery:
        refusals: list[str] = []
        outcomes: Counter[str] = Counter()

        async def hang() -> None:
            with pytest.raises(GateError) as refusal:
                await supervisor.engine.decide(question(action_id="loop"))
            refusals.append(refusal.value.code)

        impatient(supervisor)
        nursery.start_soon(hang)
        await trio.testing.wait_all_tasks_blocked()
        # With no more time than the one that hangs, they would run out of it together.
        impatient(supervisor, PATIENCE)
        async with trio.open_nursery() as others:
            for _ in range(20):
                others.start_soon(lambda: _count_one(supervisor, outcomes))
        assert refusals == ["policy_engine_timeout"]
        assert outcomes == {"test": 20}


async def _count_one(supervisor: SmallSupervisor, outcomes: Counter[str]) -> None:
    outcomes[(await supervisor.engine.decide(question())).rule] += 1


async def test_killed_processes_cost_single_calls_and_the_engine_serves_again() -> None:
    async with running_engine(ALLOW_ALL) as supervisor:
        outcomes: Counter[str] = Counter()
        async with trio.open_nursery() as nursery:
            for _ in range(16):
                nursery.start_soon(lambda: keep_asking(supervisor, outcomes))
            for _ in range(4):
                before = outcomes["test"]
                with trio.fail_after(60):
                    while outcomes["test"] < before + 100:
                        await trio.lowlevel.checkpoint()
                os.kill(supervisor.processes[-1].pid, signal.SIGKILL)
                count = len(supervisor.asked_for)
                with trio.fail_after(60):
                    while len(supervisor.asked_for) == count:
                        await trio.lowlevel.checkpoint()
            before = outcomes["test"]
            with trio.fail_after(60):
                while outcomes["test"] < before + 10:
                    await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        assert set(outcomes) <= {"test", "policy_engine_unavailable"}
        # The question that each process worked on, and no other.
        assert outcomes["policy_engine_unavailable"] <= 4
        assert {reason for _, reason in supervisor.asked_for} <= {
            "it closed its channel",
            "its channel broke: [Errno 104] Connection reset by peer",
            "its channel broke: [Errno 32] Broken pipe",
            "it broke the protocol: stream ended inside a frame",
        }


async def test_policies_swap_whole_under_load() -> None:
    async with running_engine(ALLOW_ALL) as supervisor:
        outcomes: Counter[str] = Counter()
        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(lambda: keep_asking(supervisor, outcomes))
            for number in range(10):
                rule = f'"rule{number}"'
                await supervisor.engine.load(sources(f"decision := {document(rule=rule)}", version=str(number)))
                assert (await supervisor.engine.decide(question())).rule == f"rule{number}"
                assert supervisor.engine.policy_version == str(number)
            nursery.cancel_scope.cancel()
        assert not CODES & set(outcomes)
        assert supervisor.asked_for == []


@pytest.mark.parametrize(
    "body",
    ["decision := {", "decision := 1", "decision := " + "[" * 100_000 + "]" * 100_000, HANGING],
    ids=["does not parse", "does not decide", "crashes the compiler", "hangs"],
)
async def test_a_candidate_that_can_not_be_used_leaves_the_policy_in_force(body: str) -> None:
    async with running_engine(ALLOW_ALL) as supervisor:
        with pytest.raises(PolicyRefused):
            await supervisor.engine.load(sources(body, version="bad"))
        assert supervisor.engine.policy_version == ALLOW_ALL.policy_version
        assert (await supervisor.engine.decide(question())).rule == "test"
