"""Series that alert rules watch begin at 0: Prometheus sees no rise in a series that begins at 1."""

import re
from pathlib import Path

import pytest

from ipc.settings import EgressSettings
from tests.frontend.api.handlers.test_metrics import scraped
from tests.frontend.telemetry.test_documents import ALERTS, MATCHER
from tests.support.cosigners import CITY, witnessed_by
from tests.support.front_core import action, front_core
from tests.support.webhook_receiver import webhook_receiver

ELSEWHERE = {
    "gate_webhook_drops_total": "tests/frontend/api/handlers/test_scrapes.py",
    "gate_otlp_events_total": "tests/integration/test_event_logs.py",
    "gate_workers_killed_total": "more than three are watched for",
}
RISING = {
    f"{name}{{{matchers}}}": (name, {f"{label}={value}" for label, value in MATCHER.findall(matchers)})
    for rule in ALERTS
    for name, matchers in re.findall(r"increase\((gate_\w+)(?:\{([^}]*)\})?\[", rule["expr"])
    if name not in ELSEWHERE
}


@pytest.mark.parametrize(("name", "labels"), RISING.values(), ids=RISING)
async def test_a_count_that_an_alert_watches_begins_at_0(tmp_path: Path, name: str, labels: set[str]) -> None:
    with_schema = action(io={"max_request_bytes": 1024, "response_schema": {"type": "object"}})
    with webhook_receiver() as witness:
        network = EgressSettings({f"{CITY.name}.test": witness.address})
        async with front_core(tmp_path, with_schema, evidence=witnessed_by(CITY), egress=network) as core:
            values = {said: value for (one, said), value in (await scraped(core)).items() if one == name}
            assert [value for said, value in values.items() if labels <= set(said.split(","))]
