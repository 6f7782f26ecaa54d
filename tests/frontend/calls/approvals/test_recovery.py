"""How a claim ends that no task settles: by what the ledger holds of its call, told once, at the right price."""

from typing import Any

import msgspec
import pytest
import trio

from frontend.notary.errors import NotaryRefused
from ipc.backends.store import ApprovalRecord
from ipc.operations.evidence import ApprovalTrace, FoundEvents
from ipc.operations.holds import GetHold, MoveHold
from tests.support.front_core import Core, Fault
from tests.support.held_calls import claimed, held, state_of, told
from tests.support.logs import capture_logs

pytestmark = pytest.mark.front(workers=0)


def says(answer: object) -> Fault:
    async def fault(_operation: Any, _args: Any, _kwargs: Any) -> Any:
        await trio.lowlevel.checkpoint()
        return answer

    return fault


async def recover(core: Core) -> list[dict[str, Any]]:
    with capture_logs() as lines, trio.fail_after(60):
        await core.services.upkeep.at_start(("front-1-a",))
    return [one for one in lines if one["event"] == "an approval was left claimed"]


async def test_a_claim_whose_call_has_a_receipt_is_approved_with_it_and_stays_paid(core: Core) -> None:
    _, approval_id = await held(core)
    await claimed(core, approval_id, "front-0-dead")
    record = await core.real.ask(GetHold(approval_id))
    assert record is not None
    asked: list[MoveHold] = []

    async def hears(_operation: Any, args: Any, _kwargs: Any) -> ApprovalRecord | None:
        await trio.lowlevel.checkpoint()
        asked.append(args[0])
        return msgspec.structs.replace(record, state=args[0].to_state) if len(asked) == 1 else None

    core.client.faults["TraceOfApproval"] = says(ApprovalTrace(has_intent=True, receipt_id="rcpt_1"))
    core.client.faults["MoveHold"] = hears
    (line,) = await recover(core)
    assert (line["approval_id"], line["holder"], line["ends"]) == (approval_id, "front-0-dead", "approved")
    move = asked[0]
    assert (move.approval_id, move.from_state, move.to_state) == (approval_id, "claimed", "approved")
    assert msgspec.json.decode(move.outcome)["receipt_id"] == "rcpt_1"
    assert (move.event, move.refunds) == (None, False), "the event of its end is there with its receipt"


async def test_an_end_that_has_its_event_gets_no_second_one(core: Core) -> None:
    agent, approval_id = await held(core)
    await claimed(core, approval_id, "front-0-dead")
    (pending,) = await core.events(event_type="ActionCall")
    ended = msgspec.json.encode(pending | {"decision": "error"})
    core.client.faults["QueryEvents"] = says(FoundEvents([msgspec.json.encode(pending), b"[]", ended]))
    await recover(core)
    assert await state_of(core, approval_id) == "failed"
    assert [one[0] for one in await told(core, approval_id)] == ["ActionCall"]
    assert await core.remaining(agent) == 3


async def test_claims_are_ended_however_many_answers_they_take(core: Core) -> None:
    holds = [(await held(core))[1] for _ in range(3)]
    for approval_id in holds:
        await claimed(core, approval_id, "front-0-dead")

    async def one_at_a_time(operation: Any, args: Any, kwargs: Any) -> Any:
        return (await operation(*args, **kwargs))[:1]

    core.client.faults["OrphanedHolds"] = one_at_a_time
    assert len(await recover(core)) == 3
    assert [await state_of(core, one) for one in holds] == ["failed"] * 3


async def test_a_claim_that_another_front_has_ended_is_left_alone(core: Core) -> None:
    _, approval_id = await held(core)
    await claimed(core, approval_id, "front-0-dead")
    core.client.faults["MoveHold"] = says(None)
    assert await recover(core) == []
    assert core.client.asked.count("MoveHold") == 1


async def test_a_claim_that_the_notary_refuses_to_end_keeps_no_later_one_waiting(core: Core) -> None:
    holds = [(await held(core))[1] for _ in range(3)]
    for approval_id in holds:
        await claimed(core, approval_id, core.services.front_id)

    async def refuses_the_first(operation: Any, args: Any, kwargs: Any) -> Any:
        if args[0].approval_id == holds[0]:
            raise NotaryRefused("it contradicts the ledger")
        return await operation(*args, **kwargs)

    core.client.faults["MoveHold"] = refuses_the_first
    with capture_logs() as lines:
        await core.services.upkeep.round()
    assert [await state_of(core, one) for one in holds] == ["claimed", "failed", "failed"]
    assert [one["event"] for one in lines if one["log_level"] == "warning"][-1] == "claims could not be ended"
