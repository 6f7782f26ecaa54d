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
    ticker.arm(time.monotonic())
    wait_until(lambda: engine.epochs > 0)
    ticker.disarm()
    seen = engine.epochs
    time.sleep(0.1)
    assert engine.epochs == seen


def test_a_ticker_that_sleeps_wakes_for_a_call_that_ends_earlier() -> None:
    engine = Counting()
    ticker = EpochTicker(engine)
    ticker.start()
    for patience in (7200, 3600, 1800):
        ticker.arm(time.monotonic() + patience)
        ticker.disarm()
        ticker.arm(time.monotonic())
        seen = engine.epochs
        wait_until(lambda seen=seen: engine.epochs > seen)
        ticker.disarm()


def test_calls_that_end_in_time_do_not_wake_the_ticker() -> None:
    ticker = Wakes(Counting())
    ticker.start()
    ticker.arm(time.monotonic() + 3600)
    wait_until(lambda: ticker.wakes == 2)  # its start, and the first call that it hears of
    for _ in range(1000):
        ticker.disarm()
        ticker.arm(time.monotonic() + 3601)
    assert ticker.wakes == 2


class Wakes(EpochTicker):
    """A ticker that counts how often its thread has looked at the time: once it knows when it wakes next."""

    wakes = 0

    def _tick(self) -> float:
        seconds = super()._tick()
        self.wakes += 1
        return seconds
