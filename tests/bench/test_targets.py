"""A target is met, missed, or said to have no figure."""

from collections.abc import Mapping
from typing import Any

import pytest

from bench.report import report
from bench.targets import ECHO, PLAIN, SHARED, SLOW, Target, gateway_on, gateway_with, targets


def figures(factor: float) -> dict[str, Any]:
    return {
        "per_second": 1000 / factor, "p50_ms": factor, "p99_ms": 2 * factor, "cpu_us_all": 100 * factor,
        "cpu_us": {"front": 60 * factor, "notary": 40 * factor}, "client_busy": 0.1,
    }  # fmt: skip


@pytest.fixture
def results() -> dict[str, Any]:
    factors = {ECHO: 1.0, PLAIN: 2.0, SLOW: 4.0, gateway_on(SHARED): 2.5}
    return {
        "cores": 2, "load_before": (0.1, 0.1, 0.1), "rounds": 2, "seconds": 1.0,
        "floors": {"fdatasync_ms": 0.3, "component_call_ms": 0.05},
        "samples": [
            {"round": number, "subject": subject, "level": level, **figures(factor)}
            for number in range(2)
            for level in (1, 32)
            for subject, factor in factors.items()
        ],
        "refused": {gateway_with(2): {"told": "refused", "reason": "not yet"}},
        "memory": {"worker compute": 5.0},
        "after_a_kill": {"served_ms": 40.0, "workers_killed": 2},
        "system_calls": {
            "calls": 100,
            "processes": {
                "front": {"futex": 1.02, "epoll_wait": 2.0},
                "notary": {"fdatasync": 2.01, "epoll_wait": 3.0, "poll": 0.5},
                "worker compute": {"futex": 7.0},
            },
        },
    }  # fmt: skip


def by_name(results: Mapping[str, Any]) -> dict[str, Target]:
    return {target.what: target for target in targets(results)}


@pytest.mark.parametrize(
    ("what", "figure", "is_met"),
    [
        ("CPU a call at 32 ÷ echo, all processes", 2.0, True),
        ("calls/s at 32 ÷ echo, one front", 0.5, False),
        ("calls/s at 32 ÷ echo, two fronts", "refused", None),
        ("p50 ÷ echo at 1", 2.0, True),
        ("p50 ÷ echo at 8", "not measured", None),
        ("calls/s at 32, slow disk ÷ without", 0.5, False),
        ("calls/s at 32, Redis + PostgreSQL ÷ embedded", 0.8, True),
        ("flushes a call in front and notary, at 1", 2.0, True),
        ("futex a call in front and notary, at 1", 1.0, True),
        ("epoll_wait a call in front and notary, at 1", 5.0, True),
        ("idle compute worker, MB PSS", 5.0, True),
        ("SIGKILL of all compute workers → served, ms", 40.0, False),
        ("verify of 100,000 events, seconds", "not measured", None),
    ],
)
def test_a_target_has_its_figure_and_its_verdict(
    results: dict[str, Any], what: str, figure: float | str, is_met: bool | None
) -> None:  # fmt: skip
    target = by_name(results)[what]
    assert (target.figure, target.is_met) == (figure, is_met)


def test_growth_is_the_longer_ledger_against_the_shorter_one(results: dict[str, Any]) -> None:
    samples = [{"round": 0, "subject": "1000", "level": 32, **figures(2.0)}]
    samples += [{"round": 0, "subject": "1000000", "level": 32, **figures(3.0)}]
    results["growth"] = {"samples": samples, "verify": {"seconds_per_100k": 0.4}}
    targets_by_name = by_name(results)
    assert targets_by_name["CPU at 32, a million events ÷ a thousand"].figure == 1.5
    assert targets_by_name["verify of 100,000 events, seconds"].is_met


def test_without_strace_the_targets_say_so(results: dict[str, Any]) -> None:
    results["system_calls"] = {"unavailable": "strace is not installed"}
    assert by_name(results)["futex a call in front and notary, at 1"].figure == "strace is not installed"
    assert "strace is not installed" in report(results)


def test_the_report_has_a_row_for_every_subject_process_and_target(results: dict[str, Any]) -> None:
    text = report(results)
    for part in (ECHO, PLAIN, SLOW, "  notary", "not yet", *by_name(results)):
        assert part in text


def test_what_gateways_lie_on_stands_in_columns_as_ratios_to_the_echo(results: dict[str, Any]) -> None:
    lines = [line.split() for line in report(results).splitlines()]
    assert ["÷", "echo", "at", "embedded", "Redis", "+", "PostgreSQL"] in lines
    assert ["calls/s", "32", "0.50", "0.40"] in lines
    results["samples"] = [one for one in results["samples"] if one["subject"] != gateway_on(SHARED)]
    assert "embedded" not in report(results).partition("÷ embedded")[0]


def test_a_load_generator_that_has_no_time_left_is_named(results: dict[str, Any]) -> None:
    assert "BOTTLENECK" not in report(results)
    results["samples"][0]["client_busy"] = 0.9
    assert "BOTTLENECK" in report(results)
