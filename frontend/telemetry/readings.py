"""Makes the text of GET /metrics (OpenMetrics 1.0) of counts and present values.

Guarantees that every family of the table is in the text once, whole and in order, that what is unknown is absent, and
that the text ends with its end mark. Blocking work (reading /proc, writing the text) is left to a thread.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import add

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector

from frontend.telemetry import families as f
from frontend.telemetry.cells import Labels
from frontend.telemetry.counters import numbers
from frontend.telemetry.metrics import Metrics
from frontend.telemetry.present import Present
from frontend.telemetry.processes import Processes, Usage

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"

Readings = Mapping[f.Family, Mapping[Labels, float]]
"""The values for one answer, by labels, of the families that are known."""


class _Snapshot(Collector):
    """Families that do not change any more."""

    def __init__(self, shown: Sequence[Metric]) -> None:
        self._shown = shown

    def collect(self) -> Iterable[Metric]:
        return self._shown


def shown(metrics: Metrics, readings: Readings, others: Sequence[Present] = ()) -> list[Metric]:
    """Every family but those of processes, as they are now: to be called where things are counted. `others` are the
    other fronts that serve."""
    metrics.learn()
    counters = metrics.counters
    return [
        metrics.shown(family) if family.name in counters else numbers(family, together(family, readings, others))
        for family in f.FAMILIES
        if family.labels != f.PROCESS
    ]


def together(family: f.Family, readings: Readings, others: Sequence[Present]) -> Mapping[Labels, float]:
    """The values of this front and the others, combined as the table of families says."""
    series = dict(readings.get(family, {}))
    if family.across == "once":
        return series
    join = min if family.across == "least" else add
    for other in others:
        for labels, value in other.gauges.get(family.name, ()):
            series[labels] = join(series[labels], value) if labels in series else value
    return series


def exposition(families: Sequence[Metric], processes: Processes, others: Sequence[Present] = ()) -> bytes:
    """The whole text. Blocks for some milliseconds."""
    registry = CollectorRegistry()
    registry.register(_Snapshot([*families, *_of_processes(processes.read(others))]))
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text


def _of_processes(usages: list[Usage]) -> list[Metric]:
    columns: dict[f.Family, dict[Labels, float | None]] = {
        f.CPU: {one.labels: one.cpu_seconds for one in usages},
        f.RESIDENT: {one.labels: one.resident for one in usages},
        f.PROPORTIONAL: {one.labels: one.proportional for one in usages},
        f.OPEN_FDS: {one.labels: one.open_fds for one in usages},
        f.STARTED: {one.labels: one.started for one in usages},
    }
    return [
        numbers(family, {labels: value for labels, value in column.items() if value is not None})
        for family, column in columns.items()
    ]
