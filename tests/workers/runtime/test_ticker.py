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


def test_a_parked_ticker_wakes_for_the_next_call() -> None:
    engine = Counting()
    ticker = EpochTicker(engine)
    ticker.start()
    for _ in range(3):
        wait_until(lambda: ticker._is_parked)
        ticker.arm(time.monotonic())
        seen = engine.epochs
        wait_until(lambda seen=seen: engine.epochs > seen)
        ticker.disarm()
