"""Calls that wait for an upstream: throughput, memory, and calls beside them. `python -m bench --effects`.

The upstream is a floor that answers after as many milliseconds as its path says. It is measured alone, too, and so is
an echo; both in the rounds of the gateway. Ratios are those of one run.
"""

import statistics
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from bench.backends import Backends
from bench.generator import Generator, generator
from bench.measures import family, pss_by_kind, wait_until
from bench.plot import svg
from bench.report import figure, table
from bench.rounds import Sample, levels_of, median, play, ratio
from bench.stages import progress
from bench.subjects import Gate, Subject, floor, fresh_gate
from bench.targets import ECHO, PLAIN, Target

UPSTREAM: Final = "upstream"
NAME: Final = "upstream.gateway.test"
POST: Final = "/v1/actions/http_post/execute"
FETCH: Final = "/v1/actions/http_fetch/execute"
HANG_MS: Final = 5000
HANGING: Final = 32
WAITING: Final = 128
WAIT_MS: Final = 2000
"""Their delay: long enough that they leave the processors to others."""
FIRST: Final = 16
"""Connections of the level that waiting calls' memory is counted from."""
POLITE_CALLS: Final = 100


@dataclass(frozen=True)
class Scope:
    """How much is measured."""

    levels: tuple[int, ...]
    """Connections."""
    delays_ms: tuple[int, ...]
    rounds: int
    seconds: float
    """The length of one measurement of one subject at one level; five delays are added."""


WHOLE: Final = Scope((1, 4, 16, 32, 64, 128, 256), (0, 20, 50, 200), 5, 2.0)
QUICK: Final = Scope((1, 32, 256), (0, 200), 2, 1.5)


def measured(scope: Scope) -> dict[str, Any]:
    """The whole run, as it stands in the JSON."""
    results: dict[str, Any] = {"rounds": scope.rounds, "seconds": scope.seconds, "delays_ms": list(scope.delays_ms)}
    with ExitStack() as stack:
        load, beside = (stack.enter_context(generator()) for _ in range(2))
        echo, upstream = (stack.enter_context(floor(kind)) for kind in ("hypercorn", UPSTREAM))
        plain = stack.enter_context(_gate(upstream))
        subjects: dict[str, Subject] = {ECHO: echo, UPSTREAM: upstream, PLAIN: plain}
        for delay in scope.delays_ms:
            results[f"{delay} ms"] = _rounds(scope, load, subjects, delay)
        progress("memory of waiting calls")
        results["mb_a_waiting_call"] = _memory(load, plain, scope)
        progress("calls beside others that wait")
        results |= _beside(load, beside, plain, scope)
    results["targets"] = [
        {"what": one.what, "figure": one.figure, "relation": one.relation, "bound": one.bound, "is_met": one.is_met}
        for one in targets(results)
    ]
    return results


@contextmanager
def _gate(upstream: Subject) -> Iterator[Gate]:
    """A gateway with default settings whose examples call the upstream."""
    host, port = upstream.address
    resolve = f'[egress]\nunsafe_resolve = {{"{NAME}" = "{host}:{port}"}}\n'
    with fresh_gate(backends=Backends("", resolve)) as running:
        yield running


def _rounds(scope: Scope, load: Generator, subjects: Mapping[str, Subject], delay_ms: int) -> list[Sample]:
    # An echo has no delay: beside calls that wait it says nothing.
    taking_part = {name: scope.levels for name in subjects if name != ECHO or not delay_ms}
    seconds = scope.seconds + 5 * delay_ms / 1000

    def measure(name: str, level: int, number: int) -> Sample:
        progress(f"{delay_ms} ms, round {number + 1} of {scope.rounds}: {name}, {level} connections")
        return _posts(load, subjects[name], level, seconds, delay_ms)

    return play(taking_part, scope.levels, scope.rounds, measure)


def _posts(load: Generator, subject: Subject, level: int, seconds: float, delay_ms: int) -> Sample:
    path = f"/v1/delay/{delay_ms}" if subject.mode == "echo" else POST
    warmup = level if delay_ms else 50
    return load.posts(subject, path, _body(delay_ms), level, seconds, warmup=warmup, may_refuse=True)


def _body(delay_ms: int) -> str:
    return f'{{"path":"v1/delay/{delay_ms}","message":"hello"}}'


def _memory(load: Generator, plain: Gate, scope: Scope) -> float | None:
    """PSS of http workers that each waiting call beyond the first 16 adds, in MB; None without two levels above."""
    if max(scope.levels) <= FIRST:
        return None
    few, many = (_most_pss(load, plain, level) for level in (FIRST, max(scope.levels)))
    return (many - few) / 1e6 / (max(scope.levels) - FIRST)


def _most_pss(load: Generator, plain: Gate, level: int) -> int:
    """The most that all http workers have together while so many calls wait."""
    sums, is_over = [0], threading.Event()

    def look() -> None:
        while not is_over.is_set():
            sums.append(sum(pss_by_kind(family(plain.pid)).get("worker http", ())))
            time.sleep(0.1)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        _posts(load, plain, level, 2.0, 500)
    finally:
        is_over.set()
        looking.join()
    return max(sums)


