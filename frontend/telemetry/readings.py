"""From counts and what is read at this moment to the text of GET /metrics (OpenMetrics 1.0).

Guarantees that every family of the table is in the text once, whole and in order, that what is unknown is absent, and
that the text ends with its end mark. Blocking work (reading /proc, writing the text) is left to a thread.
"""

from collections.abc import Iterable, Mapping, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector

from frontend.telemetry import families as f
from frontend.telemetry.counters import Labels, numbers
from frontend.telemetry.metrics import Metrics
from frontend.telemetry.processes import Processes, Usage

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"

Readings = Mapping[f.Family, Mapping[Labels, float]]
"""What was read for this answer: values by labels, of those families that are known."""


class _Snapshot(Collector):
    """Families that do not change any more."""

    def __init__(self, shown: Sequence[Metric]) -> None:
        self._shown = shown

    def collect(self) -> Iterable[Metric]:
        return self._shown


def shown(metrics: Metrics, readings: Readings) -> list[Metric]:
    """Every family but those of processes, as they are now: to be called where things are counted."""
    metrics.forget_removed()
    counters = metrics.counters
    return [
        counters[family.name].shown() if family.name in counters else numbers(family, readings.get(family, {}))
        for family in f.FAMILIES
        if family.labels != f.PROCESS
    ]


def exposition(families: Sequence[Metric], processes: Processes) -> bytes:
    """The whole text. Blocks for some milliseconds."""
    registry = CollectorRegistry()
    registry.register(_Snapshot([*families, *_of_processes(processes.read())]))
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
