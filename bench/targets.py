"""The goals, and the figures of a run beside them. Knows the shape of a run's results, measures nothing."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bench.backends import POSTGRESQL, REDIS, Chosen, column
from bench.kills import BOUNDS_MS
from bench.rounds import ratio
from bench.system_calls import grouped

ECHO = "echo hypercorn"
PLAIN = "gateway"
SLOW = "gateway, slow disk"
ON = f"{PLAIN} on "
SHARED: Chosen = (REDIS, POSTGRESQL)
"""Backends that several hosts share."""
NOT_MEASURED = "not measured"
ON_THE_WAY = ("front", "notary")
"""The processes whose system calls a call waits for."""


def gateway_with(fronts: int) -> str:
    """The name of a gateway with several fronts."""
    return f"{PLAIN}, {fronts} fronts"


def gateway_on(backends: Chosen) -> str:
    """The name of a gateway on such servers."""
    return f"{ON}{column(backends)}"


@dataclass(frozen=True)
class Target:
    """One line: its figure, or the reason why it has none, and its bound."""

    what: str
    figure: float | str
    relation: Literal["<=", ">="]
    bound: float

    @property
    def is_met(self) -> bool | None:
        """Whether the figure keeps to the bound; None without a figure."""
        if isinstance(self.figure, str):
            return None
        return self.figure <= self.bound if self.relation == "<=" else self.figure >= self.bound


def targets(results: Mapping[str, Any]) -> list[Target]:
    """Every line, in the order in which it is shown."""
    return [*_rates(results), *_system_calls(results), *_others(results), *_growth(results)]


def _rates(results: Mapping[str, Any]) -> Iterator[Target]:
    def of(subject: str, base: str, level: int, metric: str) -> float | str:
        if subject in results["refused"]:
            return str(results["refused"][subject]["told"])
        return _or_not(ratio(results["samples"], subject, base, level, metric))

    yield Target("CPU a call at 32 ÷ echo, all processes", of(PLAIN, ECHO, 32, "cpu_us_all"), "<=", 2.2)
    yield Target("calls/s at 32 ÷ echo, one front", of(PLAIN, ECHO, 32, "per_second"), ">=", 0.65)
    yield Target("calls/s at 32 ÷ echo, two fronts", of(gateway_with(2), ECHO, 32, "per_second"), ">=", 0.75)
    for level, bound in ((1, 3.8), (4, 2.2), (8, 1.9)):
        yield Target(f"p50 ÷ echo at {level}", of(PLAIN, ECHO, level, "p50_ms"), "<=", bound)
    yield Target("calls/s at 32, slow disk ÷ without", of(SLOW, PLAIN, 32, "per_second"), ">=", 0.8)
    yield Target(
        f"calls/s at 32, {column(SHARED)} ÷ embedded", of(gateway_on(SHARED), PLAIN, 32, "per_second"), ">=", 0.6
    )


def _system_calls(results: Mapping[str, Any]) -> Iterator[Target]:
    for group, name, bound in (("flush", "flushes", 2), ("futex", "futex", 4), ("epoll_wait", "epoll_wait", 6)):
        counted = results.get("system_calls")
        figure: float | str = NOT_MEASURED
        if counted:
            # Rounded: both ends of the count cut through calls, and a process wakes now and then without one.
            figure = counted.get("unavailable") or round(grouped(counted["processes"], ON_THE_WAY, group), 1)
        yield Target(f"{name} a call in front and notary, at 1", figure, "<=", bound)


def _others(results: Mapping[str, Any]) -> Iterator[Target]:
    yield Target("idle compute worker, MB PSS", _or_not(results["memory"].get("worker compute")), "<=", 6)
    yield Target("SIGKILL of all compute workers → served, ms", results["after_a_kill"]["served_ms"], "<=", 30)
    for kind, bound in BOUNDS_MS.items():
        if kind != "worker compute":
            milliseconds = results.get("after_kills", {}).get(kind)
            yield Target(f"SIGKILL of the {kind} → served, ms", _or_not(milliseconds), "<=", bound)


def _growth(results: Mapping[str, Any]) -> Iterator[Target]:
    growth = results.get("growth", {})
    for name, metric in (("CPU", "cpu_us_all"), ("p50", "p50_ms")):
        for level in (1, 32):
            measured = ratio(growth.get("samples", ()), "1000000", "1000", level, metric)
            yield Target(f"{name} at {level}, a million events ÷ a thousand", _or_not(measured), "<=", 1.1)
    measured = growth.get("verify", {}).get("seconds_per_100k")
    yield Target("verify of 100,000 events, seconds", _or_not(measured), "<=", 0.5)
    measured = growth.get("beside_verification", {}).get("p99_ratio")
    yield Target("p99 at 8 beside the verification of a million events ÷ without", _or_not(measured), "<=", 1.1)


def _or_not(figure: float | None) -> float | str:
    return NOT_MEASURED if figure is None else figure
