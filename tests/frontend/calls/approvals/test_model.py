"""Approvals and budgets over the real store, held against a plain model of what the interface says of them.

One front for all histories; each has sessions of its own. Every answer, every state and every budget must be the
model's after every step.
"""

import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from ipc.approvals import CLAIMED, FAILED, PENDING, TTL_SECONDS
from ipc.operations.leases import ReadEpoch
from tests.support.coded import Coded
from tests.support.front_core import ALLOW, HOLD, Agent, Core, front_core
from tests.support.held_calls import claimed, state_of
from tests.support.properties import FEW
from tests.support.town import Town, town

LEASE_SECONDS = 3600


@asynccontextmanager
async def one_front(folder: Path) -> AsyncIterator[Sequence[Core]]:
    async with front_core(folder, lease_ttl_seconds=LEASE_SECONDS) as core:
        yield (core,)


@dataclass
class Session:
    agent: Agent
    calls: int
    left: int
    opened: int
    epoch: int
    ran: int = 0
    holds: dict[int, str] = field(default_factory=dict)
    """The newest hold of each body."""

    def give_back(self) -> None:
        self.left = min(self.calls, self.left + 1)


@dataclass
class Held:
    """A hold as the model has it. `state` is the stored one: a hold whose time is over waits for the sweep."""

    session: Session
    created: int
    state: str = PENDING


