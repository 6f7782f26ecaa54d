"""Action summary: items of GET /v1/actions."""

from typing import Any

import pytest

from tests.conformance.deployment import Deployment
from tests.conformance.marks import BOTH_MODES, row, rows
from tests.conformance.shapes import RISKS, SEMANTIC

pytestmark = BOTH_MODES


@pytest.fixture(scope="module")
def summaries(gate: Deployment) -> list[dict[str, Any]]:
    """All of them."""
    answer = gate.client.get("/v1/actions")
    assert answer.status_code == 200
    assert isinstance(answer.json(), list)
    assert {"text_digest", "file_write"} <= {one["action_id"] for one in answer.json()}
    return list(answer.json())


@rows(
    "action-summary",
    {
        "action_id": lambda one: isinstance(one["action_id"], str),
        "version": lambda one: SEMANTIC.fullmatch(one["version"]),
        "risk_level": lambda one: one["risk_level"] in RISKS,
        "description": lambda one: isinstance(one["description"], str),
        "database_mode": lambda one: "database_mode" in one and one["database_mode"] is None,
    },
    {"database_mode": ["versioning/3-database_mode"]},
)
def test_every_summary_has_the_field(summaries: list[dict[str, Any]], case: Any) -> None:
    assert all(case(one) for one in summaries)


@row("action-summary/no-details", "client-endpoints/actions")
def test_no_digest_schema_or_secret_is_told(summaries: list[dict[str, Any]]) -> None:
    fields = {"action_id", "version", "risk_level", "description", "database_mode"}
    assert all(set(one) == fields for one in summaries)
    assert "sha256:" not in str(summaries)
    assert "upstream_token" not in str(summaries)
