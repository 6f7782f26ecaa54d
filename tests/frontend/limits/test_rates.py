"""Rates of one front: by class, and by session with a bounded memory."""

import pytest

from frontend.errors import GateError
from frontend.limits.rates import TELL_SECONDS, Rates, SessionRates, TooMuch
from frontend.limits.sessions import SessionTable
from frontend.shared.memory import SharedMemory
from ipc.channel import front_memory as at
from tests.frontend.limits.test_bucket import Clock


def over(clock: Clock, sets: int = at.SESSION_SETS) -> SessionTable:
    return SessionTable(SharedMemory.alone(), clock, sets)


def taken(rates: SessionRates, session_id: str, tries: int) -> int:
    count = 0
    for _ in range(tries):
        try:
            rates.take(session_id)
            count += 1
        except TooMuch:
            continue
    return count


@pytest.mark.parametrize(
    ("name", "rate"), [("lease", 50), ("write", 20), ("read", 100), ("unidentified", 5), ("scrape", 5)]
)
def test_a_class_has_its_rate_and_says_when_to_come_back(name: str, rate: int) -> None:
    heard: list[str] = []
    rates = Rates(heard.append)
    rates._buckets[name]._clock = Clock()
    for _ in range(rate):
        rates.take(name, "one")
    with pytest.raises(GateError) as refused:
        rates.take(name, "one")
    assert (refused.value.code, refused.value.retry_after) == ("rate_limit_exceeded", 1)
    assert heard == [name]


def test_a_class_without_a_row_is_not_limited() -> None:
    rates = Rates()
    for _ in range(1000):
        rates.take("free", "one")


def test_each_session_has_a_bucket_of_its_own() -> None:
    clock, heard = Clock(), list[str]()
    rates = SessionRates(5, heard.append, over(clock))
    assert [taken(rates, "a", 8), taken(rates, "b", 3), taken(rates, "b", 8)] == [5, 3, 2]
    assert heard == ["session"] * 9
    clock.now += 0.6
    assert [taken(rates, "a", 8), taken(rates, "b", 8)] == [3, 3]


def test_a_copy_of_a_request_is_not_the_session_s_to_pay_for() -> None:
    rates = SessionRates(2, sessions=over(Clock()))
    for _ in range(100):
        rates.take("a")
        rates.give_back("a")
    assert taken(rates, "a", 5) == 2
    rates.give_back("unknown")


def test_the_seconds_to_wait_are_those_until_a_token_is_there() -> None:
    clock = Clock()
    rates = SessionRates(1, sessions=over(clock))
    rates.take("a")
    with pytest.raises(TooMuch) as refused:
        rates.take("a")
    assert refused.value.retry_after == 1
    clock.now += 0.999
    with pytest.raises(TooMuch):
        rates.take("a")
    clock.now += 0.002
    rates.take("a")


def seen_since(sessions: SessionTable, moment: float) -> int:
    """How many sessions of the table have been seen after this moment, as they lie in it."""
    sets = [sessions._table[start : start + at.SET_BYTES] for start in range(0, len(sessions._table), at.SET_BYTES)]
    cells = [one[at.SESSION_WAYS * at.KEY_BYTES :].cast("d") for one in sets]
    return sum(seen > moment for one in cells for seen in one[2 :: at.SESSION_BYTES // 8])


def test_an_idle_session_gives_way_and_loses_nothing_by_it() -> None:
    clock = Clock()
    sessions = over(clock, sets=1)
    rates = SessionRates(3, sessions=sessions)
    for number in range(at.SESSION_WAYS):
        rates.take(f"s-{number}")
    assert seen_since(sessions, clock.now - 1) == at.SESSION_WAYS
    clock.now += TELL_SECONDS
    rates.take("another")
    assert seen_since(sessions, clock.now - 1) == 1
    assert taken(rates, "s-0", 9) == 3


def test_the_table_is_bounded_whatever_comes() -> None:
    clock = Clock()
    sessions = over(clock, sets=4)
    rates = SessionRates(1, sessions=sessions)
    for number in range(1000):
        clock.now += 0.0001
        rates.take(f"s-{number}")
        assert taken(rates, "busy", 1) == (number == 0), "a session that is busy is not the one that is forgotten"
    assert seen_since(sessions, 0) <= 4 * at.SESSION_WAYS


def test_refusals_are_told_at_first_and_then_together() -> None:
    clock = Clock()
    rates = SessionRates(1, sessions=over(clock))
    assert [rates.refused("a") for _ in range(5)] == [1, None, None, None, None]
    assert rates.refused("b") == 1
    clock.now += 9.9  # ten seconds (docs/decisions/budgets.md, "Rates and shares")
    assert rates.refused("a") is None
    clock.now += 0.2
    assert rates.refused("a") == 6
    assert rates.refused("a") is None
