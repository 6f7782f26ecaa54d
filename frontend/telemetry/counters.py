"""The counters: a dict for each family, an entry for each series, and no other work on the path of a call.

prometheus-client's own counters take a lock, check their arguments and look their labels up by text each time; ten of
them would be a tenth of what a call costs. These are added to by the front's one event loop alone, so they need no
lock, and become prometheus-client's families when they are read. Adding never raises: a label that can't be shown is
mended when its series begins, and series beyond a bound are one series `other`. The numbers themselves lie where the
other fronts see them (frontend/telemetry/cells.py).
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from operator import add
from typing import Protocol

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.utils import floatToGoString

from frontend.telemetry.cells import Cells, Labels
from frontend.telemetry.families import OTHER, Family

MAX_SERIES = 4096
"""The most series of one family: a backstop, since every label is bounded where it is made."""
MAX_LABEL = 256


Kept = Callable[[str], bool]


class Counter(Protocol):
    """One family and its series."""

    family: Family

    def shown(self, others: Iterable[Cells] = (), is_kept: Kept | None = None) -> Metric:
        """As prometheus-client wants it, with what others have counted."""


class Series:
    """The series of one family: where the numbers of each lie. `width`: how many numbers each has."""

    __slots__ = ("_cells", "_numbers", "_series", "_width", "family")

    def __init__(self, family: Family, known: Iterable[Labels], cells: Cells | None, width: int) -> None:
        """`known` are series that are shown from the start, as 0; a family without labels has its only one."""
        self.family = family
        self._cells = cells or Cells.private()
        self._numbers = self._cells.numbers
        self._width = width
        self._series = self._cells.of_family(family.name)
        for labels in known if family.labels else [()]:
            if labels not in self._series:
                self._begin(labels)

    def keep(self, is_kept: Kept) -> None:
        """Forget the series whose first label is not kept."""
        for labels in [labels for labels in self._series if not is_kept(labels[0])]:
            self._cells.leave(self.family.name, labels, self._width)

    def _begin(self, labels: Labels) -> int:
        labels = place(self._series, labels)
        start = self._series.get(labels)
        return self._cells.place(self.family.name, labels, self._width) if start is None else start

    def _sums(self, others: Iterable[Cells], is_kept: Kept | None) -> dict[Labels, list[float]]:
        """The sums of this front's counts and the others', by labels. `is_kept` judges the first label of the
        others' series."""
        sums = {labels: self._read(self._numbers, start) for labels, start in self._series.items()}
        for cells in others:
            for labels, start in cells.of_family(self.family.name).items():
                if len(labels) != len(self.family.labels) or (is_kept is not None and not is_kept(labels[0])):
                    continue
                there = self._read(cells.numbers, start)
                sums[labels] = [*map(add, sums[labels], there)] if labels in sums else there
        return sums

    def _read(self, numbers: "memoryview[float]", start: int) -> list[float]:
        values: list[float] = numbers[start : start + self._width].tolist()  # type: ignore[assignment]
        return values


class Counts(Series):
    """The series of one counter."""

    __slots__ = ()

    def __init__(self, family: Family, known: Iterable[Labels] = (), cells: Cells | None = None) -> None:
        """See Series."""
        super().__init__(family, known, cells, 1)

    def add(self, *labels: str, times: int = 1) -> None:
        """Add `times` to the count. `labels` are those of the family, in its order."""
        index = self._series.get(labels)
        self._numbers[self._begin(labels) if index is None else index] += times

    def value(self, *labels: str) -> float:
        """The count of this front so far."""
        index = self._series.get(labels)
        return 0 if index is None else float(self._numbers[index])

    def shown(self, others: Iterable[Cells] = (), is_kept: Kept | None = None) -> Metric:
        """As prometheus-client wants it, with what others have counted."""
        return numbers(self.family, {labels: sums[0] for labels, sums in self._sums(others, is_kept).items()})


class Levels(Counts):
    """The series of a gauge that goes up and down by one. It begins with its front: nothing of one before counts."""

    __slots__ = ()

    def __init__(self, family: Family, known: Iterable[Labels] = (), cells: Cells | None = None) -> None:
        """See Series."""
        super().__init__(family, known, cells)
        for start in self._series.values():
            self._cells.clear(start, self._width)

    def less(self, *labels: str) -> None:
        """One less."""
        self.add(*labels, times=-1)


class Timings(Series):
    """The series of one histogram, in seconds: a count for each bucket and one beyond them, then the sum."""

    __slots__ = ("_bounds", "_names")

    def __init__(self, family: Family, known: Iterable[Labels] = (), cells: Cells | None = None) -> None:
        """See Series."""
        super().__init__(family, known, cells, len(family.buckets) + 2)
        self._bounds = family.buckets
        self._names = [*map(floatToGoString, family.buckets), "+Inf"]

    def observe(self, seconds: float, *labels: str) -> None:
        """One more that took so long."""
        start = self._series.get(labels)
        if start is None:
            start = self._begin(labels)
        self._numbers[start + bisect_left(self._bounds, seconds)] += 1
        self._numbers[start + self._width - 1] += seconds

    def value(self, *labels: str) -> float:
        """How many there have been here so far."""
        start = self._series.get(labels)
        return 0 if start is None else sum(self._read(self._numbers, start)[:-1])

    def shown(self, others: Iterable[Cells] = (), is_kept: Kept | None = None) -> Metric:
        """As prometheus-client wants it, with what others have counted."""
        family = self.family
        metric = HistogramMetricFamily(family.name, family.help, labels=family.labels, unit=family.unit)
        for labels, counts in self._sums(others, is_kept).items():
            so_far, buckets = 0.0, []
            for name, count in zip(self._names, counts, strict=False):  # behind the counts stands their sum
                so_far += count
                buckets.append((name, so_far))
            metric.add_metric(labels, buckets, counts[-1])
        return metric


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
