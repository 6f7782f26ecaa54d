"""Rounds: every subject at every level once, then again; and what the rounds say together.

A ratio is always taken between two samples of the same level and round, so that a machine that is slower for a minute
is slower for both; the report has the median of the rounds. Samples are plain dictionaries, as they stand in the JSON.
"""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Sample = dict[str, Any]
"""`round`, `subject`, `level` (connections) and the figures of `bench.load.figures`."""

METRICS = ("per_second", "p50_ms", "p99_ms", "cpu_us_all")


def order(names: Sequence[str], number: int) -> list[str]:
    """The order of one round: it starts with another subject each time, so that none always follows the same one."""
    start = number % len(names) if names else 0
    return [*names[start:], *names[:start]]


def play(
    subjects: Mapping[str, Iterable[int]],
    levels: Iterable[int],
    rounds: int,
    measure: Callable[[str, int, int], Sample],
) -> list[Sample]:
    """Measure every subject at those of `levels` that it takes part in, `rounds` times, subjects interleaved.

    `measure` gets subject, level and the number of the round.
    """
    samples = []
    for number in range(rounds):
        for level in levels:
            taking_part = [name for name, own in subjects.items() if level in own]
            for name in order(taking_part, number):
                samples.append({"round": number, "subject": name, "level": level, **measure(name, level, number)})
    return samples


def levels_of(samples: Iterable[Sample], subject: str) -> list[int]:
    """The levels at which a subject was measured."""
    return sorted({sample["level"] for sample in samples if sample["subject"] == subject})


def median(samples: Iterable[Sample], subject: str, level: int, metric: str) -> float | None:
    """Median of a figure over the rounds; None without samples."""
    values = [one[metric] for one in samples if one["subject"] == subject and one["level"] == level]
    return statistics.median(values) if values else None


def ratio(samples: Iterable[Sample], subject: str, base: str, level: int, metric: str) -> float | None:
    """Median over the rounds of subject ÷ base in the same round; None where no round has both."""
    by_round: dict[int, dict[str, float]] = {}
    for one in samples:
        if one["level"] == level:
            by_round.setdefault(one["round"], {})[one["subject"]] = one[metric]
    ratios = [both[subject] / both[base] for both in by_round.values() if both.get(base) and subject in both]
    return statistics.median(ratios) if ratios else None


def processes(samples: Iterable[Sample], subject: str, level: int) -> dict[str, float]:
    """Processor time in microseconds a call of each kind of process: medians of the rounds, the largest first.

    A kind that a round did not see used nothing in it.
    """
    rounds = [one["cpu_us"] for one in samples if one["subject"] == subject and one["level"] == level]
    kinds = {kind for one in rounds for kind in one}
    figures = {kind: statistics.median(one.get(kind, 0.0) for one in rounds) for kind in kinds}
    return dict(sorted(figures.items(), key=lambda item: -item[1]))