class Histories(RuleBasedStateMachine):
    town: Town

    def __init__(self) -> None:
        super().__init__()
        self.time = 0
        self.epoch = self.town.do(self.town.core.real.ask, ReadEpoch())
        self.sessions: list[Session] = []
        self.held: dict[str, Held] = {}

    # ------------------------------------------------------------------ the model

    def is_live(self, approval_id: str) -> bool:
        hold = self.held[approval_id]
        return hold.state == PENDING and self.time - hold.created < TTL_SECONDS

    def polled(self, approval_id: str) -> str:
        state = self.held[approval_id].state
        if state == PENDING and not self.is_live(approval_id):
            return "expired"
        return "approved" if state == FAILED else state

    def is_young(self, session: Session) -> bool:
        return self.time - session.opened < LEASE_SECONDS - 60

    def is_usable(self, session: Session) -> bool:
        return self.is_young(session) and session.epoch == self.epoch

    def pending(self, session: Session, body: int) -> str | None:
        approval_id = session.holds.get(body)
        return approval_id if approval_id is not None and self.is_live(approval_id) else None

    # ------------------------------------------------------------------ agents

    def lease(self, calls: int) -> Session:
        agent = self.town.do(self.town.core.agent, calls)
        self.sessions.append(Session(agent, calls, calls, self.time, self.epoch))
        return self.sessions[-1]

    @rule(data=st.data(), body=st.integers(1, 3), is_held=st.sampled_from([True, True, False]))
    def call(self, data: st.DataObject, body: int, is_held: bool) -> None:
        young = [session for session in self.sessions if self.is_young(session)]
        if sum(map(self.is_usable, young)) < 2 and data.draw(st.booleans()):
            session = self.lease(data.draw(st.sampled_from([3, 1, 6])))
        else:
            session = data.draw(st.sampled_from(young)) if young else self.lease(4)
        self.town.core.policy.answer = HOLD if is_held else ALLOW
        waiting = self.pending(session, body)
        status, answer = self.town.do(session.agent.call, "echo", {"n": body})
        if session.epoch != self.epoch:
            assert (status, answer) == (401, Coded("invalid_lease"))
        elif waiting is not None and (is_held or session.left == 0):
            assert (status, answer["approval_id"]) == (202, waiting)
        elif session.left == 0:
            assert (status, answer) == (403, {"error": "budget_exhausted"})
        elif is_held:
            assert status == 202
            assert answer["approval_id"] not in self.held
            session.left -= 1
            session.holds[body] = answer["approval_id"]
            self.held[answer["approval_id"]] = Held(session, self.time)
        else:
            assert status == 200
            session.left -= 1
            session.ran += 1

    # ------------------------------------------------------------------ operators

    @precondition(lambda self: self.held)
    @rule(data=st.data(), verb=st.sampled_from(["approve", "deny"]))
    def decide(self, data: st.DataObject, verb: str) -> None:
        waiting = [one for one in reversed(self.held) if self.held[one].state == PENDING]
        chosen = waiting if waiting and data.draw(st.sampled_from([True, True, False])) else [*reversed(self.held)]
        approval_id = data.draw(st.sampled_from(chosen))
        hold = self.held[approval_id]
        was_live, path = self.is_live(approval_id), f"/v1/approvals/{approval_id}"
        if self.is_usable(hold.session):
            answer = self.town.do(hold.session.agent.send, "GET", f"{path}/poll")
            assert msgspec.json.decode(answer.body)["state"] == self.polled(approval_id)
        status, body = self.town.do(self.town.core.operate, "POST", f"{path}/{verb}")
        if not was_live:
            assert (status, body) == (404, {"error": "approval_not_found"})
        elif verb == "approve":
            assert (status, body["approval"]["approval_id"]) == (200, approval_id)
            hold.state = "approved"
            hold.session.ran += 1
        else:
            assert (status, body["decision"]) == (200, "deny")
            hold.state = "denied"
            hold.session.give_back()

    # ------------------------------------------------------------------ time and misfortune

    @rule(seconds=st.sampled_from([100, 200, 300]), is_swept=st.booleans())
    def time_goes_by(self, seconds: int, is_swept: bool) -> None:
        self.time += seconds
        self.town.core.clock.ahead += seconds
        if is_swept:
            self.sweep()

    def sweep(self) -> None:
        self.town.do(self.town.core.services.upkeep.round)
        for approval_id, hold in self.held.items():
            if hold.state == PENDING and not self.is_live(approval_id):
                hold.state = "expired"
                hold.session.give_back()

    @precondition(lambda self: any(map(self.is_live, self.held)))
    @rule(data=st.data(), what=st.sampled_from(["revoke all", "a front dies and another starts", "a front dies"]))
    def misfortune(self, data: st.DataObject, what: str) -> None:
        if what == "revoke all":
            self.town.do(self.town.core.raise_epoch)
            self.epoch += 1
            self.town.do(self.town.core.services.upkeep.round)
            for hold in self.held.values():
                if hold.state == PENDING:
                    hold.state = "expired"
                    hold.session.give_back()
            return
        approval_id = data.draw(st.sampled_from([one for one in self.held if self.is_live(one)]))
        self.town.do(self.claim, approval_id)
        self.held[approval_id].state = CLAIMED
        if what == "a front dies":
            return
        self.town.do(self.town.core.services.upkeep.at_start, ("front-1-a",))
        for hold in self.held.values():
            if hold.state == CLAIMED:
                hold.state = "failed"
                hold.session.give_back()

    async def claim(self, approval_id: str) -> None:
        """By a front that does not live to settle it."""
        await claimed(self.town.core, approval_id, "front-0-dead")

    # ------------------------------------------------------------------ what must hold

    @invariant()
    def states_and_budgets_are_the_models(self) -> None:
        core = self.town.core

        async def look() -> tuple[dict[str, str], list[int]]:
            states = {one: await state_of(core, one) for one in self.held}
            return states, [await core.remaining(session.agent) for session in self.sessions if self.is_young(session)]

        states, left = self.town.do(look)
        assert states == {approval_id: hold.state for approval_id, hold in self.held.items()}
        assert left == [session.left for session in self.sessions if self.is_young(session)]

    def teardown(self) -> None:
        core = self.town.core
        for session in self.sessions:

            async def told(session_id: str = session.agent.session_id) -> list[dict[str, Any]]:
                return await core.events(session_id=session_id)

            events = self.town.do(told)
            ran = [event for event in events if event["event_type"] == "ActionCall" and event["decision"] == "allow"]
            assert len(ran) == session.ran
            kinds = Counter(event["event_type"] for event in events)
            ends = Counter(hold.state for hold in self.held.values() if hold.session is session)
            assert (kinds["ApprovalDenied"], kinds["ApprovalExpired"]) == (ends["denied"], ends["expired"])
            assert kinds["ApprovalGranted"] == ends["approved"]
            assert kinds["BudgetRollbackFailed"] == 0
        # The next history must not spend time on the leftovers of this one.
        core.clock.ahead += TTL_SECONDS
        self.town.do(core.services.upkeep.round)


def test_any_history_of_holds_decisions_and_misfortunes_is_the_models() -> None:
    with tempfile.TemporaryDirectory() as folder, town(partial(one_front, Path(folder))) as running_town:

        class InTown(Histories):
            town = running_town

        run_state_machine_as_test(InTown, settings=FEW)