def _beside(load: Generator, beside: Generator, plain: Gate, scope: Scope) -> dict[str, float]:
    """p99 of calls of one agent beside calls that wait: ÷ alone, and in milliseconds."""
    ratios, times = [], []
    for _ in range(scope.rounds):
        alone = _polite(load, plain)
        with _waiting(beside, plain, WAITING, WAIT_MS):
            ratios.append(_polite(load, plain)["p99_ms"] / alone["p99_ms"])
        with _waiting(beside, plain, HANGING, HANG_MS):
            fetched = load.posts(
                plain, FETCH, '{"path":"v1/delay/0"}', 1, 20.0, calls=POLITE_CALLS, warmup=1, may_refuse=True
            )
            times.append(fetched["p99_ms"])
    return {"polite_p99_ratio": statistics.median(ratios), "other_action_p99_ms": statistics.median(times)}


def _polite(load: Generator, plain: Gate) -> Sample:
    return load.calls(plain, 1, 20.0, calls=POLITE_CALLS)


@contextmanager
def _waiting(beside: Generator, plain: Gate, count: int, delay_ms: int) -> Iterator[None]:
    """Other agents have this number of calls at the upstream, until soon after the end of the block."""
    is_over = threading.Event()

    def keep_on() -> None:
        while not is_over.is_set():
            _posts(beside, plain, count, delay_ms / 1000, delay_ms)

    _posts(beside, plain, count, 0.0, 0)  # they have their leases
    waiting = threading.Thread(target=keep_on)
    waiting.start()
    try:
        wait_until(
            lambda: plain.operator.get("/v1/admin/status")["in_flight_executions"] >= count // 2, "calls that wait"
        )
        yield
    finally:
        is_over.set()
        waiting.join()


# ------------------------------------------------------------------ the report


def targets(results: Mapping[str, Any]) -> Iterator[Target]:
    """Each bound with its figure, as far as this run measured it."""
    without = results.get("0 ms", ())

    def of(base: str, level: int, metric: str) -> float | str:
        return _or_not(ratio(without, PLAIN, base, level, metric))

    yield Target("http_post at 32, no delay: calls/s ÷ echo", of(ECHO, 32, "per_second"), ">=", 0.33)
    yield Target("http_post at 32, no delay: CPU a call ÷ echo", of(ECHO, 32, "cpu_us_all"), "<=", 5.2)
    waits = results.get("200 ms", ())
    served = median(waits, PLAIN, 256, "served_per_second")
    yield Target("200 ms, 256 at once: calls/s ÷ ideal", _or_not(served and served * 0.2 / 256), ">=", 0.5)
    yield Target("200 ms, 256 at once: share refused", _or_not(median(waits, PLAIN, 256, "refused")), "<=", 0.0)
    yield Target("PSS a waiting call beyond the first 16, MB", _or_not(results["mb_a_waiting_call"]), "<=", 0.5)
    yield Target("polite p99 beside 128 that wait ÷ alone", _or_not(results["polite_p99_ratio"]), "<=", 1.3)
    yield Target("other action's p99 beside 32 that hang, ms", _or_not(results["other_action_p99_ms"]), "<=", 50.0)


def _or_not(value: float | None) -> float | str:
    return "not measured" if value is None else value


def told(results: Mapping[str, Any]) -> str:
    """The results as tables for a terminal."""
    rows = [("", "figure", "to reach", "")]
    for one in targets(results):
        verdict = {True: "met", False: "missed", None: ""}[one.is_met]
        rows.append((one.what, figure(one.figure), f"{one.relation} {one.bound:g}", verdict))
    parts = [_of_delay(results[f"{delay} ms"], delay) for delay in results["delays_ms"]]
    return "\n\n".join([*parts, "\n".join(table(rows))])


def _of_delay(samples: Sequence[Sample], delay_ms: int) -> str:
    headings = ("at", "calls/s", "÷ upstream alone", "p99 ms", "CPU µs", "refused")
    rows: list[tuple[str, ...]] = [(f"upstream of {delay_ms} ms", *headings)]
    for level in levels_of(samples, PLAIN):
        figures = (
            median(samples, PLAIN, level, "served_per_second"),
            ratio(samples, PLAIN, UPSTREAM, level, "served_per_second"),
            *(median(samples, PLAIN, level, metric) for metric in ("p99_ms", "cpu_us_all", "refused")),
        )
        rows.append((PLAIN, str(level), *map(figure, figures)))
    return "\n".join(table(rows))


def plot(results: Mapping[str, Any]) -> str:
    """Calls/s ÷ those of the upstream alone, a line for each delay, over the connections; as SVG."""
    lines = {}
    for delay in results["delays_ms"]:
        samples = results[f"{delay} ms"]
        shares = (
            (level, ratio(samples, PLAIN, UPSTREAM, level, "served_per_second")) for level in levels_of(samples, PLAIN)
        )
        lines[f"{delay} ms"] = [(level, share) for level, share in shares if share is not None]
    return svg("http_post: calls/s ÷ those of the upstream alone, by its delay", lines, 1.0)
