"""Checkpoints that webhooks tell of: the newest, once, at most one in a pause, and none because of another."""

import json
from collections.abc import Iterator
from math import inf
from typing import Any
from uuid import UUID

import msgspec
import pytest
from msgspec.structs import replace

from ipc.evidence.events import ADMIN_DRAIN
from ipc.operations.deliveries import NextDelivery
from ipc.operations.evidence import ReadCheckpoint
from ipc.process.clock import parse_iso
from notary.checkpoints import public_keys
from notary.ledger.message import MAX_BODY_BYTES
from notary.opening import open_state
from notary.state import NotaryState
from notary.tree.notes import opened_checkpoint, signed
from notary.upkeep.announcing import KIND, Announcements
from tests.notary.conftest import StartNotary
from tests.notary.running import Running
from tests.notary.samples import changed, claim_one, hooks, make_note, settled
from tests.support.gateway import wait_for
from tests.support.logs import capture_logs
from tests.support.notary_thread import LIMITS

PAUSE = LIMITS.announce_seconds
TOLD = tuple(changed(row, events=(KIND,)) for row in hooks("chat"))
_INSERT = "INSERT INTO checkpoints (size, time, note) VALUES (?, ?, ?)"


def payloads(notary: Running) -> list[dict[str, Any]]:
    """The queued payloads, oldest first."""
    return [json.loads(row) for row in notary.stored("SELECT payload FROM outbox ORDER BY seq")]


def sizes(notary: Running) -> list[int]:
    return [payload["data"]["size"] for payload in payloads(notary)]


@pytest.fixture
def telling(start_notary: StartNotary) -> Running:
    """A notary whose one endpoint asked for checkpoints, and which has a pause that no test lives to see the end of."""
    return start_notary(webhooks=TOLD, limits=replace(LIMITS, announce_seconds=3600.0, checkpoint_seconds=0.05))


def test_the_first_checkpoint_is_announced_with_its_note_and_wakes_the_deliverer(telling: Running) -> None:
    deliverer = telling.deliverer
    assert deliverer.ask(NextDelivery("chat")) is None
    telling.front.ask(make_note())
    shown = telling.front.ask(ReadCheckpoint())
    (told,) = wait_for(lambda: payloads(telling), "a delivery")
    made = opened_checkpoint(told["data"]["checkpoint"], public_keys(telling.thread.state.signers))
    assert told == {
        "type": KIND, "id": told["id"], "timestamp": made.time, "gateway_version": telling.settings.version,
        "data": {
            "checkpoint": shown.checkpoint, "origin": "localhost", "size": 1, "root": shown.root, "time": shown.time,
            "unresolved_intents": 0,
        },
    }  # fmt: skip
    assert told["id"].startswith("chk_")
    assert UUID(told["id"].removeprefix("chk_")).version == 7
    assert telling.stored("SELECT due FROM outbox") == [round(parse_iso(made.time) * 1000)]
    wait_for(lambda: (deliverer.ask(NextDelivery("chat")), deliverer.woken)[1], "a wake-up")
    assert deliverer.woken == [("chat",)]
    delivery = claim_one(telling.front)
    assert (delivery.event_id, delivery.kind) == (told["id"], KIND)
    assert len(delivery.payload) < MAX_BODY_BYTES


def test_an_endpoint_gets_announcements_only_if_it_asks_for_them_by_name(start_notary: StartNotary) -> None:
    notary = start_notary(webhooks=hooks("chat"))
    notary.front.ask(make_note())
    notary.stop()
    assert payloads(notary) == []


def test_a_quiet_gateway_stays_quiet_once_it_has_told(telling: Running) -> None:
    """An announcement writes no event: the event would lead to a checkpoint, which would be announced, in an endless
    loop."""
    telling.front.ask(make_note())
    wait_for(lambda: payloads(telling), "a delivery")
    before = telling.front.ask(ReadCheckpoint())
    telling.front.ask(settled(claim_one(telling.front)))
    assert payloads(telling) == []
    assert telling.front.ask(ReadCheckpoint()) == before
    assert len(telling.events()) == before.size == 1
    service = telling.thread._service
    assert service._announcements.patience() == service._checkpoints.patience() == inf
    telling.restart()
    telling.stop()
    assert payloads(telling) == []


def test_a_drain_is_announced_before_the_pause_is_over_with_its_event(telling: Running) -> None:
    telling.front.ask(make_note())
    wait_for(lambda: payloads(telling), "a delivery")
    telling.front.ask(make_note())
    assert telling.front.ask(ReadCheckpoint()).size == 2
    telling.front.ask(make_note(event_type=ADMIN_DRAIN))
    wait_for(lambda: len(payloads(telling)) == 2, "another one")
    assert sizes(telling) == [1, 3]


