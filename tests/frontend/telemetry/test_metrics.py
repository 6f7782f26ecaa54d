"""A front's metrics: bounded for any input, and cheap in a call."""

import time
from typing import Any

import pytest

from frontend.telemetry.counters import Counts, Timings
from frontend.telemetry.families import FAMILIES, OTHER
from frontend.telemetry.metrics import MAX_RULES, Metrics
from frontend.telemetry.processes import Processes
from frontend.telemetry.readings import exposition, shown

ROUTE = "/v1/actions/{action_id}/execute"


class Registry(dict[str, bool]):
    """Actions by id."""


def metrics_of(*actions: str) -> tuple[Metrics, list[Registry]]:
    active = [Registry(dict.fromkeys(actions, True))]
    return Metrics(lambda: active[0]), active


def test_only_actions_that_exist_are_labels() -> None:
    metrics, _ = metrics_of("known")
    for action_id in ("known", "unknown", "x" * 10_000, "", "other", "a\nb"):
        metrics.called(action_id, "deny", "invalid_dpop", time.monotonic())
        metrics.executed(action_id, "response_schema", 0.1)
    assert (metrics.calls.value("known", "deny", "invalid_dpop"), metrics.calls.value(OTHER, "deny", "invalid_dpop")) \
        == (1, 5)  # fmt: skip
    assert (metrics.schema_violations.value("known"), metrics.schema_violations.value(OTHER)) == (1, 5)
    assert metrics.execution_seconds.value(OTHER) == 5


def test_a_reload_leaves_no_series_of_removed_actions_and_keeps_the_others() -> None:
    metrics, active = metrics_of("stays", "goes")
    for number in range(50):
        for action_id in ("stays", "goes", "nowhere"):
            metrics.called(action_id, "allow", None, time.monotonic())
            metrics.executed(action_id, "success", 0.1)
        active[0] = Registry({"stays": True, f"new-{number}": True})
        metrics.executed(f"new-{number}", "success", 0.1)
        active[0] = Registry({"stays": True, "goes": True})
    active[0] = Registry({"stays": True})
    labels = {
        sample.labels["action_id"]
        for family in shown(metrics, {})
        for sample in family.samples
        if "action_id" in sample.labels
    }
    assert labels == {"stays", OTHER}
    assert metrics.calls.value("stays", "allow", "ok") == 50
    assert metrics.calls.value(OTHER, "allow", "ok") == 50


def test_rules_are_told_apart_up_to_a_bound() -> None:
    metrics, _ = metrics_of()
    for number in range(3 * MAX_RULES):
        metrics.decided("deny", f"rule {number}")
        metrics.decided("deny", "rule 0")
    assert metrics.decisions.value("deny", "rule 0") == 3 * MAX_RULES + 1
    assert metrics.decisions.value("deny", OTHER) == 2 * MAX_RULES
    assert len(metrics.decisions.shown().samples) == MAX_RULES + 1


@pytest.mark.parametrize(
    ("reason", "label"),
    [("RECYCLED", "RECYCLED"), ("SIGKILL", "SIGKILL"), ("exit 3", OTHER), ("signal 44", OTHER), ("x\n", OTHER)],
)
def test_a_worker_does_not_choose_labels_by_the_way_it_ends(reason: str, label: str) -> None:
    metrics, _ = metrics_of()
    metrics.worker_ended("compute-7", reason)
    metrics.worker_ended("strange-7", reason)
    assert (metrics.workers_ended.value("compute", label), metrics.workers_ended.value(OTHER, label)) == (1, 1)


def test_a_worker_that_is_killed_is_counted_and_killed() -> None:
    killed: list[tuple[str, str]] = []

    def kill(worker_id: str, reason: str) -> None:
        killed.append((worker_id, reason))

    metrics, _ = metrics_of()
    metrics.counting_kills(kill)("http-2", "no result in time")
    assert killed == [("http-2", "no result in time")]
    assert metrics.workers_killed.value("http", "no result in time") == 1


def test_every_family_is_in_the_text_once_even_if_nothing_is_known() -> None:
    metrics, _ = metrics_of()
    text = exposition(shown(metrics, {}), Processes(1)).decode()
    for family in FAMILIES:
        base = family.name.removesuffix("_total")
        assert text.count(f"# TYPE {base} {family.kind}\n") == 1
        assert text.count(f"# HELP {base} ") == 1
    assert text.endswith("\n# EOF\n")
    assert text.count("# TYPE") == len(FAMILIES)


def test_names_of_families_say_their_unit_and_kind() -> None:
    for family in FAMILIES:
        assert family.name.startswith("gate_")
        assert (family.kind == "counter") == family.name.endswith("_total"), family
        assert (family.kind == "histogram") == bool(family.buckets), family
        assert family.kind != "histogram" or family.unit == "seconds"
        assert family.buckets == tuple(sorted(set(family.buckets)))
        assert family.help.endswith("."), family
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


def test_counting_a_call_costs_less_than_fifteen_microseconds() -> None:
    metrics, _ = metrics_of(*(f"action-{number}" for number in range(40)))

    def call(number: int) -> None:
        """Everything that is counted on the way of one executed call."""
        action_id = f"action-{number % 40}"
        for operation in ("check_in", "budget_read", "budget_debit"):
            metrics.store_seconds.observe(0.003, operation)
        metrics.policy_seconds.observe(0.001, "decide")
        metrics.decided("allow", "allow")
        metrics.worker_wait.observe(0.0001, "compute")
        for operation in ("intent", "receipt"):
            metrics.ledger_seconds.observe(0.004, operation)
        metrics.executed(action_id, "success", 0.003)
        metrics.called(action_id, "allow", None, time.monotonic())
        metrics.answered(ROUTE, "POST", 200)

    def seconds_each() -> float:
        began = time.process_time()
        for number in range(1000):
            call(number)
        return (time.process_time() - began) / 1000

    # A processor that others share is slow for seconds on end: what counts is the best of as many rounds as it takes.
    deadline = time.monotonic() + 60
    best = seconds_each()
    while best >= 15e-6 and time.monotonic() < deadline:
        best = min(best, seconds_each())
    assert best < 15e-6


def test_every_cell_is_of_a_family_of_the_table_and_shown() -> None:
    metrics, _ = metrics_of()
    held: list[Any] = [counter for counter in vars(metrics).values() if isinstance(counter, Counts | Timings)]
    assert {counter.family for counter in held} <= set(FAMILIES)
    assert len(metrics.counters) == len(held), "no two counters count for one family"
