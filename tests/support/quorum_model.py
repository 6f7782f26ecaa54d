"""Histories of held calls that need several approvals, over two fronts, held against a plain model.

The model finds a quorum by trying every way to give approvals to groups; the code under test counts by Hall's theorem.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from frontend.auth.operators import Operators
from ipc.approvals import PENDING, TTL_SECONDS
from ipc.configuration.quorum import Quorum
from ipc.reloadable import reloadable_of
from ipc.settings import OperatorSettings
from tests.support.front_core import HOLD, Core, signed
from tests.support.held_calls import state_of
from tests.support.proofs import Key
from tests.support.town import Town

KEYS = {name: Key() for name in ("ada", "bob", "eve", "joe")}
API = {name: f"key-{name}-{'0' * 32}" for name in KEYS}
GROUPS = {"ada": ("finance",), "bob": ("finance", "security"), "eve": (), "joe": ("security",)}
CHOICES = ((), ("finance",), ("security",), ("finance", "security"))
QUORUMS = (
    Quorum(2), Quorum(3), Quorum(1, {"finance": 1}), Quorum(2, {"finance": 1, "security": 1}),
    Quorum(3, {"finance": 2}),
)  # fmt: skip


def operators_of(groups: Mapping[str, tuple[str, ...]]) -> tuple[OperatorSettings, ...]:
    """The configuration of these operators."""
    return tuple(OperatorSettings(name, dpop_jkt=KEYS[name].jkt, api_key=API[name], groups=own)
                 for name, own in groups.items())  # fmt: skip


@dataclass
class ModelHold:
    """One hold as the model has it."""

    quorum: Quorum
    created: int
    state: str = PENDING
    given: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Operator -> the groups of that moment."""


class QuorumHistories(RuleBasedStateMachine):
    """Approvals, denials, reloads of operators and time, in any order and at either front."""

    town: Town

    def __init__(self) -> None:
        super().__init__()
        self.time = 0
        self.holds: dict[str, ModelHold] = {}
        self.operators = dict(GROUPS)
        self.follow()

    # ------------------------------------------------------------------ the model

    def is_live(self, approval_id: str) -> bool:
        hold = self.holds[approval_id]
        return hold.state == PENDING and self.time - hold.created < TTL_SECONDS

    def counting(self, hold: ModelHold) -> list[set[str]]:
        """The groups for which each approval that still counts can stand."""
        return [{*own} & {*self.operators[name]} for name, own in hold.given.items() if name in self.operators]

    def is_met(self, hold: ModelHold) -> bool:
        members = self.counting(hold)
        places = [name for name, count in hold.quorum.groups.items() for _ in range(count)]
        if len(members) < hold.quorum.count or len(members) < len(places):
            return False
        return any(
            all(place in own for place, own in zip(places, chosen, strict=True))
            for chosen in permutations(members, len(places))
        )

    # ------------------------------------------------------------------ steps

    def follow(self) -> None:
        """Have every front and notary reload the operators."""

        async def reload() -> None:
            for core in self.town.cores:
                settings = msgspec.structs.replace(core.services.settings, operators=operators_of(self.operators))
                core.services.authentication.operators.follow(Operators(settings.operators))
                core.notary_thread.follow(reloadable_of(settings))

        self.town.do(reload)

    def front(self, data: st.DataObject) -> Core:
        return data.draw(st.sampled_from(self.town.cores), label="front")

    async def ask(self, core: Core, name: str, path: str) -> tuple[int, Any]:
        answer = await core.ask("POST", path, b"", signed(KEYS[name], "POST", path, API[name], now=core.clock.right))
        return answer.status, msgspec.json.decode(answer.body)

    @rule(data=st.data(), quorum=st.sampled_from(QUORUMS))
    def hold(self, data: st.DataObject, quorum: Quorum) -> None:
        core = self.front(data)

        async def call() -> str:
            core.policy.answer = msgspec.structs.replace(HOLD, quorum=quorum)
            status, answer = await (await core.agent()).call("echo", {"n": 1})
            assert status == 202
            return str(answer["approval_id"])

        self.holds[self.town.do(call)] = ModelHold(quorum, self.time)

    @precondition(lambda self: self.holds and self.operators)
    @rule(data=st.data(), verb=st.sampled_from(["approve", "approve", "approve", "deny"]))
    def decide(self, data: st.DataObject, verb: str) -> None:
        live = [one for one in self.holds if self.is_live(one)]
        approval_id = data.draw(st.sampled_from((live or [*self.holds])[-2:]))
        name = data.draw(st.sampled_from([*self.operators]))
        hold, core = self.holds[approval_id], self.front(data)
        status, body = self.town.do(self.ask, core, name, f"/v1/approvals/{approval_id}/{verb}")
        if not self.is_live(approval_id):
            assert (status, body["error"]) == (404, "approval_not_found")
        elif verb == "deny":
            assert status == 200
            hold.state = "denied"
        elif name in hold.given:
            assert (status, body["error"]) == (409, "already_approved_by_you")
        else:
            hold.given[name] = self.operators[name]
            if self.is_met(hold):
                assert (status, body["approval"]["approved_by"]) == (200, name)
                hold.state = "approved"
            else:
                assert (status, body["approvals"]["given"]) == (202, len(self.counting(hold)))

    @rule(data=st.data(), name=st.sampled_from([*KEYS]))
    def operators_change(self, data: st.DataObject, name: str) -> None:
        """One operator is taken out, or is there with other groups."""
        if data.draw(st.booleans()) and len(self.operators) > 1:
            self.operators.pop(name, None)
        else:
            self.operators[name] = data.draw(st.sampled_from(CHOICES))
        self.follow()

    @rule(seconds=st.sampled_from([110, 250]))
    def time_goes_by(self, seconds: int) -> None:
        self.time += seconds
        for core in self.town.cores:
            core.clock.ahead += seconds
        self.sweep()

    def sweep(self) -> None:
        for core in self.town.cores:
            self.town.do(core.services.upkeep.round)
        for approval_id, hold in self.holds.items():
            if hold.state == PENDING and not self.is_live(approval_id):
                hold.state = "expired"

    # ------------------------------------------------------------------ what must hold

    @invariant()
    def states_are_the_models(self) -> None:
        async def look() -> list[dict[str, str]]:
            return [{one: await state_of(core, one) for one in self.holds} for core in self.town.cores]

        expected = {approval_id: hold.state for approval_id, hold in self.holds.items()}
        assert self.town.do(look) == [expected] * len(self.town.cores)

    def teardown(self) -> None:
        """Each hold that was approved ran once, by the evidence, and no other did."""

        async def told() -> list[str]:
            # Fronts of one host have one ledger.
            ledgers = {id(core.notary_thread): core for core in self.town.cores}
            granted = [await core.events(event_type="ApprovalGranted") for core in ledgers.values()]
            return [
                event["approval_id"] for events in granted for event in events if event["approval_id"] in self.holds
            ]

        assert sorted(self.town.do(told)) == sorted(
            approval_id for approval_id, hold in self.holds.items() if hold.state == "approved"
        )
        for core in self.town.cores:  # the next history must not spend time on the leftovers of this one
            core.clock.ahead += TTL_SECONDS
            self.town.do(core.services.upkeep.round)
