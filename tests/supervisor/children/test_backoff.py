"""Back-off and exit codes as tables."""

import signal
from typing import Any

import pytest

from ipc.process.exits import Exit
from supervisor.children import backoff as of_backoff
from supervisor.children.backoff import HEALTHY_SECONDS, LOOP_FAILURES, MAX_FAILURES_AT_START, fatal_exit, reason_of


def Backoff(dice: float = 0.0, **settings: Any) -> of_backoff.Backoff:  # noqa: N802 - a back-off without its dice
    return of_backoff.Backoff(dice=lambda: dice, **settings)


def test_a_child_that_had_served_is_replaced_at_once() -> None:
    backoff = Backoff()
    assert [backoff.delay(now, had_served=True) for now in (0.0, 1.0, 2.0)] == [0.0, 0.0, 0.0]


def test_a_child_that_fails_before_it_serves_is_replaced_ever_more_slowly() -> None:
    backoff = Backoff(step=0.25, ceiling=10.0, burst=100)
    delays = [backoff.delay(float(now), had_served=False) for now in range(9)]
    assert delays == [0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_having_served_once_forgets_earlier_failures() -> None:
    backoff = Backoff()
    for now in range(4):
        backoff.delay(float(now), had_served=False)
    assert backoff.delay(5.0, had_served=True) == 0.0
    assert backoff.failures == 0
    assert backoff.delay(6.0, had_served=False) == 0.0


def test_a_storm_of_crashes_is_bounded_even_when_each_had_served() -> None:
    backoff = Backoff(burst=3, window=60.0, ceiling=10.0)
    assert [backoff.delay(now * 1.0, had_served=True) for now in range(5)] == [0.0, 0.0, 0.0, 1.0, 1.0]
    assert [backoff.delay(now, had_served=False) for now in (5.0, 6.0, 7.0, 8.0, 9.0, 10.0)] == [1, 1, 1, 1, 2, 4]
    assert backoff.delay(200.0, had_served=True) == 0.0


def test_pauses_are_shortened_at_random_by_a_quarter_at_most() -> None:
    for dice, pauses in ((0.0, [0.0, 1.0, 2.0]), (0.5, [0.0, 0.875, 1.75]), (1.0, [0.0, 0.75, 1.5])):
        backoff = Backoff(dice, step=1.0)
        assert [backoff.delay(float(now), had_served=False) for now in range(3)] == pauses


def test_in_a_storm_no_pause_is_shorter_than_a_second_whatever_the_dice() -> None:
    backoff = Backoff(1.0, burst=2, step=1.0)
    assert [backoff.delay(float(now), had_served=False) for now in range(3)][-1] == 1.5
    assert backoff.delay(3.0, had_served=True) == 1.0


def test_a_healthy_minute_clears_earlier_failures() -> None:
    backoff = Backoff(burst=2, window=1000.0)
    for now in range(3):
        backoff.delay(float(now), had_served=True, lived=HEALTHY_SECONDS - 0.1)
    assert backoff.is_storm
    assert backoff.delay(100.0, had_served=True, lived=HEALTHY_SECONDS) == 0.0
    assert not backoff.is_loop


def test_a_crash_loop_is_a_storm_or_several_failures_in_a_row() -> None:
    backoff = Backoff(burst=1)
    seen = []
    for _ in range(LOOP_FAILURES):
        backoff.delay(0.0, had_served=False)
        backoff.is_storm = False
        seen.append(backoff.is_loop)
    assert seen == [False] * (LOOP_FAILURES - 1) + [True]
    backoff.delay(0.0, had_served=True)
    assert backoff.is_storm
    assert backoff.is_loop


def test_failures_without_end_never_overflow() -> None:
    backoff = Backoff(burst=10_000)
    assert max(backoff.delay(now * 100.0, had_served=False) for now in range(5000)) == 10.0


@pytest.mark.parametrize(
    ("kind", "status", "is_starting", "failures", "code"),
    [
        ("front", Exit.CONFIG, True, 1, Exit.CONFIG),
        ("front", Exit.CONFIG, False, 1, None),
        ("notary", Exit.CONFIG, False, 1, Exit.CONFIG),
        ("front", Exit.NO_PERMISSION, False, 1, Exit.NO_PERMISSION),
        ("template", Exit.SANDBOX, False, 1, Exit.SANDBOX),
        ("front", Exit.UNAVAILABLE, True, 1, Exit.UNAVAILABLE),
        ("front", Exit.UNAVAILABLE, False, 1, None),
        ("front", Exit.FAILED, True, MAX_FAILURES_AT_START - 1, None),
        ("front", Exit.FAILED, True, MAX_FAILURES_AT_START, Exit.FAILED),
        ("front", -signal.SIGKILL, True, MAX_FAILURES_AT_START, Exit.FAILED),
        ("front", Exit.FAILED, False, 50, None),
        ("front", -signal.SIGSEGV, False, 1, None),
        ("front", Exit.OK, False, 0, None),
        ("worker", Exit.SANDBOX, True, 1, Exit.SANDBOX),
        ("worker", Exit.SANDBOX, False, 1, None),
        ("worker", Exit.CONFIG, False, 1, None),
        ("policy", Exit.CONFIG, True, 1, Exit.CONFIG),
        ("policy", Exit.CONFIG, False, 1, None),
        ("exporter", Exit.CONFIG, True, 1, None),
        ("exporter", -signal.SIGSEGV, True, MAX_FAILURES_AT_START, None),
    ],
)
def test_which_ends_stop_the_whole_gateway(
    kind: str, status: int, is_starting: bool, failures: int, code: Exit | None
) -> None:
    assert fatal_exit(kind, int(status), is_starting=is_starting, failures=failures) == code


@pytest.mark.parametrize(
    ("status", "reason"),
    [(10, "RECYCLED"), (3, "exit 3"), (-9, "SIGKILL"), (-signal.SIGALRM, "SIGALRM"), (-200, "signal 200")],
)
def test_an_end_has_a_name(status: int, reason: str) -> None:
    assert reason_of(status) == reason
