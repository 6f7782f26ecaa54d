"""The clock refuses to tell a time that contradicts what is known, and speaks one form of text."""

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.clock import STEP_TOLERANCE_SECONDS, ClockError, FrontClock, iso, parse_iso

NOON = 1_763_726_400.0


class Time:
    def __init__(self, wall: float = NOON) -> None:
        self.wall = wall
        self.boot = 100.0

    def passes(self, seconds: float) -> None:
        self.wall += seconds
        self.boot += seconds

    def clock(self, floor: float = 0.0) -> FrontClock:
        return FrontClock(floor, wall=lambda: self.wall, boot=lambda: self.boot)


def test_it_tells_the_wall_clock_while_time_passes_evenly() -> None:
    source = Time()
    clock = source.clock(NOON - 1)
    for _ in range(5):
        source.passes(1000.5)
        assert clock.now() == source.wall


def test_a_wall_clock_below_the_newest_evidence_is_an_error_until_it_is_right() -> None:
    source = Time()
    clock = source.clock(NOON + 60)
    with pytest.raises(ClockError, match="evidence"):
        clock.now()
    source.passes(55)
    assert clock.now() == NOON + 55


@pytest.mark.parametrize(("back", "holds"), [(4.9, True), (5.0, True), (5.1, False), (3600, False)])
def test_a_step_back_is_tolerated_up_to_five_seconds(back: float, holds: bool) -> None:
    source = Time()
    clock = source.clock()
    source.passes(10)
    source.wall -= back
    if holds:
        assert clock.now() == source.wall
    else:
        with pytest.raises(ClockError, match="stepped back"):
            clock.now()


def test_many_small_steps_back_do_not_add_up_unnoticed() -> None:
    source = Time()
    clock = source.clock()
    clock.now()
    for _ in range(2):
        source.passes(60)
        source.wall -= 2
        clock.now()
    source.wall -= 2
    with pytest.raises(ClockError):
        clock.now()


def test_a_step_forward_is_believed_and_going_back_from_it_is_not() -> None:
    source = Time()
    clock = source.clock()
    source.wall += 3600
    assert clock.now() == NOON + 3600
    source.wall -= 3600
    with pytest.raises(ClockError):
        clock.now()


def test_it_tells_the_time_again_once_the_clock_is_right_again() -> None:
    source = Time()
    clock = source.clock()
    source.wall -= 100
    with pytest.raises(ClockError):
        clock.now()
    source.wall += 100
    assert clock.now() == NOON


def test_suspended_time_is_no_step() -> None:
    source = Time()
    clock = source.clock()
    source.passes(86_400)
    assert clock.now() == NOON + 86_400


def test_iso_of_now_needs_a_clock_that_is_right_and_iso_of_a_given_time_does_not() -> None:
    source = Time()
    clock = source.clock()
    assert clock.iso() == "2025-11-21T12:00:00.000Z"
    source.wall -= 100
    with pytest.raises(ClockError):
        clock.iso()
    assert clock.iso(NOON) == "2025-11-21T12:00:00.000Z"


def test_the_machines_own_clock_passes() -> None:
    before = time.time()
    told = FrontClock(before).now()
    assert before <= told <= time.time()
    assert STEP_TOLERANCE_SECONDS == 5.0


@given(st.integers(0, 4_102_444_800_000))
def test_text_and_time_give_each_other_back_to_the_millisecond(milliseconds: int) -> None:
    t = milliseconds / 1000
    text = iso(t)
    assert parse_iso(text) == pytest.approx(t, abs=1e-6)
    assert iso(parse_iso(text)) == text
    assert text == datetime.fromtimestamp(milliseconds // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S") + (
        f".{milliseconds % 1000:03d}Z"
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2025-11-21T12:00:00.000Z", NOON),
        ("2025-11-21T12:00:00Z", NOON),
        ("2025-11-21t12:00:00z", NOON),
        ("2025-11-21T13:30:00+01:30", NOON),
        ("2025-11-21T12:00:00.5", NOON + 0.5),
        ("2025-11-21 12:00:00.123456Z", NOON + 0.123456),
    ],
)
def test_the_usual_forms_of_iso_8601_are_understood(text: str, seconds: float) -> None:
    assert parse_iso(text) == pytest.approx(seconds, abs=1e-6)


def test_a_time_without_an_offset_is_utc_wherever_the_machine_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "JST-9")
    time.tzset()
    try:
        assert parse_iso("2025-11-21T12:00:00") == NOON
        assert iso(NOON) == "2025-11-21T12:00:00.000Z"
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "text",
    ["", "now", "1763726400", "2025-11-21", "2025-13-21T12:00:00Z", "2025-11-21T25:00:00Z", "2025-11-21T12:00:60Z",
     "2025-11-21T12:00:00Z ", "2025-11-21T12:00:00+25:00", "\uff12025-11-21T12:00:00Z", "2025-W47-5T12:00:00Z",
     "2025-11-21T12:00:00Z\n", "0000-01-01T00:00:00Z"],
)  # fmt: skip
def test_anything_else_is_a_value_error_that_does_not_repeat_it(text: str) -> None:
    with pytest.raises(ValueError, match=r"^(not a date and time of the form 2026|no such date and time)"):
        parse_iso(text)


@given(st.text(max_size=40))
def test_no_text_raises_anything_but_a_value_error(text: str) -> None:
    try:
        parse_iso(text)
    except ValueError:
        return
