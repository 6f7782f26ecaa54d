"""The results of a run as tables for a terminal. Text in, text out; the figures are those of the JSON."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.rounds import METRICS, levels_of, median, processes, ratio
from bench.system_calls import GROUPS
from bench.targets import ECHO, ON, PLAIN, targets

HEADINGS = ("calls/s", "p50 ms", "p99 ms", "CPU µs")
CROWDED = 0.7
"""The report names a load generator that uses more of a core than this."""


def report(results: Mapping[str, Any]) -> str:
    """Everything, a table below the other."""
    tables = (_floors, _levels, _backends, _processes, _system_calls, _others, _targets)
    parts = [list(one(results)) for one in tables]
    return "\n\n".join("\n".join(part) for part in parts if part)


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns as wide as their widest cell; the first one to the left, the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        first, *others = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        lines.append("  ".join((row[0].ljust(len(first)), *others)).rstrip())
    return lines


def figure(value: float | str | None) -> str:
    """Three digits or so; `-` for none."""
    if value is None or isinstance(value, str):
        return value or "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _subjects(results: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(sample["subject"] for sample in results["samples"]))


def _floors(results: Mapping[str, Any]) -> list[str]:
    floors = results["floors"]
    text = (
        f"fdatasync {figure(floors['fdatasync_ms'])} ms · component call {figure(floors['component_call_ms'])} ms · "
        f"{results['cores']} cores, load {results['load_before'][0]:.1f} before · {results['rounds']} rounds of "
        f"{results['seconds']} s a level"
    )
    return [text]


def _levels(results: Mapping[str, Any]) -> list[str]:
    samples = results["samples"]
    rows = [("subject", "at", *HEADINGS, *(f"÷ echo: {name.split()[0]}" for name in HEADINGS))]
    for subject in _subjects(results):
        for level in levels_of(samples, subject):
            figures = [figure(median(samples, subject, level, metric)) for metric in METRICS]
            ratios = [figure(ratio(samples, subject, ECHO, level, metric)) for metric in METRICS]
            rows.append((subject, str(level), *figures, *(ratios if subject != ECHO else [""] * len(ratios))))
    refused = [f"{name}: {why['told']} ({why['reason']})" for name, why in results["refused"].items()]
    return [*table(rows), *refused, *_crowded(samples)]


def _backends(results: Mapping[str, Any]) -> list[str]:
    """The backends of a gateway as columns, each as ratios to the echo of the same run."""
    samples = results["samples"]
    names = [one for one in _subjects(results) if one == PLAIN or one.startswith(ON)]
    if names == [PLAIN]:
        return []
    rows = [("÷ echo", "at", *(one.removeprefix(ON) if one != PLAIN else "embedded" for one in names))]
    for heading, metric in zip(HEADINGS, METRICS, strict=True):
        for level in levels_of(samples, PLAIN):
            rows.append(
                (heading.split()[0], str(level), *(figure(ratio(samples, one, ECHO, level, metric)) for one in names))
            )
    return table(rows)


def _crowded(samples: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    busiest = max(samples, key=lambda sample: float(sample["client_busy"]))
    told = f"load generator: at most {busiest['client_busy']:.0%} of a core ({busiest['subject']}, {busiest['level']})"
    yield told + ("; IT MAY BE THE BOTTLENECK" if busiest["client_busy"] > CROWDED else "")


def _processes(results: Mapping[str, Any]) -> list[str]:
    samples = results["samples"]
    lines: list[str] = []
    for subject in _subjects(results):
        if not subject.startswith(PLAIN):
            continue
        levels = levels_of(samples, subject)
        by_level = {level: processes(samples, subject, level) for level in levels}
        kinds = [kind for kind, used in by_level[levels[-1]].items() if used >= 1]
        rows = [(f"CPU µs a call, {subject}", *(f"at {level}" for level in levels))]
        rows += [(f"  {kind}", *(figure(by_level[level].get(kind)) for level in levels)) for kind in kinds]
        lines += table(rows)
    return lines


def _system_calls(results: Mapping[str, Any]) -> list[str]:
    counted = results.get("system_calls", {})
    if "processes" not in counted:
        return [f"system calls: {counted['unavailable']}"] if counted else []
    rows = [("system calls a call, at 1", *GROUPS, "all")]
    for kind, names in counted["processes"].items():
        groups = [sum(names.get(name, 0.0) for name in GROUPS[group]) for group in GROUPS]
        rows.append((f"  {kind}", *(figure(count) for count in (*groups, sum(names.values())))))
    return table(rows)


def _others(results: Mapping[str, Any]) -> Iterator[str]:
    yield "PSS, MB: " + ", ".join(f"{kind} {figure(size)}" for kind, size in results["memory"].items())
    for name in ("after_a_kill", "health", "leases", "approvals"):
        if name in results:
            yield f"{name}: " + ", ".join(f"{what} {figure(value)}" for what, value in results[name].items())


def _targets(results: Mapping[str, Any]) -> list[str]:
    rows = [("", "figure", "to reach", "")]
    for target in targets(results):
        verdict = {True: "met", False: "missed", None: ""}[target.is_met]
        rows.append((target.what, figure(target.figure), f"{target.relation} {target.bound:g}", verdict))
    return table(rows)
