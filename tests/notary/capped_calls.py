"""Calls of one cap's action at real notaries, and a plain model of what they may add up to.

The model knows no steps of windows: an amount counts for a whole window at least, and a sixtieth of a window more at
most. Every answer and every sum must lie between the two, and no sum may ever be above its cap.
"""

import itertools
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ipc.approvals import TTL_SECONDS
from ipc.backends.store import ApprovalRecord
from ipc.caps import CapUse
from ipc.operations.calls import Closed, HeldByCap, Open, Refusal
from ipc.operations.caps import ReadCaps, SumCap
from ipc.operations.holds import Hold, HoldInForce
from ipc.operations.intents import INTENT_OUTCOMES
from notary.store.caps import HELD_SECONDS
from notary.units.transaction import ENDED_SECONDS
from tests.notary.lost import lost_call
from tests.notary.running import Running
from tests.notary.samples import (
    call_event,
    make_approval,
    make_approved,
    make_claim,
    make_denial,
    make_expiry,
    make_hold,
    make_open,
    make_resolution,
    make_result,
    make_terms,
    outcome_text,
)
from tests.support.asking import Asker

POINTER = "/amount"
WINDOWS = {"principal": 3600, "all": 7200}
"""Longer than it takes until an unresolved call is resolved."""
HOLD_ABOVE, DENY_ABOVE = {"principal": None, "all": "60"}, {"principal": "50", "all": "100"}
ENDS: dict[str, dict[str, Any]] = {
    "happened": {}, "did_not_happen": {"outcome": "provider_error", "may_have_run": "no"},
    "unknown": {"outcome": "timeout"},
}  # fmt: skip
"""Outcome of a call -> the result that its worker tells."""
VALUES = ("0", "0.000000001", "1.5", "19.999999999", "20", "40", "50.000000001", "100")
_numbers = itertools.count(1)


def uses_of(subject: str, value: str, *, is_spared: bool = False) -> tuple[CapUse, ...]:
    """The caps of such a call. `is_spared`: holds are lifted."""
    return tuple(
        CapUse(
            POINTER, per, subject if per == "principal" else "", seconds, value,
            None if is_spared else HOLD_ABOVE[per], DENY_ABOVE[per],
        )
        for per, seconds in WINDOWS.items()
    )  # fmt: skip


def opening_of(action_id: str, subject: str, caps: tuple[CapUse, ...], **given: Any) -> Open:
    return make_open(event=call_event(action_id=action_id, principal=subject), caps=caps, **given)


def hold_of(action_id: str, subject: str, caps: tuple[CapUse, ...], now: float) -> Hold:
    """Hold such a call."""
    approval = make_approval(
        action_id=action_id, principal=subject, session_id=f"ses_{next(_numbers)}", created_at=now,
        expires_at=now + TTL_SECONDS,
    )  # fmt: skip
    kept = msgspec.json.encode(caps).decode()
    return make_hold(msgspec.structs.replace(approval, body=f'{{"caps":{kept},{approval.body[1:]}'), caps=caps)


def approved_of(held: Hold) -> Open:
    """Open the held call, which alice has claimed."""
    approval = held.approval
    event = call_event(
        action_id=approval.action_id, principal=approval.principal, session_id=approval.session_id,
        request_hash=approval.request_hash,
    )  # fmt: skip
    return make_approved(approval, event=event, caps=held.caps)


def outcome_of(end: str) -> Any:
    """The result of a worker whose call ends so."""
    return make_result(**{"outcome": "success"} | ENDS[end])


