"""Documents, dashboard and alert rules name exactly the metrics that exist."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from frontend.telemetry.families import FAMILIES, Family

ROOT = Path(__file__).resolve().parents[3]
ROW = re.compile(r"^\| `(gate_\w+)` \| (\w+) \|([^|]*)\| (.+) \|$", re.MULTILINE)
DOCUMENTED = ROW.findall((ROOT / "docs" / "metrics.md").read_text())
BY_NAME = {family.name: family for family in FAMILIES}
ALERTS = yaml.safe_load((ROOT / "contrib" / "prometheus" / "alerts.yaml").read_text())["groups"][0]["rules"]
DASHBOARD = json.loads((ROOT / "contrib" / "grafana" / "gateway.json").read_text())
SELECTOR = re.compile(r"(gate_\w+)(?:\{([^}]*)\})?")
JOB = re.search(r"job_name: (\w+)", (ROOT / "docs" / "metrics.md").read_text())[1]  # type: ignore[index]
"""The job name of the gateway in the page's Prometheus configuration."""
MATCHER = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"')


def test_every_family_is_documented_with_its_kind_and_labels_and_no_other() -> None:
    said = {name: (kind, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels, _ in DOCUMENTED}
    assert said == {family.name: (family.kind, family.labels) for family in FAMILIES}
    assert len(DOCUMENTED) == len(FAMILIES), "each once"


def family_of(sample: str) -> Family:
    """The family that a query's name belongs to. Raises KeyError."""
    if sample in BY_NAME and BY_NAME[sample].kind != "histogram":
        return BY_NAME[sample]
    name, _, suffix = sample.rpartition("_")
    if suffix in ("bucket", "count", "sum") and BY_NAME[name].kind == "histogram":
        return BY_NAME[name]
    raise KeyError(sample)


def check_query(query: str) -> None:
    """Every metric in it exists, with every label that it is asked by; parentheses are closed."""
    assert query.count("(") == query.count(")"), query
    selectors = SELECTOR.findall(query)
    assert selectors or "node_textfile" in query or query == f'up{{job="{JOB}"}} == 0', query
    labels = {"le"}
    for name, matchers in selectors:
        family = family_of(name)
        labels |= set(family.labels)
        for label, _ in MATCHER.findall(matchers):
            assert label in family.labels, (query, label)
    for group in re.findall(r"(?:by|on) \(([\w, ]+)\)", query):
        assert set(re.split(r",\s*", group)) <= labels, query


def queries_of_dashboard() -> Iterator[tuple[str, str, str]]:
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"], target["legendFormat"]


@pytest.mark.parametrize(("title", "query", "legend"), list(queries_of_dashboard()))
def test_the_dashboard_asks_for_what_there_is(title: str, query: str, legend: str) -> None:
    check_query(query)
    labels = {label for name, _ in SELECTOR.findall(query) for label in family_of(name).labels}
    assert set(re.findall(r"\{\{(\w+)\}\}", legend)) <= labels


def test_the_dashboard_shows_every_family_that_can_move() -> None:
    shown = {family_of(name).name for _, query, _ in queries_of_dashboard() for name, _ in SELECTOR.findall(query)}
    assert set(BY_NAME) == shown
    places = [tuple(panel["gridPos"].values()) for panel in DASHBOARD["panels"]]
    assert len(set(places)) == len(places)
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(places)


def headings() -> set[str]:
    """Anchors of docs/operations.md as they are linked."""
    titles = re.findall(r"^#+ (.+)$", (ROOT / "docs" / "operations.md").read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("rule", ALERTS, ids=[rule["alert"] for rule in ALERTS])
def test_an_alert_asks_for_what_there_is_and_says_what_to_do(rule: dict[str, Any]) -> None:
    check_query(rule["expr"])
    assert rule["labels"]["severity"] in ("page", "ticket")
    assert set(rule["annotations"]) == {"summary", "runbook"}
    assert len(rule["annotations"]["summary"]) > 20
    document, _, anchor = rule["annotations"]["runbook"].partition("#")
    assert document == "docs/operations.md"
    assert anchor in headings(), anchor


def test_a_ledger_without_room_raises_an_alert_before_and_while_it_refuses_calls() -> None:
    asked = " ".join(rule["expr"] for rule in ALERTS)
    assert 'gate_calls_refused_total{reason="ledger_full"}' in asked
    assert "gate_ledger_free_bytes <" in asked


def test_each_alert_has_a_name_of_its_own() -> None:
    assert len({rule["alert"] for rule in ALERTS}) == len(ALERTS) > 10
