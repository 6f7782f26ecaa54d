"""Histories of calls that are made again under their `Idempotency-Key`, at two fronts, held against a plain model.

The model is the table of docs/contract.md ("Idempotency-Key"). Each call has a lease of its own, so that no hold and no
outcome is found by its session.
"""

import itertools
from dataclasses import dataclass
from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from frontend.notary.errors import NotaryUnavailable
from ipc.approvals import TTL_SECONDS
from tests.support.breakable_notary import refuses
from tests.support.front_core import ALLOW, DENY, HOLD, Core, action, signed
from tests.support.town import Town

TIMEOUT = 60
END_SECONDS = TIMEOUT + 60
"""A call without an end may still get one for so long."""
KEY_SECONDS = 86_400
ACTIONS = (
    action("echo", resource_limits={"timeout_seconds": TIMEOUT}),
    action("pay", resource_limits={"timeout_seconds": TIMEOUT}, idempotency={"keep_output": True}),
    action("complains", resource_limits={"timeout_seconds": TIMEOUT}),
)
FAILING = "complains"
"""The action that fails, and can't have run."""
FULL = NotaryUnavailable("the disk is full")
Key = tuple[str, str]
_histories = itertools.count()
"""Each history has keys of its own: the fronts of all histories are the same."""


@dataclass
class FirstCall:
    """The call that has a key, as the model has it."""

    n: int
    began: int
    core: Core
    state: str
    """executed, kept, held, denied, unknown, never known, happened; one that may be made anew is not here."""
    answer: Any
    """The body of its own answer."""
    approval_id: str = ""


