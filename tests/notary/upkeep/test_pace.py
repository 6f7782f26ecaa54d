"""Reads of the notary in slices of time, in turns by who asks: with a clock that each read moves on."""

from ipc.evidence.records import EventQuery
from ipc.limits import MAX_OPERATIONS
from ipc.operations.evidence import QueryEvents, ShowReceipt
from ipc.operations.exporting import NextEvents
from ipc.operations.holds import ListHolds
from ipc.operations.leases import ReadBudget
from ipc.operations.status import ReadLedger
from notary.units.tasks import Task
from notary.upkeep.pace import SLICE_SECONDS, PacedReads


class Reader:
    """Performs reads whose receipt id is `<asker> <seconds>`."""

    def __init__(self) -> None:
        self.now = 0.0
        self.done: list[str] = []
        self.reads = PacedReads(self.perform, lambda: self.now)
        self._number = 0

    def ask(self, asker: str, seconds: float) -> bool:
        self._number += 1
        return self.reads.takes(Task("front", self._number, ShowReceipt(f"{asker} {seconds}", asker)))

    def perform(self, tasks: list[Task]) -> None:
        (task,) = tasks
        assert isinstance(task.operation, ShowReceipt)
        asker, seconds = task.operation.receipt_id.split()
        self.now += float(seconds)
        self.done.append(asker)


def test_a_slice_ends_with_the_read_that_uses_it_up() -> None:
    reader = Reader()
    for _ in range(10):
        assert reader.ask("heavy", SLICE_SECONDS / 2)
    assert reader.reads.perform_slice()
    assert (len(reader.done), len(reader.reads)) == (2, 8)


def test_a_polite_asker_waits_for_no_queue_of_another() -> None:
    reader = Reader()
    for _ in range(100):
        reader.ask("heavy", SLICE_SECONDS * 2)
    for _ in range(20):
        reader.reads.perform_slice()
    reader.ask("polite", SLICE_SECONDS / 100)
    reader.reads.perform_slice()
    assert reader.done == [*["heavy"] * 20, "polite", "heavy"]


def test_a_read_without_an_asker_waits_for_no_queue_of_the_exporter() -> None:
    done, now = list[str](), 0.0

    def perform(tasks: list[Task]) -> None:
        nonlocal now
        now += SLICE_SECONDS * 2
        done.extend(type(task.operation).__name__ for task in tasks)

    reads = PacedReads(perform, lambda: now)
    for number in range(100):
        reads.takes(Task("exporter", number, NextEvents()))
    for _ in range(20):
        reads.perform_slice()
    reads.takes(Task("front", 1, QueryEvents(EventQuery())))
    reads.perform_slice()
    assert done == [*["NextEvents"] * 20, "QueryEvents"]


def test_an_asker_gets_time_and_not_turns() -> None:
    reader = Reader()
    for _ in range(200):
        reader.ask("cheap", SLICE_SECONDS * 2)
    for _ in range(50):
        reader.ask("dear", SLICE_SECONDS * 20)
    for _ in range(110):
        reader.reads.perform_slice()
    assert 9 <= reader.done.count("cheap") / reader.done.count("dear") <= 12


def test_writes_and_internal_reads_do_not_wait() -> None:
    reader = Reader()
    for operation in (ReadLedger(), ReadBudget("sess_1"), ListHolds(None, 5)):
        assert not reader.reads.takes(Task("front", 1, operation))
    assert reader.reads.takes(Task("front", 2, QueryEvents(EventQuery(), "operator o")))


def test_a_bounded_number_of_reads_waits() -> None:
    reader = Reader()
    assert sum(reader.ask("heavy", 1.0) for _ in range(MAX_OPERATIONS + 5)) == MAX_OPERATIONS


def test_an_empty_queue_is_reported() -> None:
    assert not Reader().reads.perform_slice()
