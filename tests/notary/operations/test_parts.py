"""A database of which one thing is damaged: every operation that needs it says which part of the store that is."""

from collections.abc import Callable
from typing import Any

import pytest

from ipc.operations.calls import ProofRecord, UseProof, Withdraw
from ipc.operations.holds import DueHolds, GetHold, ListHolds, OrphanedHolds, UnsettledHolds
from ipc.operations.keys import CheckKeys, FollowKeys
from ipc.operations.leases import ListSessions, ReadBudget
from ipc.operations.status import ReadStore
from notary.signing.rotation import Signers
from tests.notary.running import Running
from tests.notary.samples import (
    NOW,
    held_and_claimed,
    make_approval,
    make_approved,
    make_claim,
    make_denial,
    make_expiry,
    make_hold,
    make_issue,
    make_open,
    make_refuse,
)
from tests.support.asking import Asker, Told


def gone(table: str) -> str:
    return f"ALTER TABLE {table} RENAME TO elsewhere"


def unwritable(event: str) -> str:
    """It can be read, and refuses this: `INSERT ON table`."""
    return f"CREATE TRIGGER refuses BEFORE {event} BEGIN SELECT RAISE(ABORT, 'damaged'); END"


def failed_with(front: Asker, operation: Any) -> tuple[str | None, str | None]:
    with pytest.raises(Told) as told:
        front.ask(operation)
    return told.value.problem, told.value.part


def approved_call(front: Asker, **given: Any) -> Any:
    approval = held_and_claimed(front, **given)
    return make_approved(approval)


def begun(front: Asker, asked: Any) -> Withdraw:
    """Open the call and return the withdrawal of it before a worker has begun."""
    front.begin(asked)
    return Withdraw(asked.intent_id, "error", "overloaded")


def held(front: Asker, **given: Any) -> Any:
    approval = make_approval(**given)
    front.ask(make_hold(approval, calls_per_hour=9))
    return approval


def listed(front: Asker, **given: Any) -> ListSessions:
    """Issue such a lease and return the question that lists its session."""
    front.ask(make_issue(**given))
    return ListSessions(5)


Prepare = Callable[[Asker], Any]
DAMAGED: list[tuple[str, Prepare, str]] = [
    (gone("proofs"), lambda _: UseProof(ProofRecord("p", NOW)), "store"),
    (gone("proofs"), lambda _: ReadStore(), "store"),
    (gone("approvals"), lambda _: ReadStore(), "approvals"),
    (gone("approvals"), lambda _: GetHold("apr_1"), "approvals"),
    (gone("approvals"), lambda _: make_refuse(unless_held=True), "approvals"),
    (gone("approvals"), lambda _: ListHolds(None, 5), "approvals"),
    (gone("approvals"), lambda _: DueHolds(5), "approvals"),
    (gone("approvals"), lambda _: OrphanedHolds(()), "approvals"),
    (gone("approvals"), lambda _: UnsettledHolds(()), "approvals"),
    (gone("approvals"), lambda front: make_claim(held(front)), "approvals"),
    (gone("approvals"), approved_call, "approvals"),
    (gone("approvals"), lambda front: begun(front, approved_call(front)), "approvals"),
    ("ALTER TABLE approvals RENAME COLUMN bytes TO elsewhere", lambda _: make_hold(), "approvals"),
    (unwritable("INSERT ON approvals"), lambda _: make_hold(), "approvals"),
    (unwritable("UPDATE ON approvals"), lambda front: make_claim(held(front)), "approvals"),
    (gone("quota_sessions"), lambda _: make_issue(max_sessions=1), "budget"),
    (unwritable("INSERT ON quota_sessions"), lambda _: make_issue(max_sessions=1), "budget"),
    (unwritable("INSERT ON budgets"), lambda _: make_issue(max_calls=1), "budget"),
    (gone("budgets"), lambda _: ReadBudget("ses_1"), "budget"),
    (gone("quota_calls"), lambda _: make_open(calls_per_hour=1), "budget"),
    (unwritable("INSERT ON quota_calls"), lambda _: make_open(calls_per_hour=1), "budget"),
    (gone("budgets"), lambda _: make_hold(has_budget=True), "budget"),
    (gone("quota_calls"), lambda front: begun(front, make_open(calls_per_hour=1)), "budget"),
    (gone("quota_holds"), lambda front: make_denial(held_and_claimed(front)), "budget"),
    (gone("budgets"), lambda front: listed(front, max_calls=1), "budget"),
    (gone("approvals"), listed, "approvals"),
    ("ALTER TABLE intents RENAME COLUMN approval_id TO elsewhere", approved_call, "ledger"),
    (gone("journal"), lambda _: make_open(), "ledger"),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "prepare", "part"), DAMAGED)
def test_an_operation_on_a_damaged_part_of_the_store_names_that_part(
    notary: Running, damage: str, prepare: Prepare, part: str
) -> None:
    operation = prepare(notary.front)
    notary.execute(damage)
    assert failed_with(notary.front, operation) == ("unavailable", part)


def test_a_call_that_can_not_be_given_back_is_a_matter_of_the_budget(notary: Running) -> None:
    front = notary.front
    session_id = front.ask(make_issue(max_calls=2)).session_id
    approval = held(front, has_budget=True, session_id=session_id)
    notary.clock.time = NOW + 300
    notary.execute(gone("budgets"))
    assert failed_with(front, make_expiry(approval, refunds=True)) == ("unavailable", "budget")


@pytest.mark.parametrize("asked", [CheckKeys(), FollowKeys()])
def test_a_fault_while_keys_are_read_is_a_matter_of_the_keys(
    notary: Running, monkeypatch: pytest.MonkeyPatch, asked: Any
) -> None:
    def break_down(_: Signers) -> None:
        raise RuntimeError

    monkeypatch.setattr(Signers, "read", break_down)
    assert failed_with(notary.front, asked) == ("fault", "keys")
