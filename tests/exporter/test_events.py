"""The export of events page by page: what is settled, what waits, and what the log says."""

import pytest
import trio
from trio.testing import MockClock

from exporter import events
from exporter.collector import EVENTS, NotExported, OtlpSignal
from exporter.events import EventExporter
from frontend.notary.client import NotaryClient
from frontend.notary.errors import NotaryUnavailable
from ipc.operations.exporting import MOST_EVENTS, EventPosition, FollowingEvents, NextEvents
from ipc.texts.canonical import sha256_hex
from tests.exporter.test_logs import stored
from tests.support.logs import capture_logs
from tests.support.worker_desk import until

PAGE = FollowingEvents(EventPosition(), [stored(event_id="evt_1"), stored(event_id="evt_2")])
END = EventPosition(2, sha256_hex(PAGE.events[-1]))
AWAY = "the collector takes no events: they wait in the ledger"
REFUSED = "the collector refuses events: they are dropped"
BACK = "the collector takes events again"


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


class Answers:
    """A collector that answers so, and then takes everything."""

    def __init__(self, *answers: int | NotExported) -> None:
        self.answers = list(answers)
        self.sent: list[bytes] = []

    async def send(self, body: bytes, signal: OtlpSignal) -> int:
        assert signal is EVENTS
        self.sent.append(body)
        answer = self.answers.pop(0) if self.answers else 0
        if isinstance(answer, NotExported):
            raise answer
        return answer


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GATHER_SECONDS", "FIRST_PAUSE_SECONDS", "MOST_PAUSE_SECONDS"):
        monkeypatch.setattr(events, name, 0.001)


async def told_in_the_end(ledger: Ledger, collector: Answers, questions: int = 2) -> NextEvents:
    """The last of so many questions to the ledger."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(EventExporter(ledger, collector, "1").run)
        await until(lambda: len(ledger.asked) >= questions)
        nursery.cancel_scope.cancel()
    return ledger.asked[questions - 1]


async def test_a_page_that_is_taken_is_settled_by_the_next_question() -> None:
    ledger, collector = Ledger(PAGE), Answers()
    assert await told_in_the_end(ledger, collector) == NextEvents(END, exported=2, dropped=0)
    assert ledger.asked[0] == NextEvents(None)
    assert len(collector.sent) == 1


@pytest.mark.parametrize("status", [0, 401, 403, 404, 503, 507])
async def test_a_page_that_is_not_taken_is_sent_again_until_it_is_and_told_once(status: int) -> None:
    ledger, collector = Ledger(PAGE), Answers(NotExported("away", status), NotExported("away", status))
    with capture_logs() as lines:
        assert await told_in_the_end(ledger, collector) == NextEvents(END, exported=2, dropped=0)
    assert len(set(collector.sent)) == 1
    assert len(collector.sent) == 3
    assert [line["event"] for line in lines] == [AWAY, BACK]


@pytest.mark.parametrize("status", [400, 413, 500, 501])
async def test_a_page_that_the_collector_would_refuse_again_is_dropped_and_counted(status: int) -> None:
    with capture_logs() as lines:
        told = await told_in_the_end(Ledger(PAGE), Answers(NotExported("no", status)))
    assert told == NextEvents(END, exported=0, dropped=2)
    assert [line["event"] for line in lines] == [REFUSED]


@pytest.mark.parametrize(("refused", "dropped"), [(1, 1), (2, 2), (9_000, 2)])
async def test_events_that_the_collector_refused_are_dropped_and_never_more_than_it_got(
    refused: int, dropped: int
) -> None:
    told = await told_in_the_end(Ledger(PAGE), Answers(refused))
    assert told == NextEvents(END, exported=2 - dropped, dropped=dropped)


async def test_a_place_without_events_that_the_notary_names_is_where_the_export_goes_on() -> None:
    moved = FollowingEvents(EventPosition(40, "sha256:40"), [])
    told = await told_in_the_end(Ledger(PAGE, moved), Answers(), questions=3)
    assert told == NextEvents(moved.after, exported=2, dropped=0)


@pytest.mark.parametrize(("events_in_page", "pause"), [(1, 1.0), (MOST_EVENTS, 0.0)])
async def test_the_ledger_is_asked_once_a_second_unless_many_events_wait(
    events_in_page: int, pause: float, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "GATHER_SECONDS", 1.0)
    ledger = Ledger(*[FollowingEvents(EventPosition(), [stored()] * events_in_page)] * 4)
    began = trio.current_time()
    with trio.move_on_after(3.5):
        await EventExporter(ledger, Answers(), "1").run()
    assert [at - began for at in ledger.asked_at[:4]] == pytest.approx([0, pause, 2 * pause, 3 * pause])


async def test_a_notary_that_gives_no_events_is_asked_again() -> None:
    ledger = Ledger(NotaryUnavailable("gone"), PAGE)
    assert await told_in_the_end(ledger, Answers(), questions=3) == NextEvents(END, exported=2, dropped=0)


async def test_the_export_follows_the_place_that_the_notary_names() -> None:
    moved = FollowingEvents(EventPosition(40, "sha256:40"), [stored()])
    told = await told_in_the_end(Ledger(PAGE, moved), Answers(), questions=3)
    assert told.after == EventPosition(41, sha256_hex(moved.events[0]))
