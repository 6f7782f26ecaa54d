"""The epoch ticker: late calls end, others are left alone, and an idle worker is left in peace."""

import time

from wasmtime import Engine

from workers.runtime.ticker import EpochTicker


class Counting(Engine):
    """An engine that counts its epochs."""

    epochs = 0

    def increment_epoch(self) -> None:
        self.epochs += 1
        super().increment_epoch()


def wait_until(condition: object, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_epochs_rise_only_after_the_deadline_of_an_armed_call() -> None:
    engine = Counting()
    ticker = EpochTicker(engine)
    ticker.start()
    ticker.arm(time.monotonic() + 3600)
    time.sleep(0.1)
    assert engine.epochs == 0
    ticker.arm(now := time.monotonic())
    wait_until(lambda: engine.epochs > 0)
    ticker.disarm(now)
    seen = engine.epochs
    time.sleep(0.1)
    assert engine.epochs == seen


def test_a_ticker_that_sleeps_wakes_for_a_call_that_ends_earlier() -> None:
    engine = Counting()
    ticker = EpochTicker(engine)
    ticker.start()
    for patience in (7200, 3600, 1800):
        later, now = time.monotonic() + patience, time.monotonic()
        ticker.arm(later)
        ticker.arm(now)
        seen = engine.epochs
        wait_until(lambda seen=seen: engine.epochs > seen)
        for deadline in (later, now):
            ticker.disarm(deadline)


def test_calls_that_end_in_time_do_not_wake_the_ticker() -> None:
    ticker = Wakes(Counting())
    ticker.start()
    deadline = time.monotonic() + 3600
    ticker.arm(deadline)
    wait_until(lambda: ticker.wakes == 2)  # at its start, and for the first call
    for _ in range(1000):
        ticker.disarm(deadline)
        deadline = time.monotonic() + 3601
        ticker.arm(deadline)
    assert ticker.wakes == 2


def test_calls_with_the_same_deadline_are_armed_and_disarmed_one_by_one() -> None:
    engine = Counting()
    ticker = EpochTicker(engine)
    now = time.monotonic()
    for _ in range(2):
        ticker.arm(now)
    ticker.disarm(now)
    ticker.start()
    wait_until(lambda: engine.epochs > 0)


class Wakes(EpochTicker):
    """A ticker that counts how often its thread has looked at the time: once it knows when it wakes next."""

    wakes = 0

    def _tick(self) -> float:
        seconds = super()._tick()
        self.wakes += 1
        return seconds
