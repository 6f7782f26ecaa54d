"""Polls that neither spin nor outlive their end: watch, tail and drain, with time that stands still."""

import pytest
from gateway_client import Denied, RateLimited, Unavailable, Unreachable
from gateway_client.cli.watching.following import MAX_SECONDS, MIN_SECONDS, Follow


class Time:
    def __init__(self) -> None:
        self.now = 100.0
        self.rests: list[float] = []

    def pause(self, seconds: float) -> None:
        self.rests.append(round(seconds, 6))
        self.now += seconds


def follow(time: Time, interval: float = 2.0, seconds: float | None = None) -> Follow:
    return Follow(interval, seconds, pause=time.pause, monotonic=lambda: time.now)


def refuse(error: Exception) -> object:
    raise error


def test_rests_are_the_interval_or_until_something_expires_and_never_nothing() -> None:
    time = Time()
    one = follow(time)
    for soonest in (None, 10.0, 0.7, 0.0, -5.0):
        assert one.rest(soonest)
    assert time.rests == [2.0, 2.0, 0.7, MIN_SECONDS, MIN_SECONDS]


def test_it_ends_when_it_should() -> None:
    time = Time()
    one = follow(time, seconds=5)
    while one.rest():
        pass
    assert time.rests == [2.0, 2.0, 1.0]
    assert not one.rest()
    assert not follow(Time(), seconds=0).rest()


def test_an_absent_gateway_is_asked_less_and_less_and_reported_once(capsys: pytest.CaptureFixture[str]) -> None:
    time = Time()
    one = follow(time)
    for _ in range(8):
        assert one.ask(lambda: refuse(Unreachable("unreachable", was_sent=False))) is None
        one.rest()
    assert time.rests == [2.0, 2.0, 4.0, 8.0, 16.0, *[MAX_SECONDS] * 3]
    assert one.ask(lambda: "back") == "back"
    one.rest()
    assert time.rests[-1] == 2.0
    told = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in told] == ["gatectl", "gatectl"]
    assert told[1] == "gatectl: the gateway answers again"


def test_the_delay_that_a_server_asks_for_is_obeyed_within_bounds() -> None:
    time = Time()
    one = follow(time)
    for wait in (7.0, 3600.0):
        one.ask(lambda: refuse(RateLimited("rate_limit_exceeded", status=429, retry_after=wait)))  # noqa: B023
        one.rest()
    assert time.rests == [7.0, MAX_SECONDS]


def test_permanent_errors_and_the_first_failure_are_raised() -> None:
    with pytest.raises(Denied):
        follow(Time()).ask(lambda: refuse(Denied("policy_denied", status=403)))
    with pytest.raises(Unavailable):
        follow(Time()).ask(lambda: refuse(Unavailable("draining", status=503)), must=True)