class KeyedHistories(RuleBasedStateMachine):
    """Calls, decisions, lost ends, resolutions and time, in any order and at either front."""

    town: Town
    deciding = 1
    """How many of the fronts have an operator whom the notary knows."""

    def __init__(self) -> None:
        super().__init__()
        self.time = 0
        self.calls: dict[Key, FirstCall] = {}
        self.names = f"history-{next(_histories)}-"
        self.dispatched = 0
        self.before = self.town.do(self.opened)

    # ------------------------------------------------------------------ the model

    def first(self, key: Key) -> FirstCall | None:
        """The call that has the key; None if the next one is new."""
        call = self.calls.get(key)
        if call is not None and self.time - call.began > KEY_SECONDS + TTL_SECONDS + 1000:
            return None
        return call

    def expected(self, call: FirstCall, n: int) -> tuple[int, str | None, bool]:
        """Status, error and whether the answer says that it repeats an outcome."""
        if call.n != n:
            return 422, "idempotency_key_reused", False
        match call.state:
            case "held" if self.time - call.began < TTL_SECONDS:
                return 202, None, True
            case "held":
                return 409, "approval_expired", True
            case "denied":
                return 403, "policy_denied", True
            case "kept":
                return 200, None, True
            case "unknown" if self.time - call.began < END_SECONDS:
                return 409, "call_in_progress", False
            case "unknown" | "never known":
                return 409, "outcome_unknown", True
        return 409, "already_executed", True

    # ------------------------------------------------------------------ steps

    def front(self, data: st.DataObject) -> Core:
        return data.draw(st.sampled_from(self.town.cores), label="front")

    async def opened(self) -> tuple[set[str], int]:
        """Events of calls that were opened, in the ledgers of all hosts, and how many have no end yet."""
        ledgers = {id(core.notary_thread): core for core in self.town.cores}
        events: set[str] = set()
        unresolved = 0
        for core in ledgers.values():
            listed = await core.events(event_type="ActionCall") + await core.events(event_type="IntentResolved")
            events |= {event["event_id"] for event in listed if "intent_id" in event}
            unresolved += await core.unresolved()
        return events, unresolved

    async def call(self, core: Core, key: Key, n: int) -> tuple[tuple[int, str | None, bool], Any, dict[str, str]]:
        agent, path = await core.agent(), f"/v1/actions/{key[0]}/execute"
        headers = signed(agent.key, "POST", path, agent.token, now=core.clock.right)
        answer = await core.ask("POST", path, {"n": n}, [*headers, ("idempotency-key", f'"{self.names}{key[1]}"')])
        body, named = msgspec.json.decode(answer.body), dict(answer.headers)
        return (answer.status, body.get("error"), named.get("Idempotent-Replayed") == "true"), body, named

    keys = st.tuples(st.sampled_from(["echo", "pay", FAILING]), st.sampled_from(["a", "b"]))

    @initialize(data=st.data(), key=keys)
    def hold_first(self, data: st.DataObject, key: Key) -> None:
        """Each history has a hold to decide, or to let expire: few would come to one by themselves."""
        self.make(self.front(data), key, 1, "hold")

    @rule(
        data=st.data(), key=keys, n=st.sampled_from([1, 1, 2]), said=st.sampled_from(["allow", "allow", "hold", "deny"])
    )
    def execute(self, data: st.DataObject, key: Key, n: int, said: str) -> None:
        self.make(self.front(data), key, n, said)

    def make(self, core: Core, key: Key, n: int, said: str) -> None:
        """Make a call and compare its answer with the model's."""
        first = self.first(key)
        core.policy.answer = {"allow": ALLOW, "hold": HOLD, "deny": DENY}[said]
        shown, body, headers = self.town.do(self.call, core, key, n)
        if said == "deny":
            assert shown == (403, "policy_denied", False)
        elif first is not None:
            assert shown == self.expected(first, n)
            self.check(first, shown, body, headers)
        elif said == "hold":
            assert shown == (202, None, False)
            self.calls[key] = FirstCall(n, self.time, core, "held", body, body["approval_id"])
        elif key[0] == FAILING:
            assert (shown, headers["X-May-Have-Run"]) == ((502, "action_execution_failed", False), "no")
            self.dispatched += 1
            self.calls.pop(key, None)
        else:
            assert shown == (200, None, False)
            self.dispatched += 1
            self.calls[key] = FirstCall(n, self.time, core, "kept" if key[0] == "pay" else "executed", body)

    def check(self, first: FirstCall, shown: tuple[int, str | None, bool], body: Any, headers: dict[str, str]) -> None:
        """The members that name the first call."""
        match shown[1]:
            case None if shown[0] == 200:
                assert body == {name: value for name, value in first.answer.items() if name != "approval"}
            case None:
                assert body["approval_id"] == first.approval_id
            case "already_executed" if first.state == "executed":
                assert headers["X-Receipt-Id"] == first.answer["receipt_id"]
            case "outcome_unknown" | "already_executed":
                assert headers["X-Intent-Id"].startswith("intent_")

    @rule(data=st.data(), key=keys)
    def lose_the_end(self, data: st.DataObject, key: Key) -> None:
        """A call that its front can't follow to its end."""
        if self.first(key) is not None:
            return
        core = self.front(data)
        core.policy.answer = ALLOW
        core.client.faults["Close"] = refuses(FULL)
        try:
            shown, body, _ = self.town.do(self.call, core, key, 1)
        finally:
            core.client.faults.clear()
        assert shown == (500, "evidence_persistence_failed", False), (shown, body)
        self.dispatched += 1
        self.calls[key] = FirstCall(1, self.time, core, "unknown", body)

    @precondition(lambda self: any(call.state == "held" for call in self.calls.values()))
    @rule(data=st.data(), verb=st.sampled_from(["approve", "approve", "deny"]))
    def decide(self, data: st.DataObject, verb: str) -> None:
        key = data.draw(st.sampled_from([one for one, call in self.calls.items() if call.state == "held"]))
        call, core = self.calls[key], data.draw(st.sampled_from(self.town.cores[: self.deciding]))
        status, body = self.town.do(core.operate, "POST", f"/v1/approvals/{call.approval_id}/{verb}")
        if self.time - call.began >= TTL_SECONDS:
            assert status == 404
            return
        fails = verb == "approve" and key[0] == FAILING
        assert status == (502 if fails else 200), body
        call.state = "denied"
        self.dispatched += verb == "approve"
        if fails:
            del self.calls[key]
        elif verb == "approve":
            call.state, call.answer = "kept" if key[0] == "pay" else "executed", body

    @precondition(lambda self: any(call.state == "unknown" for call in self.calls.values()))
    @rule(data=st.data(), outcome=st.sampled_from(["happened", "did_not_happen", "unknown"]))
    def resolve(self, data: st.DataObject, outcome: str) -> None:
        """An operator resolves it at the host that has its intent, once no worker can tell any more."""
        key = data.draw(st.sampled_from([one for one, call in self.calls.items() if call.state == "unknown"]))
        call = self.calls[key]
        if self.first(key) is None:
            return
        if self.time - call.began < END_SECONDS:
            self.time_goes_by(2 * END_SECONDS)
        shown, _, headers = self.town.do(self.call_allowed, call.core, key)
        assert shown == (409, "outcome_unknown", True)
        path = f"/v1/admin/intents/{headers['X-Intent-Id']}/resolve"
        status, body = self.town.do(call.core.operate, "POST", path, {"outcome": outcome})
        assert status == 200, body
        if outcome == "did_not_happen":
            del self.calls[key]
        else:
            call.state = outcome if outcome == "happened" else "never known"
        self.make(self.front(data), key, call.n, "allow")

    @precondition(lambda self: any(call.state == "held" for call in self.calls.values()))
    @rule(data=st.data())
    def let_a_hold_expire(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from([one for one, call in self.calls.items() if call.state == "held"]))
        self.time_goes_by(2 * TTL_SECONDS)
        self.make(self.front(data), key, self.calls[key].n, "allow")

    async def call_allowed(self, core: Core, key: Key) -> tuple[tuple[int, str | None, bool], Any, dict[str, str]]:
        core.policy.answer = ALLOW
        return await self.call(core, key, self.calls[key].n)

    @rule(seconds=st.sampled_from([110, 250, 250, 2 * KEY_SECONDS]))
    def time_goes_by(self, seconds: int) -> None:
        self.time += seconds
        for core in self.town.cores:
            core.clock.ahead += seconds
        for core in self.town.cores:
            self.town.do(core.services.upkeep.round)

    # ------------------------------------------------------------------ what must hold

    def teardown(self) -> None:
        """The model and the ledger have the same number of opened calls, each key at most one."""
        (events, unresolved), (before, left) = self.town.do(self.opened), self.before
        assert len(events - before) + unresolved - left == self.dispatched
        for core in self.town.cores:  # the next history must not spend time on the leftovers of this one
            core.clock.ahead += TTL_SECONDS
            self.town.do(core.services.upkeep.round)
