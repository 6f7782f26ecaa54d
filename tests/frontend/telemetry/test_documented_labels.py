"""Labels in docs/metrics.md: the code counts by every value that it names."""

import re
from pathlib import Path

import pytest

from frontend.telemetry.metrics import STORE_REQUESTS, Metrics

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "metrics.md"
ROW = re.compile(r"^\| `(gate_\w+)` \| \w+ \|[^|]*\|(.*)\|$", re.MULTILINE)
MEANINGS = dict(ROW.findall(DOCUMENT.read_text()))
ELSEWHERE = {"gate_rate_limited_total": {"scrape"}}
"""Counted by code that a front without a socket for metrics does not load."""


class NoActions:
    def get(self, action_id: str) -> None:
        """No action."""


def declared() -> dict[str, set[str]]:
    """Family -> values of its labels that are there before anything is counted."""
    metrics = Metrics(NoActions)
    shown = {name: metrics.shown(counter.family) for name, counter in metrics.counters.items()}
    return {
        name: {value for sample in one.samples for label, value in sample.labels.items() if label != "le"}
        for name, one in shown.items()
    }


KNOWN = declared()


def named_in(meaning: str) -> set[str]:
    """Words in backticks that are one lower-case identifier, other than names of families."""
    return {word for word in re.findall(r"`([a-z_]+)`", meaning) if not word.startswith("gate_")}


@pytest.mark.parametrize("name", sorted(name for name, values in KNOWN.items() if values))
def test_label_values_that_the_page_names_exist(name: str) -> None:
    assert named_in(MEANINGS[name]) <= KNOWN[name] | ELSEWHERE.get(name, set())


def test_every_request_to_the_key_value_store_is_named() -> None:
    said = named_in(MEANINGS["gate_store_request_duration_seconds"])
    assert said | named_in(MEANINGS["gate_store_request_errors_total"]) == set(STORE_REQUESTS)
