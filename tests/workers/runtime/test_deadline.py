"""Deadlines of calls that run at the same time in one engine."""

import threading
import time

from ipc.messages.calling import Result
from ipc.plan import CallLimits, Plan
from tests.support.worker_plans import builtin, call_of, plan_for, word_for
from tests.support.worker_runner import Bench


def spinning(seconds: float, timeout_seconds: float) -> Plan:
    """A plan that computes for so long, if it may."""
    limits = CallLimits(fuel=2**60, timeout_seconds=timeout_seconds)
    return plan_for("spin", {"seconds": seconds}, required_imports=("clock",), limits=limits)


def run_together(bench: Bench, *plans: Plan) -> list[Result]:
    """Each plan in a thread and by a runner of its own."""
    bench.add(builtin("spin"))
    results: dict[int, Result] = {}

    def run(number: int, plan: Plan) -> None:
        results[number] = bench.runner().run(call_of(plan), word_for(plan), {})

    threads = [threading.Thread(target=run, args=one) for one in enumerate(plans)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    return [results[number] for number in range(len(plans))]


def test_a_call_that_passes_its_deadline_ends_and_calls_beside_it_go_on(bench: Bench) -> None:
    late, sound = spinning(3600, 0.2), spinning(1, 600)
    assert [result.outcome for result in run_together(bench, late, sound, late)] == ["timeout", "success", "timeout"]


def test_an_epoch_that_is_raised_before_its_deadline_does_not_end_a_call(bench: Bench) -> None:
    ended = threading.Event()

    def raise_epochs() -> None:
        while not ended.wait(0.01):
            bench.engine.increment_epoch()

    raising = threading.Thread(target=raise_epochs)
    raising.start()
    try:
        begun = time.monotonic()
        (result,) = run_together(bench, spinning(0.5, 600))
    finally:
        ended.set()
        raising.join(60)
    assert result.outcome == "success"
    assert time.monotonic() - begun >= 0.5
