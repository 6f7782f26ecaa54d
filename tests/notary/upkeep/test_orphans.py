"""Deliveries to endpoints that are no longer configured: the notary gives up these alone, and records the reason."""

from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from ipc.messages.control import FollowSettings, SettingsFollowed
from ipc.messages.notarising import NotaryReady
from ipc.operations.status import ReadLedger
from ipc.reloadable import reloadable_of
from notary.ledger.outbox import GIVEN_UP_AT_ONCE
from notary.opening import open_state
from notary.operations.delivering import Orphaned
from notary.operations.table import PERFORMERS
from notary.state import NotaryState
from notary.units.runner import TransactionRunner
from notary.units.tasks import Task
from notary.upkeep.orphans import Orphans
from tests.notary.conftest import StartNotary
from tests.notary.running import HandClock, Running, settings_in
from tests.notary.samples import NOW_MS, changed, hooks, make_refuse, notify
from tests.support.gateway import wait_for
from tests.support.logs import capture_logs
from tests.support.notary_thread import LIMITS

SAID = "webhooks were given up: their endpoint is not configured any more"


@pytest.fixture
def logs() -> Iterator[list[Any]]:
    with capture_logs() as lines:
        yield lines


def given_up(notary: Running) -> dict[str, int]:
    """Endpoint -> dead letters."""
    return dict(notary.stored("SELECT endpoint, count(*) FROM given_up GROUP BY endpoint"))


def said(logs: list[Any]) -> list[tuple[str, int]]:
    return [(one["endpoint"], one["count"]) for one in logs if one["event"] == SAID]


def configure(notary: Running, *names: str, disabled: str = "") -> None:
    """Have the notary follow a reload that leaves these endpoints."""
    rows = tuple(changed(row, disable=row.name == disabled) for row in hooks(*names))
    reloadable = reloadable_of(msgspec.structs.replace(notary.settings, webhooks=rows))
    notary.thread.tell(FollowSettings("r", reloadable))
    while not isinstance(told := cast(Any, notary.thread.hears()), SettingsFollowed):
        assert told == NotaryReady()
    assert told == SettingsFollowed("r")


def test_deliveries_to_removed_endpoints_are_given_up_at_a_start_and_counted(
    start_notary: StartNotary, logs: list[Any]
) -> None:
    notary = start_notary(webhooks=hooks("chat", "gone", "off"))
    count = GIVEN_UP_AT_ONCE + 7
    for number in notary.front.send(*[make_refuse()] * count):
        notary.front.answer(number)
    notary.settings = msgspec.structs.replace(
        notary.settings, webhooks=(*hooks("chat"), changed(hooks("off")[0], disable=True))
    )
    front = notary.restart()
    wait_for(lambda: said(logs) == [("gone", count)], "a line that says so")
    assert given_up(notary) == {"gone": count}
    assert notary.stored("SELECT DISTINCT at FROM given_up") == [NOW_MS]
    told = front.ask(ReadLedger())
    assert told.waiting == {"chat": count, "off": count}, "a disabled endpoint keeps what waits for it"
    assert told.drops == {"other": {"not_configured": count}}


def test_a_reload_stops_deliveries_to_removed_endpoints_and_starts_those_to_new_ones(
    start_notary: StartNotary, logs: list[Any]
) -> None:
    notary = start_notary(webhooks=hooks("chat", "gone"))
    notify(notary.front)
    configure(notary, "chat", "new")
    wait_for(lambda: said(logs) == [("gone", 1)], "a line that says so")
    notify(notary.front)
    assert notary.front.ask(ReadLedger()).waiting == {"chat": 2, "new": 1}
    configure(notary, "chat", "new", disabled="chat")
    notify(notary.front)
    assert notary.front.ask(ReadLedger()).waiting == {"chat": 2, "new": 2}
    assert given_up(notary) == {"gone": 1}


class Alone:
    """A notary of the endpoint `gone` without channels, whose time the test sets, and what waits for it there."""

    def __init__(self, folder: Path) -> None:
        self.clock, self.now = HandClock(), 0.5
        settings = settings_in(folder, webhooks=hooks("gone"))
        self.state: NotaryState = open_state(settings, self.clock, limits=LIMITS)[0]
        self.units = TransactionRunner(self.state, PERFORMERS)
        self.units.perform([Task("front-1", 1, make_refuse())])
        self.orphans = Orphans(self.state, lambda: self.now)

    def configure(self, *names: str) -> None:
        self.state.backlog.use(hooks(*names))

    def give_up(self) -> Task | None:
        """As the notary does; what was due."""
        if task := self.orphans.due():
            self.orphans.heard(task, self.units.perform((task,))[0])
        return task


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Alone]:
    made = Alone(tmp_path)
    yield made
    made.state.database.close()


def test_they_are_looked_for_at_the_start_and_whenever_other_endpoints_are_configured(alone: Alone) -> None:
    assert alone.orphans.patience() == 0.0
    assert alone.give_up() is None
    assert alone.orphans.patience() == inf
    alone.configure()
    assert alone.give_up() is None, "nobody has said so"
    alone.orphans.look_again()
    assert alone.orphans.patience() == 0.0
    assert alone.give_up() == Task("", 0, Orphaned("gone"))
    assert alone.orphans.patience() == 0.0, "there may be more"
    assert alone.give_up() is None
    assert alone.orphans.patience() == inf


def test_a_failed_give_up_is_tried_again_a_second_later_and_logged_once(alone: Alone) -> None:
    alone.configure()
    alone.clock.wrong = "it stepped back"
    with capture_logs() as lines:
        for _ in range(3):
            assert alone.orphans.patience() == 0.0
            assert alone.give_up() == Task("", 0, Orphaned("gone"))
            assert alone.orphans.patience() == 1.0
            assert alone.give_up() is None
            alone.now += 1.0
    assert [(line["event"], line["cause"]) for line in lines] == [(FAILING, "it stepped back")]


FAILING = "webhooks of endpoints that are gone could not be given up; it is tried again"
