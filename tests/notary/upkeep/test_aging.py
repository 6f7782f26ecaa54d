"""`evidence.keep_days`: kept values go by their age, with an event, and no byte of them stays in a file."""

import pytest

from ipc.settings import EvidenceSettings
from notary.operations.erasing import AT_ONCE
from notary.state import NotaryLimits
from tests.notary.conftest import StartNotary
from tests.notary.lost import OVER, lost_call
from tests.notary.operations.test_erase_kept import LEFT, OF_PERSON, has_bytes, with_request
from tests.notary.running import Running, walk_of
from tests.notary.samples import make_approval, make_hold, make_open
from tests.support.notary_thread import SMALL_WAL
from tests.support.supervised import wait_until

DAY = 24 * 3600.0
SOON = NotaryLimits(database=SMALL_WAL, wal_seconds=0.0, round_seconds=0.001)


def keeping(start_notary: StartNotary, days: int) -> Running:
    return start_notary(limits=SOON, evidence=EvidenceSettings(keep_days=days))


def erasures(notary: Running) -> list[dict[str, object]]:
    return [one for one in notary.events() if one["event_type"] == "EvidenceErased"]


def test_values_are_erased_once_they_are_older_and_later_ones_stay(start_notary: StartNotary) -> None:
    notary = keeping(start_notary, 30)
    notary.front.ask(make_open(kept=OF_PERSON))
    commitments = notary.last_event()["kept"].values()
    notary.clock.time += 29 * DAY
    notary.front.ask(make_open(kept=OF_PERSON))
    assert erasures(notary) == []
    notary.clock.time += DAY + 1
    wait_until(lambda: notary.stored(LEFT) == [2])
    (told,) = erasures(notary)
    assert (told["principal"], told["reason"]) == ("gateway", "older than evidence.keep_days")
    change = told["change"]
    assert isinstance(change, dict)
    assert (change["count"], change["keep_days"], sorted(change["commitments"])) == (2, 30, sorted(commitments))
    notary.clock.time += 30 * DAY
    wait_until(lambda: notary.stored(LEFT) == [0])
    wait_until(lambda: not has_bytes(notary))
    assert len(erasures(notary)) == 2
    notary.restart()
    assert walk_of(notary).intact


def test_many_old_values_take_several_units_each_with_its_event(start_notary: StartNotary) -> None:
    notary = keeping(start_notary, 1)
    for _ in range(AT_ONCE * 2 + 1):
        notary.front.ask(make_open(kept=OF_PERSON))
    notary.clock.time += DAY + 1
    wait_until(lambda: notary.stored(LEFT) == [0])
    counts = [one["change"]["count"] for one in erasures(notary)]  # type: ignore[index]
    assert counts == [2 * AT_ONCE, 2 * AT_ONCE, 2]
    wait_until(lambda: not has_bytes(notary))


def test_a_call_of_unknown_outcome_ages_too_and_a_held_one_keeps_its_values(start_notary: StartNotary) -> None:
    notary = keeping(start_notary, 1)
    notary.front.ask(make_hold(with_request(make_approval()), kept=OF_PERSON))
    lost_call(notary, kept=OF_PERSON)
    notary.clock.time += DAY + OVER
    wait_until(lambda: notary.stored(LEFT) == [2])
    (told,) = erasures(notary)
    notary.front.ask(make_open(kept=OF_PERSON))
    assert erasures(notary) == [told]


def test_without_days_nothing_is_looked_at(start_notary: StartNotary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("notary.upkeep.aging.has_aged", None)
    notary = keeping(start_notary, 0)
    notary.front.ask(make_open(kept=OF_PERSON))
    notary.clock.time += 4000 * DAY
    for _ in range(3):
        notary.front.ask(make_open())
    assert notary.stored(LEFT) == [2]
