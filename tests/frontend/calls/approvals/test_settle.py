"""Approve and deny, when something breaks between their steps: one end, evidence of it, and the right price."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from frontend.notary.errors import NotaryRefused, NotarySilent, NotaryUnavailable
from ipc.process.private_files import write_private
from ipc.settings import LimitSettings, SecretSettings
from tests.frontend.calls.words import cut_approval
from tests.support.front_core import Core, action, front_core, refuses, then
from tests.support.held_calls import approve, held, state_of, told
from tests.support.logs import capture_logs
from tests.support.worker_desk import until

FULL = NotaryUnavailable("the disk is full")
HELD = ("ActionCall", "pending_approval", None)
ENDED_BY_ANOTHER = "an approval was ended by another task"
GRANTED = ("ApprovalGranted", "allow", None)


async def test_an_approved_call_whose_provider_fails_stays_approved_with_its_receipt(tmp_path: Path) -> None:
    async with front_core(tmp_path, action("die")) as core:
        agent, approval_id = await held(core, action_id="die")
        assert await approve(core, approval_id) == (502, {"error": "action_execution_failed"})
        polled = msgspec.json.decode((await agent.send("GET", f"/v1/approvals/{approval_id}/poll")).body)
        assert polled["state"] == "approved"
        assert (await core.receipt(polled["receipt_id"]))["failure_class"] == "internal_error"


@pytest.mark.parametrize(
    ("error", "code"), [(FULL, "evidence_persistence_failed"), (RuntimeError("ours"), "internal_error")]
)
async def test_an_approval_that_fails_before_dispatch_gives_its_call_back(
    core: Core, error: Exception, code: str
) -> None:
    agent, approval_id = await held(core)
    core.client.faults["Open"] = refuses(error)
    answer = await approve(core, approval_id)
    assert answer[1] == {"error": code}
    core.client.faults.clear()
    assert await state_of(core, approval_id) == "failed"
    assert await core.remaining(agent) == 3
    assert await approve(core, approval_id) == (404, {"error": "approval_not_found"})
    assert (await told(core, approval_id))[-1] == ("ActionCall", "error", code)


@pytest.mark.parametrize(
    ("fails", "code"),
    [
        ("the engine", "policy_engine_unavailable"), ("GetHold", "approval_store_unavailable"),
        ("MoveHold", "approval_store_unavailable"),
    ],
)  # fmt: skip
async def test_an_approval_that_can_not_be_decided_or_claimed_still_waits(core: Core, fails: str, code: str) -> None:
    agent, approval_id = await held(core)
    core.policy.is_available = fails != "the engine"
    core.client.faults[fails] = refuses(FULL)
    assert await approve(core, approval_id) == (503, {"error": code})
    core.client.faults.clear()
    core.policy.is_available = True
    assert await state_of(core, approval_id) == "pending"
    assert await told(core, approval_id) == [HELD]
    assert (await approve(core, approval_id))[0] == 200
    assert await core.remaining(agent) == 2


async def test_an_approval_whose_secrets_can_not_be_read_still_waits(tmp_path: Path) -> None:
    file = tmp_path / "secrets.json"
    write_private(file, b'{"token": "s3cret"}')
    needing = action("secrets", secrets=[{"name": "token"}])
    async with front_core(tmp_path, needing, secrets=SecretSettings(file=str(file))) as core:
        agent, approval_id = await held(core, action_id="secrets")
        file.chmod(0o644)
        assert await approve(core, approval_id) == (503, {"error": "secrets_unavailable"})
        assert await state_of(core, approval_id) == "pending"
        assert await told(core, approval_id) == [HELD]
        file.chmod(0o600)
        assert (await approve(core, approval_id))[0] == 200
        assert await core.remaining(agent) == 2


async def test_an_approval_without_a_worker_ends_with_its_intent_and_counts_as_failed(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0, limits=LimitSettings(worker_wait_seconds=0.0)) as core:
        agent, approval_id = await held(core)
        assert await approve(core, approval_id) == (503, {"error": "overloaded"})
        assert await state_of(core, approval_id) == "failed"
        assert (await core.remaining(agent), await core.unresolved()) == (3, 0)
        assert await told(core, approval_id) == [HELD, GRANTED, ("ActionCall", "error", "overloaded")]


async def test_an_approval_whose_receipt_can_not_be_written_is_over_spent_and_unresolved(core: Core) -> None:
    agent, approval_id = await held(core)
    core.client.faults["Close"] = refuses(FULL)
    assert await approve(core, approval_id) == (500, {"error": "evidence_persistence_failed"})
    assert await state_of(core, approval_id) == "claimed", "it may have run: the ledger knows"
    assert core.client.asked.count("MoveHold") == 1, "the claim alone: its end is not asked for"
    await core.services.upkeep.round()
    assert await state_of(core, approval_id) == "failed"
    core.client.faults.clear()
    assert await core.remaining(agent) == 2
    assert await core.unresolved() == 1
    assert (await told(core, approval_id))[-1] == ("ActionCall", "error", "evidence_persistence_failed")


@pytest.mark.parametrize(
    ("withdrawal", "state", "code"),
    [
        (NotaryRefused("there is no such intent"), "failed", "evidence_persistence_failed"),
        (FULL, "claimed", "interrupted"),
    ],
)
async def test_an_approval_whose_open_is_not_answered_ends_once_it_is_known_that_it_did_not_run(
    core: Core, withdrawal: Exception, state: str, code: str
) -> None:
    agent, approval_id = await held(core)

    async def silent(operation: Any, args: Any, kwargs: Any) -> Any:
        core.client.is_silent = True
        raise NotarySilent("late")

    core.client.faults |= {"Open": silent, "Withdraw": refuses(withdrawal)}
    assert await approve(core, approval_id) == (500, {"error": "evidence_persistence_failed"})
    assert await state_of(core, approval_id) == state
    core.client.faults.clear()
    await core.services.upkeep.round()
    assert await state_of(core, approval_id) == "failed"
    assert await core.remaining(agent) == 3
    assert (await told(core, approval_id))[-1] == ("ActionCall", "error", code)


async def test_a_denial_that_finds_the_claim_ended_by_another_is_no_denial(core: Core) -> None:
    _, approval_id = await held(core)
    with capture_logs() as logs:
        assert (await core.operate("POST", f"/v1/approvals/{approval_id}/deny"))[0] == 200
    assert ENDED_BY_ANOTHER not in [one["event"] for one in logs]
    _, approval_id = await held(core)

    async def another_was_first(operation: Any, args: Any, kwargs: Any) -> Any:
        if args[0].to_state == "denied":
            await operation(*args, **kwargs)
        return await operation(*args, **kwargs)

    core.client.faults["MoveHold"] = another_was_first
    path = f"/v1/approvals/{approval_id}/deny"
    with capture_logs() as logs:
        assert await core.operate("POST", path) == (404, {"error": "approval_not_found"})
    assert ENDED_BY_ANOTHER in [one["event"] for one in logs]


@pytest.mark.parametrize("verb", ["approve", "deny"])
async def test_a_clock_that_breaks_while_an_operator_decides_leaves_nothing_claimed(core: Core, verb: str) -> None:
    agent, approval_id = await held(core)
    core.client.faults["MoveHold"] = then(lambda: setattr(core.clock, "is_broken", True))
    assert (await core.operate("POST", f"/v1/approvals/{approval_id}/{verb}"))[0] == 503
    core.clock.is_broken = False
    core.client.faults.clear()
    await core.services.upkeep.round()
    assert await state_of(core, approval_id) == "failed"
    assert await core.remaining(agent) == 3


async def test_a_clock_that_breaks_after_the_execution_does_not_take_the_answer_back(core: Core) -> None:
    _agent, approval_id = await held(core)
    core.client.faults["Close"] = then(lambda: setattr(core.clock, "is_broken", True))
    assert (await approve(core, approval_id))[0] == 200
    assert await state_of(core, approval_id) == "approved"


async def test_an_approved_call_counts_as_in_flight_and_is_refused_while_draining(tmp_path: Path) -> None:
    async with front_core(tmp_path, action("hang"), workers=2) as core:
        _agent, first = await held(core, action_id="hang")
        _agent, second = await held(core, action_id="hang", m=2)
        core.services.admission.drain()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(core.operate, "POST", f"/v1/approvals/{first}/approve")
            await until(lambda: bool(core.services.admission.in_flight))
            core.services.admission.close()
            assert await approve(core, second) == (503, {"error": "draining"})
            nursery.cancel_scope.cancel()
        assert await state_of(core, second) == "pending"


async def test_an_approval_that_is_cut_leaves_a_receipt_and_is_ended_by_it(tmp_path: Path) -> None:
    async with front_core(tmp_path, action("hang")) as core:
        agent, approval_id = await held(core, action_id="hang")
        await cut_approval(core, approval_id)
        assert await state_of(core, approval_id) == "approved", "it ends with its receipt, at once"
        assert (await told(core, approval_id))[-1] == ("ActionCall", "error", "action_execution_failed")
        assert await core.remaining(agent) == 2


async def test_upkeep_does_not_end_a_claim_that_is_being_executed(tmp_path: Path) -> None:
    async with front_core(tmp_path, action("wait")) as core:
        _agent, approval_id = await held(core, action_id="wait")
        reached, answers = trio.Event(), list[tuple[int, Any]]()
        core.client.on_begun = reached.set
        async with trio.open_nursery() as nursery:
            nursery.start_soon(core.operate, "POST", f"/v1/approvals/{approval_id}/approve")
            with trio.fail_after(60):
                await reached.wait()
            # A second operator comes too late, and goes.
            answers.append(await core.operate("POST", f"/v1/approvals/{approval_id}/deny"))
            await core.services.upkeep.round()
            assert await state_of(core, approval_id) == "claimed"
            core.desk.go_on("compute-1")
        assert await state_of(core, approval_id) == "approved"
        assert answers == [(404, {"error": "approval_not_found"})]


@pytest.mark.parametrize(
    ("action_id", "verb", "fault", "line"),
    [
        ("echo", "approve", None, ("allow", None, None)),
        ("die", "approve", None, ("error", "action_execution_failed", "worker_lost")),
        ("echo", "deny", None, ("deny", "approval_denied", None)),
        ("echo", "approve", "Open", ("error", "evidence_persistence_failed", "the disk is full")),
    ],
    ids=["approved", "failed", "denied", "not opened"],
)
async def test_a_decision_has_one_line_with_what_it_came_to(
    tmp_path: Path, action_id: str, verb: str, fault: str | None, line: tuple[Any, ...]
) -> None:
    async with front_core(tmp_path, action(), action("die")) as core:
        _, approval_id = await held(core, action_id=action_id)
        if fault is not None:
            core.client.faults[fault] = refuses(NotaryUnavailable("the disk is full"))
        with capture_logs() as lines:
            await core.operate("POST", f"/v1/approvals/{approval_id}/{verb}")
        (told,) = [one for one in lines if "duration_ms" in one]
        assert (told["decision"], told.get("code"), told.get("cause")) == line
        assert "answered with an error" not in [one["event"] for one in lines]
