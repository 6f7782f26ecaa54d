"""Events that the collector does not take: what is sent again, what is dropped, and what the log says."""

from collections.abc import Callable

import pytest

from exporter import event_parts
from exporter.collector import EVENTS, NotExported, OtlpSignal
from exporter.event_parts import MOST_TRIES, EventPart, EventParts
from tests.exporter.test_logs import records, stored
from tests.support.logs import capture_logs
from tests.support.otlp_receiver import attributes

AWAY = "the collector takes no events: they wait in the ledger"
REFUSED = "the collector refuses events: they are dropped"
REFUSED_ONE = "the collector refuses an event and takes others: it is dropped"
BACK = "the collector takes events again"
FINAL = [400, 413, 500, 501]
NOT_TAKEN = [0, 401, 403, 404, 503, 507]


class PlayedCollector:
    """A collector that answers by the positions of the events in a request: how many it refuses of those it takes, or
    the status by which it takes none."""

    def __init__(self, answer: Callable[[list[int]], int | NotExported]) -> None:
        self.answer = answer
        self.sent: list[list[int]] = []
        self.taken: list[int] = []

    async def send(self, body: bytes, signal: OtlpSignal) -> int:
        assert signal is EVENTS
        positions = [attributes(record)["gateway.event.position"] for record in records(body)]
        self.sent.append(positions)
        answer = self.answer(positions)
        if isinstance(answer, NotExported):
            raise answer
        self.taken += positions
        return answer


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIRST_PAUSE_SECONDS", "MOST_PAUSE_SECONDS"):
        monkeypatch.setattr(event_parts, name, 0.001)


def page(events: int, first: int = 1) -> EventPart:
    return EventPart(first, [stored()] * events)


def parts(collector: PlayedCollector) -> EventParts:
    return EventParts(collector, "1.2.3")


@pytest.mark.parametrize("status", NOT_TAKEN)
@pytest.mark.parametrize("events", [2, 512])
async def test_events_are_sent_again_while_the_collector_takes_none_and_that_is_told_once(
    status: int, events: int
) -> None:
    is_away = iter([True] * 6)
    collector = PlayedCollector(lambda _: NotExported("away", status) if next(is_away, False) else 0)
    with capture_logs() as lines:
        assert await parts(collector).settle(page(events)) == (events, 0)
    assert collector.taken == list(range(1, events + 1))
    assert [line["event"] for line in lines] == [AWAY, BACK]


@pytest.mark.parametrize("status", FINAL)
@pytest.mark.parametrize("events", [1, 512])
async def test_a_page_is_dropped_by_a_collector_that_refuses_every_event_with_few_requests(
    status: int, events: int
) -> None:
    collector = PlayedCollector(lambda _: NotExported("no", status))
    with capture_logs() as lines:
        sender = parts(collector)
        assert await sender.settle(page(events, first=7)) == (events, events)
        assert await sender.settle(page(events, first=7 + events)) == (events, events)
    assert len(collector.sent) <= 8
    assert [(line["event"], line["position"], line["count"]) for line in lines] == [(REFUSED, 7, events)]


@pytest.mark.parametrize("status", [*FINAL, *NOT_TAKEN])
@pytest.mark.parametrize("poisoned", [{1}, {512}, {300, 301, 302}])
async def test_an_event_that_is_never_taken_is_dropped_and_named_and_costs_no_other(
    status: int, poisoned: set[int]
) -> None:
    collector = PlayedCollector(
        lambda positions: 0 if poisoned.isdisjoint(positions) else NotExported("no", status)
    )  # fmt: skip
    sender = parts(collector)
    with capture_logs() as lines:
        assert await sender.settle(page(512)) == (512, len(poisoned))
        assert await sender.settle(page(1, first=513)) == (1, 0)
    assert set(collector.taken) == set(range(1, 514)) - poisoned
    assert [(line["event"], line["position"]) for line in lines] == [(REFUSED_ONE, one) for one in sorted(poisoned)]
    assert len(collector.sent) < 100


async def test_an_event_waits_while_the_collector_takes_no_other_in_between() -> None:
    """It is away now and then, as it happens: that says nothing of an event."""
    is_away = iter([False, *[True] * (4 * MOST_TRIES)])
    collector = PlayedCollector(lambda _: NotExported("away", 503) if next(is_away, False) else 0)
    sender = parts(collector)
    assert await sender.settle(page(1)) == (1, 0)
    assert await sender.settle(page(1, first=2)) == (1, 0)
    assert 2 in collector.taken


async def test_a_request_that_is_too_large_is_sent_in_parts() -> None:
    collector = PlayedCollector(lambda positions: 0 if len(positions) <= 100 else NotExported("too large", 413))
    assert await parts(collector).settle(page(512)) == (512, 0)
    assert set(collector.taken) == set(range(1, 513))
