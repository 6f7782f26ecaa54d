"""The export of events page by page: what is settled, what is asked of the ledger, and when."""

import pytest
import trio
from trio.testing import MockClock

from exporter import event_parts, events
from exporter.collector import NotExported
from exporter.events import EventExporter
from frontend.notary.client import NotaryClient
from frontend.notary.errors import NotaryUnavailable
from ipc.operations.exporting import MOST_EVENTS, EventPosition, FollowingEvents, NextEvents
from ipc.texts.canonical import sha256_hex
from tests.exporter.test_event_parts import PlayedCollector
from tests.exporter.test_logs import stored
from tests.support.worker_desk import until

PAGE = FollowingEvents(EventPosition(), [stored(event_id="evt_1"), stored(event_id="evt_2")])
END = EventPosition(2, sha256_hex(PAGE.events[-1]))


class Ledger(NotaryClient):
    """A notary that gives these pages, and then none."""

    def __init__(self, *pages: FollowingEvents | Exception) -> None:
        self.pages = list(pages)
        self.asked: list[NextEvents] = []
        self.asked_at: list[float] = []

    async def ask(self, operation: object, *, seconds: float | None = None) -> FollowingEvents:  # type: ignore[override]
        assert isinstance(operation, NextEvents)
        self.asked.append(operation)
        self.asked_at.append(trio.current_time())
        await trio.lowlevel.checkpoint()
        page = self.pages.pop(0) if self.pages else FollowingEvents(operation.after or EventPosition(), [])
        if isinstance(page, Exception):
            raise page
        return page


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "GATHER_SECONDS", 0.001)
    for name in ("FIRST_PAUSE_SECONDS", "MOST_PAUSE_SECONDS"):
        monkeypatch.setattr(event_parts, name, 0.001)


async def told_in_the_end(ledger: Ledger, collector: PlayedCollector, questions: int = 2) -> NextEvents:
    """The last of so many questions to the ledger."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(EventExporter(ledger, collector, "1.2.3").run)
        await until(lambda: len(ledger.asked) >= questions)
        nursery.cancel_scope.cancel()
    return ledger.asked[questions - 1]


async def test_a_page_that_is_taken_is_settled_by_the_next_question() -> None:
    ledger, collector = Ledger(PAGE), PlayedCollector(lambda _: 0)
    assert await told_in_the_end(ledger, collector) == NextEvents(END, exported=2, dropped=0)
    assert ledger.asked[0] == NextEvents(None)
    assert len(collector.sent) == 1


@pytest.mark.parametrize(("refused", "dropped"), [(1, 1), (2, 2), (9_000, 2)])
async def test_events_that_the_collector_refused_are_dropped_and_never_more_than_it_got(
    refused: int, dropped: int
) -> None:
    told = await told_in_the_end(Ledger(PAGE), PlayedCollector(lambda _: refused))
    assert told == NextEvents(END, exported=2 - dropped, dropped=dropped)


async def test_a_place_without_events_that_the_notary_names_is_where_the_export_goes_on() -> None:
    moved = FollowingEvents(EventPosition(40, "sha256:40"), [])
    told = await told_in_the_end(Ledger(PAGE, moved), PlayedCollector(lambda _: 0), questions=3)
    assert told == NextEvents(moved.after, exported=2, dropped=0)


@pytest.mark.parametrize(("events_in_page", "pause"), [(1, 1.0), (MOST_EVENTS, 0.0)])
async def test_the_ledger_is_asked_once_a_second_unless_many_events_wait(
    events_in_page: int, pause: float, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "GATHER_SECONDS", 1.0)
    ledger = Ledger(*[FollowingEvents(EventPosition(), [stored()] * events_in_page)] * 4)
    began = trio.current_time()
    with trio.move_on_after(3.5):
        await EventExporter(ledger, PlayedCollector(lambda _: 0), "1.2.3").run()
    assert [at - began for at in ledger.asked_at[:4]] == pytest.approx([0, pause, 2 * pause, 3 * pause])


async def test_a_notary_that_gives_no_events_is_asked_again() -> None:
    ledger = Ledger(NotaryUnavailable("gone"), PAGE)
    assert await told_in_the_end(ledger, PlayedCollector(lambda _: 0), questions=3) == NextEvents(
        END, exported=2, dropped=0
    )


async def test_the_export_follows_the_place_that_the_notary_names() -> None:
    moved = FollowingEvents(EventPosition(40, "sha256:40"), [stored()])
    told = await told_in_the_end(Ledger(PAGE, moved), PlayedCollector(lambda _: 0), questions=3)
    assert told.after == EventPosition(41, sha256_hex(moved.events[0]))


async def test_an_event_that_is_not_taken_is_asked_for_again_with_those_that_have_followed() -> None:
    alone = FollowingEvents(PAGE.after, PAGE.events[:1])
    collector = PlayedCollector(lambda positions: NotExported("no", 403) if 1 in positions else 0)
    told = await told_in_the_end(Ledger(alone, PAGE), collector, questions=3)
    assert told == NextEvents(END, exported=1, dropped=1)
    assert set(collector.taken) == {2}