@dataclass(eq=False)
class Amount:
    """One amount that counts. `anchor`: the moment at which its call was opened, or can be at the latest."""

    subject: str
    value: Decimal
    anchor: float
    is_unknown: bool = False

    def counts(self, per: str, now: float, *, at_most: bool) -> bool:
        """True if it must count still, or with `at_most` if it may."""
        seconds = WINDOWS[per]
        return now < self.anchor + seconds + (-(-seconds // 60) if at_most else 0)


class CappedCalls(RuleBasedStateMachine):
    """One history. `notaries` share a store; their clocks show the same time."""

    notaries: ClassVar[list[Running]] = []
    fronts: ClassVar[list[tuple[Running, Asker]]] = []

    def __init__(self) -> None:
        super().__init__()
        number = next(_numbers)
        self.action_id = f"pay-{number}"
        self.subjects = [f"p{number}-a", f"p{number}-b"]
        self.amounts: list[Amount] = []
        self.running: list[tuple[Asker, Open, int, Amount]] = []
        self.pending: list[tuple[Hold, Amount]] = []
        self.lost: list[tuple[Running, str, Amount, float]] = []

    @property
    def now(self) -> float:
        return self.notaries[0].clock.time

    def sums(self, per: str, subject: str, *, unknown: bool = False) -> tuple[Decimal, Decimal]:
        """The least and the most that counts now."""
        mine = [
            one for one in self.amounts
            if (per == "all" or one.subject == subject) and (one.is_unknown or not unknown)
        ]  # fmt: skip
        least, most = (
            sum((one.value for one in mine if one.counts(per, self.now, at_most=at_most)), Decimal(0))
            for at_most in (False, True)
        )
        return least, most

    def exceeds(self, subject: str, value: str, limits: dict[str, str | None]) -> tuple[bool, bool]:
        """Whether such a call must go above one of these limits, and whether it may."""
        must, may = False, False
        for per, limit in limits.items():
            if limit is not None:
                least, most = self.sums(per, subject)
                must, may = (
                    must or least + Decimal(value) > Decimal(limit),
                    may or most + Decimal(value) > Decimal(limit),
                )
        return must, may

    def judged(self, front: Asker, subject: str, value: str, caps: tuple[CapUse, ...]) -> str:
        """The decision that a preview tells of, which the model allows."""
        judged = front.ask(ReadCaps(self.action_id, caps))
        must_deny, may_deny = self.exceeds(subject, value, dict(DENY_ABOVE))
        assert must_deny <= (judged.denial is not None) <= may_deny
        lifted = all(one.hold_above is None for one in caps)
        must_hold, may_hold = (False, False) if lifted else self.exceeds(subject, value, HOLD_ABOVE)
        assert must_hold <= judged.is_held <= may_hold
        return "deny" if judged.denial is not None else "hold" if judged.is_held else "allow"

    def counted(self, subject: str, value: str, anchor: float) -> Amount:
        self.amounts.append(amount := Amount(subject, Decimal(value), anchor))
        return amount

    def settle(self, amount: Amount, end: str) -> None:
        """It is known how the call of this amount ended."""
        amount.is_unknown = end == "unknown"
        if end == "did_not_happen":
            self.amounts.remove(amount)

    which = st.integers(0, 1)
    values = st.sampled_from(VALUES)
    ends = st.sampled_from(sorted(ENDS))

    @rule(front=which, who=which, value=values, end=ends, is_spared=st.booleans())
    def call(self, front: int, who: int, value: str, end: str, is_spared: bool) -> None:
        """A call that ends at once, or is refused."""
        asker, subject = self.fronts[front][1], self.subjects[who]
        caps = uses_of(subject, value, is_spared=is_spared)
        decision, opening = self.judged(asker, subject, value, caps), opening_of(self.action_id, subject, caps)
        if decision != "allow":
            answer = asker.ask(opening)
            assert isinstance(answer, Refusal if decision == "deny" else HeldByCap), answer
            return
        number = asker.begin(opening)
        amount = self.counted(subject, value, self.now)
        assert isinstance(asker.finish(opening, number, outcome_of(end)), Closed)
        self.settle(amount, end)

    @precondition(lambda self: len(self.running) < 3)
    @rule(front=which, who=which, value=values)
    def start(self, front: int, who: int, value: str) -> None:
        """A call that goes on."""
        asker, subject = self.fronts[front][1], self.subjects[who]
        caps = uses_of(subject, value, is_spared=True)
        if self.judged(asker, subject, value, caps) == "allow":
            number = asker.begin(opening := opening_of(self.action_id, subject, caps))
            self.running.append((asker, opening, number, self.counted(subject, value, self.now)))

    @precondition(lambda self: self.running)
    @rule(at=st.integers(0, 2), end=ends)
    def finish(self, at: int, end: str) -> None:
        asker, opening, number, amount = self.running.pop(at % len(self.running))
        assert isinstance(asker.finish(opening, number, outcome_of(end)), Closed)
        self.settle(amount, end)

    @rule(front=which, who=which, value=values)
    def hold(self, front: int, who: int, value: str) -> None:
        """A call that waits for a person, or is denied."""
        asker, subject = self.fronts[front][1], self.subjects[who]
        caps = uses_of(subject, value)
        decision, asked = self.judged(asker, subject, value, caps), hold_of(self.action_id, subject, caps, self.now)
        answer = asker.ask(asked)
        assert isinstance(answer, Refusal if decision == "deny" else HoldInForce), answer
        if decision != "deny":
            anchor = asked.approval.expires_at + HELD_SECONDS
            self.pending.append((asked, self.counted(subject, value, anchor)))

    def claimed(self, front: int, at: int) -> tuple[Asker, Hold, Amount, ApprovalRecord | None]:
        held, amount = self.pending.pop(at % len(self.pending))
        asker = self.fronts[front][1]
        if self.now >= held.approval.expires_at:
            asker.ask(make_expiry(held.approval))
            self.amounts.remove(amount)
            return asker, held, amount, None
        return asker, held, amount, asker.ask(make_claim(held.approval, asker.front_id))

    @precondition(lambda self: self.pending)
    @rule(front=which, at=st.integers(0, 5), end=ends)
    def approve(self, front: int, at: int, end: str) -> None:
        """At either front; one that has expired is ended."""
        asker, held, amount, claimed = self.claimed(front, at)
        if claimed is not None:
            number = asker.begin(opening := approved_of(held))
            assert isinstance(asker.finish(opening, number, outcome_of(end)), Closed)
            self.settle(amount, end)

    @precondition(lambda self: self.pending)
    @rule(front=which, at=st.integers(0, 5), fails=st.booleans())
    def deny(self, front: int, at: int, fails: bool) -> None:
        """Or the call could not be opened after its approval."""
        asker, held, amount, claimed = self.claimed(front, at)
        if claimed is None:
            return
        ended = make_denial(held.approval)
        if fails:
            outcome = outcome_text(claimed_by="alice", error_code="overloaded")
            event = call_event(event_type="ActionCall", decision="error", approval_id=held.approval.approval_id,
                               error_code="overloaded")  # fmt: skip
            ended = msgspec.structs.replace(ended, to_state="failed", outcome=outcome, event=event)
        asker.ask(ended)
        self.amounts.remove(amount)

    @precondition(lambda self: len(self.lost) < 2)
    @rule(front=which, who=which, value=values)
    def lose(self, front: int, who: int, value: str) -> None:
        """A call whose front and worker are gone before it ends."""
        (running, asker), subject = self.fronts[front], self.subjects[who]
        caps = uses_of(subject, value, is_spared=True)
        if self.judged(asker, subject, value, caps) == "allow":
            intent_id = lost_call(running, event={"action_id": self.action_id, "principal": subject}, caps=caps)
            self.lost.append((running, intent_id, self.counted(subject, value, self.now), self.now))

    @precondition(lambda self: self.lost)
    @rule(end=st.sampled_from(INTENT_OUTCOMES))
    def resolve(self, end: str) -> None:
        """An operator says whether it happened."""
        running, intent_id, amount, since = self.lost.pop(0)
        self.pass_time(max(0.0, since + make_terms().timeout_seconds + ENDED_SECONDS - self.now))
        told = running.front.ask(make_resolution(intent_id, end))
        assert told is not None
        assert not told.is_under_way
        self.settle(amount, end)

    @rule(seconds=st.sampled_from((0.5, 7, 59, 290, 301, 1790, 3570, 3599)))
    def pass_time(self, seconds: float) -> None:
        for one in self.notaries:
            one.clock.time += seconds

    @invariant()
    def sums_are_those_of_the_model(self) -> None:
        for per, seconds in WINDOWS.items():
            listed = {
                one.subject: one
                for one in self.fronts[0][1].ask(SumCap(self.action_id, POINTER, per, seconds)).sums
            }  # fmt: skip
            for subject in self.subjects if per == "principal" else [""]:
                least, most = self.sums(per, subject)
                assert least <= Decimal(DENY_ABOVE[per])
                shown = listed.get(subject)
                assert least <= (Decimal(0) if shown is None else Decimal(shown.total)) <= most
                unknown = self.sums(per, subject, unknown=True)
                gone = sum((one.value for _, _, one, _ in self.lost), Decimal(0))
                assert unknown[0] <= (Decimal(0) if shown is None else Decimal(shown.unknown)) <= unknown[1] + gone

    def teardown(self) -> None:
        """Leave no call running."""
        for asker, opening, number, _ in self.running:
            asker.finish(opening, number, outcome_of("happened"))


def play(fronts: list[tuple[Running, Asker]]) -> type[CappedCalls]:
    """A machine over these two fronts."""
    return type(
        "Played", (CappedCalls,), {"fronts": fronts, "notaries": list({id(one): one for one, _ in fronts}.values())}
    )