def test_a_stopping_notary_announces_the_last_write_and_the_next_one_does_not_repeat_it(telling: Running) -> None:
    telling.front.ask(make_note())
    wait_for(lambda: payloads(telling), "a delivery")
    telling.front.ask(make_note())
    telling.stop()
    assert sizes(telling) == [1, 2]
    telling.start()
    telling.stop()
    assert sizes(telling) == [1, 2]


class Still:
    """Announcements in a folder in which nothing else is at work, and whose time the test moves."""

    def __init__(self, notary: Running) -> None:
        self.notary = notary
        self.now = 1000.0
        self.state, self.made = self._opened()

    def _opened(self) -> tuple[NotaryState, Announcements]:
        settings = msgspec.structs.replace(self.notary.settings, webhooks=TOLD)
        state = open_state(settings, self.notary.clock, limits=LIMITS)[0]
        return state, Announcements(state, lambda: self.now)

    def open_again(self) -> None:
        """As another notary does. It would not start over checkpoints that its tree and its file don't have."""
        with self.state.database.unit() as connection:
            connection.execute("DELETE FROM checkpoints WHERE size > (SELECT count(*) FROM events)")
        self.state.database.close()
        self.state, self.made = self._opened()

    def pass_by(self, seconds: float) -> None:
        """For both clocks."""
        self.now += seconds
        self.notary.clock.time += seconds

    def checkpoint(self) -> int:
        """Wait until the next checkpoint is signed; return its size."""
        state = self.state
        assert state.checkpoint is not None
        with state.database.unit() as connection:
            (size,) = connection.execute("SELECT max(size) + 1 FROM checkpoints").fetchone()
            made = msgspec.structs.replace(state.checkpoint, size=size, time=state.clock.iso())
            note = signed(made.text, made.origin, state.signers.keys.checkpoint.private)
            connection.execute(_INSERT, (made.size, made.time, note))
        state.checkpoint = made
        return made.size


@pytest.fixture
def still(notary: Running) -> Iterator[Still]:
    notary.front.ask(make_note())
    notary.stop()
    opened = Still(notary)
    yield opened
    opened.state.database.close()


def test_the_newest_checkpoint_of_a_pause_is_announced_at_its_end(still: Still) -> None:
    assert still.made.patience() == 0
    assert still.made.tend() == ("chat",)
    assert still.made.patience() == inf
    for _ in range(3):
        still.pass_by(1)
        still.checkpoint()
        assert still.made.tend() == ()
    assert still.made.patience() == PAUSE - 3
    still.pass_by(PAUSE - 3)
    assert still.made.tend() == ("chat",)
    assert sizes(still.notary) == [1, 4]
    (kept,) = still.notary.stored("SELECT value FROM meta WHERE key = 'announced'")  # what other versions look for
    assert json.loads(kept) == {"size": 4, "time": still.notary.clock.time}
    still.pass_by(10 * PAUSE)
    assert still.made.tend() == ()


def test_a_start_shortens_no_pause_and_a_clock_that_went_back_lengthens_none(still: Still) -> None:
    still.made.tend()
    still.checkpoint()
    still.pass_by(PAUSE / 4)
    still.open_again()
    still.checkpoint()
    assert still.made.patience() == PAUSE * 3 / 4
    still.notary.clock.time -= 10 * PAUSE
    still.open_again()
    still.checkpoint()
    assert still.made.patience() == PAUSE
    still.notary.clock.time += 20 * PAUSE
    still.open_again()
    still.checkpoint()
    assert still.made.patience() == 0
    still.notary.clock.wrong = "stepped back"  # how much of the pause is left can't be told
    assert Announcements(still.state, lambda: still.now).patience() == PAUSE


def test_a_failed_announcement_is_tried_again_and_logged_once(still: Still) -> None:
    for size in (1, 2):
        with capture_logs() as lines:
            for _ in range(3):
                still.notary.clock.wrong = "stepped back"
                assert still.made.tend() == ()
                still.notary.clock.wrong = ""
                still.pass_by(PAUSE)
        assert [(line["log_level"], line["cause"]) for line in lines] == [("error", "stepped back")], "once"
        assert sizes(still.notary) == list(range(1, size))
        assert still.made.tend() == ("chat",)
        assert sizes(still.notary) == list(range(1, size + 1))
        still.pass_by(PAUSE)
        still.checkpoint()


def test_a_database_without_checkpoints_announces_none(still: Still) -> None:
    with still.state.database.unit() as connection:
        connection.execute("DELETE FROM checkpoints")
    assert still.made.tend() == ()
    assert sizes(still.notary) == []


def test_a_lost_checkpoint_is_not_announced_by_an_older_one(still: Still) -> None:
    still.made.tend()
    assert still.state.checkpoint is not None
    still.state.checkpoint = msgspec.structs.replace(still.state.checkpoint, size=7)
    for _ in range(2):
        still.pass_by(PAUSE)
        assert still.made.tend() == ()
    assert sizes(still.notary) == [1]
