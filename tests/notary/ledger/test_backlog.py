"""How much waits for each endpoint: bounded, counted once it is durable, and said once a minute."""

import msgspec
import pytest

from notary.ledger.outbox import Backlog, Queued
from tests.notary.samples import hooks
from tests.support.logs import capture_logs


@pytest.fixture
def now() -> list[float]:
    """The clock of a host that has just started."""
    return [0.5]


@pytest.fixture
def backlog(now: list[float]) -> Backlog:
    off = msgspec.structs.replace(hooks("off")[0], disable=True)
    return Backlog((*hooks("chat", "pager"), off), "1.2.3", lambda: now[0], max_waiting=3)


def queue(backlog: Backlog, name: str, count: int) -> Queued:
    """The counts of a transaction that writes so many deliveries."""
    queued = Queued()
    for _ in range(count):
        backlog.has_room(name, queued)
    return queued


def test_a_disabled_endpoint_does_not_count(backlog: Backlog) -> None:
    assert [row.name for row in backlog.endpoints] == ["chat", "pager"]
    assert backlog.waiting == {"chat": 0, "pager": 0}
    assert backlog.configured == {"chat", "pager", "off"}


def test_deliveries_beyond_the_bound_are_dropped_and_counted(backlog: Backlog) -> None:
    queued = queue(backlog, "chat", 5)
    assert (queued.written, queued.dropped) == ({"chat": 3}, {"chat": 2})
    assert backlog.waiting == {"chat": 0, "pager": 0}, "nothing is durable yet"
    backlog.follow(queued)
    assert (backlog.waiting, backlog.drops) == ({"chat": 3, "pager": 0}, {"chat": {"outbox_full": 2}})
    assert queue(backlog, "chat", 1).dropped == {"chat": 1}
    backlog.less("chat")
    assert queue(backlog, "chat", 2) == Queued({"chat": 1}, {"chat": 1})
    assert queue(backlog, "pager", 3) == Queued({"pager": 3}, {})


def test_the_number_waiting_is_that_of_the_outbox_and_never_negative(backlog: Backlog) -> None:
    backlog.found({"chat": 2, "gone": 7})
    assert backlog.waiting == {"chat": 2, "pager": 0}
    backlog.less("chat", 5)
    backlog.less("gone")
    assert backlog.waiting == {"chat": 0, "pager": 0}


def test_a_flood_of_drops_is_one_line_a_minute_for_each_endpoint(
    backlog: Backlog, now: list[float]
) -> None:  # fmt: skip
    with capture_logs() as lines:
        backlog.follow(queue(backlog, "chat", 5))
        for moment in (0.5, 60.4, 60.5):
            now[0] = moment
            backlog.follow(queue(backlog, "chat", 1))
        backlog.follow(Queued({}, {"pager": 1}))
    assert [(line["endpoint"], line["dropped"]) for line in lines] == [("chat", 2), ("chat", 5), ("pager", 1)]


def test_new_endpoints_get_later_events_and_counts_stay(backlog: Backlog) -> None:
    backlog.follow(queue(backlog, "chat", 5))
    backlog.use(hooks("chat", "new"))
    assert [row.name for row in backlog.endpoints] == ["chat", "new"]
    assert (backlog.waiting, backlog.drops) == ({"chat": 3, "new": 0}, {"chat": {"outbox_full": 2}})
    assert not backlog.has_room("chat", Queued())
    backlog.less("pager")
    assert backlog.waiting == {"chat": 3, "new": 0}
