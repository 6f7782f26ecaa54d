"""Units of work: what one of them does to the others, and what is remembered of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from ipc.evidence.events import AuditEvent
from ipc.operations.calls import Entered, ProofRecord, UseProof
from ipc.operations.evidence import WriteEvent
from notary.database import DatabaseGone, OpenTransaction
from notary.ledger.page_ring import SLOT_BYTES
from notary.opening import open_state
from notary.operations.table import PERFORMERS
from notary.state import NotaryState
from notary.units.performing import Performer
from notary.units.runner import TransactionRunner, remembered
from notary.units.tasks import Task, TaskOutcome
from notary.units.transaction import Transaction
from tests.notary.running import HandClock, settings_in
from tests.notary.samples import NOW, make_claim, make_denial, make_hold, make_issue, make_revoke
from tests.support.notary_thread import LIMITS


@pytest.fixture
def state(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NotaryState]:
    """The state of a notary without channels, with the limits of the test."""
    state, _ = open_state(settings_in(tmp_path), HandClock(), limits=getattr(request, "param", LIMITS))
    yield state
    state.database.close()


def note(number: int) -> Task:
    """An event of a front."""
    event = AuditEvent(event_type="GatewayStarted", trace_id=f"trc_{number}", decision="allow")
    return Task("front-1", number, WriteEvent(event))


def breaks(unit: Transaction, asked: UseProof) -> Entered:
    """Fail with an unexpected error."""
    raise RuntimeError("ours")


def test_every_answer_is_remembered_when_tasks_are_performed_one_by_one(state: NotaryState) -> None:
    """None of them is sent before all are done: killed in between, each would be asked again."""
    units = TransactionRunner(state, {**PERFORMERS, UseProof: Performer(breaks, writes=True)})
    tasks = [
        note(1),
        Task("front-1", 2, UseProof(ProofRecord("p", NOW))),
        note(3),
        Task("front-2", 1, note(4).operation),
    ]
    outcomes = units.perform(tasks)
    assert [outcome.problem for outcome in outcomes] == [None, "fault", None, None]
    with state.database.unit(writes=False) as connection:
        known: dict[tuple[str, int], TaskOutcome] = remembered(connection)
    assert set(known) == {("front-1", 1), ("front-1", 3), ("front-2", 1)}
    units.perform([note(5)])
    with state.database.unit(writes=False) as connection:
        assert set(remembered(connection)) == {("front-1", 5)}


def test_the_end_of_a_hold_is_remembered_as_something_that_is_to_leave_the_log_of_the_file(state: NotaryState) -> None:
    units, hold = TransactionRunner(state, PERFORMERS), make_hold()
    told = []
    for number, asked in enumerate((hold, make_claim(hold.approval), make_denial(hold.approval))):
        assert units.perform([Task("front-1", number, asked)])[0].value is not None
        told.append(state.has_erased)
    assert told == [False, False, True]


def test_a_revocation_whose_unit_failed_although_it_was_committed_is_in_force(
    state: NotaryState, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = state.database.unit

    @contextmanager
    def answerless(**asked: bool) -> Iterator[OpenTransaction]:
        with begin(**asked) as connection:
            yield connection
        raise DatabaseGone("the answer was lost")

    units = TransactionRunner(state, PERFORMERS)
    with monkeypatch.context() as patching:
        patching.setattr(state.database, "unit", answerless)
        (failed,) = units.perform([Task("front-1", 1, make_revoke())])
    (entered,) = units.perform([Task("front-1", 2, UseProof(ProofRecord("p", NOW)))])
    assert (failed.problem, entered.value) == ("unavailable", Entered(is_fresh=True, epoch=1))


@pytest.mark.parametrize("state", [replace(LIMITS, unsettled_slots=1)], indirect=True)
def test_answers_that_no_journal_takes_are_remembered_as_they_are(state: NotaryState) -> None:
    units = TransactionRunner(state, PERFORMERS)
    tasks = [Task("front-1", number, make_issue()) for number in range(40)]
    told = [outcome.remembered() for outcome in units.perform(tasks)]
    assert sum(map(len, told)) > SLOT_BYTES
    with state.database.unit(writes=False) as connection:
        known = remembered(connection)
    assert {number: outcome.encoded() for (_, number), outcome in known.items()} == dict(enumerate(told))
