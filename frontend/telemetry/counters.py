"""Where counts are kept: one dict a family, one entry a series, nothing else on the way of a call.

prometheus-client's own counters take a lock, check their arguments and look their labels up by text each time; ten of
them would be a tenth of what a call costs. These are added to by the front's one event loop alone, so they need no
lock, and become prometheus-client's families when they are read. Adding never raises: a label that can't be shown is
mended when its series begins, and series beyond a bound are one series `other`.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.utils import floatToGoString

from frontend.telemetry.families import OTHER, Family

MAX_SERIES = 4096
"""Series of one family: a backstop, since every label of ours is bounded where it is made."""
MAX_LABEL = 256

Labels = tuple[str, ...]


class Counter(Protocol):
    """One family and its series."""

    family: Family

    def shown(self) -> Metric:
        """As prometheus-client wants it."""


class Counts:
    """The series of one counter."""

    __slots__ = ("_series", "family")

    def __init__(self, family: Family, known: Iterable[Labels] = ()) -> None:
        """`known` are series that are shown from the start, as 0; a family without labels has its only one."""
        self.family = family
        self._series: dict[Labels, float] = dict.fromkeys(known if family.labels else [()], 0)

    def add(self, *labels: str, times: int = 1) -> None:
        """So many more. As many labels as the family has, in its order."""
        if labels not in self._series:
            labels = place(self._series, labels)
            self._series.setdefault(labels, 0)
        self._series[labels] += times

    def value(self, *labels: str) -> float:
        """What has been counted so far."""
        return self._series.get(labels, 0)

    def keep(self, is_kept: Callable[[str], bool]) -> None:
        """Forget the series whose first label is not kept."""
        _keep(self._series, is_kept)

    def shown(self) -> Metric:
        """As prometheus-client wants it."""
        return numbers(self.family, self._series)


class Levels(Counts):
    """The series of a gauge that goes up and down by one."""

    __slots__ = ()

    def less(self, *labels: str) -> None:
        """One less."""
        self._series[labels] = self._series.get(labels, 0) - 1


class Timings:
    """The series of one histogram, in seconds."""

    __slots__ = ("_bounds", "_names", "_series", "family")

    def __init__(self, family: Family, known: Iterable[Labels] = ()) -> None:
        """As for Counts."""
        self.family = family
        self._bounds = family.buckets
        self._names = [*map(floatToGoString, family.buckets), "+Inf"]
        self._series: dict[Labels, list[float]] = {}
        for labels in known if family.labels else [()]:
            self._begin(labels)

    def observe(self, seconds: float, *labels: str) -> None:
        """One more that took so long."""
        counts = self._series.get(labels) or self._begin(labels)
        counts[bisect_left(self._bounds, seconds)] += 1
        counts[-1] += seconds

    def value(self, *labels: str) -> float:
        """How many there have been so far."""
        return sum(self._series.get(labels, (0,))[:-1])

    def keep(self, is_kept: Callable[[str], bool]) -> None:
        """Forget the series whose first label is not kept."""
        _keep(self._series, is_kept)

    def shown(self) -> Metric:
        """As prometheus-client wants it."""
        family = self.family
        metric = HistogramMetricFamily(family.name, family.help, labels=family.labels, unit=family.unit)
        for labels, counts in self._series.items():
            so_far, buckets = 0.0, []
            for name, count in zip(self._names, counts, strict=False):  # behind the counts stands their sum
                so_far += count
                buckets.append((name, so_far))
            metric.add_metric(labels, buckets, counts[-1])
        return metric

    def _begin(self, labels: Labels) -> list[float]:
        return self._series.setdefault(place(self._series, labels), [0] * (len(self._bounds) + 2))


def numbers(family: Family, series: Mapping[Labels, float]) -> Metric:
    """A counter or gauge with these series; without any, the family is shown and says nothing."""
    kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    metric: CounterMetricFamily | GaugeMetricFamily = kind(
        family.name, family.help, labels=family.labels, unit=family.unit
    )
    for labels, value in series.items():
        metric.add_metric(labels, value)
    return metric


def place(series: Mapping[Labels, object], labels: Labels) -> Labels:
    """The labels under which a series that is not there begins: ones that every reader of the format understands."""
    labels = tuple(map(clean, labels))
    return labels if labels in series or len(series) < MAX_SERIES else (OTHER,) * len(labels)


def clean(label: str) -> str:
    """Printable, not empty, of bounded length."""
    label = label[:MAX_LABEL] or "none"
    return label if label.isprintable() else "".join(one if one.isprintable() else "?" for one in label)


def _keep(series: "dict[Labels, float] | dict[Labels, list[float]]", is_kept: Callable[[str], bool]) -> None:
    for labels in [labels for labels in series if not is_kept(labels[0])]:
        del series[labels]
