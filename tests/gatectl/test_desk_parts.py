"""The parts of the desk, without a terminal: rounds of questions, workers from metrics, lines that fit."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from gateway_client import OperatorClient, OperatorCredential, ProofKey
from gateway_client.cli.display.times import brief
from gateway_client.cli.tui.feed import LONGEST_PAUSE, MOST_EVENTS, Feed, News, errand
from gateway_client.cli.tui.pools import MOST_POOLS, Pool, pools_of
from gateway_client.cli.tui.words import row, shared_out
from gateway_client.errors import ProtocolViolation, Unreachable
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.gatectl.test_status import STATUS
from tests.support.gateway import wait_for
from tests.support.scripted_gateway import ScriptedGateway, scripted_gateway

METRICS = """\
# TYPE gate_workers gauge
gate_workers{profile="compute",state="idle"} 2.0
gate_workers{profile="compute",state="busy"} 1.0
gate_worker_waiting_calls{profile="compute"} 7.0
gate_workers{state="idle",profile="http"} 1.0
gate_workers_killed_total{profile="fs",reason="x"} 1.0
gate_workers{profile="fs",state="idle"} NaN
# EOF
"""


def event(number: int) -> dict[str, Any]:
    at = f"2026-11-23T05:00:{number // 1000:02}.{number % 1000:03}Z"
    return {"event_id": f"evt_{number}", "event_type": "ActionCall", "timestamp": at}


@pytest.fixture
def server() -> Iterator[ScriptedGateway]:
    with scripted_gateway(
        {
            "GET /v1/admin/status": (200, STATUS),
            "GET /v1/approvals": (200, {"approvals": [], "count": 0, "total": 0}),
            "GET /v1/audit/events": (200, {"events": [event(2), event(1)], "count": 2}),
            "GET /metrics": (200, "no metrics"),
        }
    ) as gateway:
        yield gateway


@pytest.fixture
def operator(server: ScriptedGateway) -> Iterator[OperatorClient]:
    credential = OperatorCredential("key-dev-" + "0" * 32, ProofKey.generate())
    with OperatorClient(server.url, credential) as client:
        yield client


def feed(operator: OperatorClient) -> Feed:
    return Feed(operator, 0.5, lambda _: None)


def test_a_round_tells_each_event_once_and_asks_for_no_more_than_is_kept(
    server: ScriptedGateway, operator: OperatorClient
) -> None:
    one = feed(operator)
    assert [told.event_id for told in one.look().events] == ["evt_1", "evt_2"]
    assert one.look().events == ()
    asked = [target for target in server.requests if "audit" in target]
    assert all(f"limit={MOST_EVENTS}" in target for target in asked)
    assert "after=2026-11-23T04" in asked[1]


def test_metrics_are_requested_only_while_their_pane_is_open(server: ScriptedGateway, operator: OperatorClient) -> None:
    one = feed(operator)
    assert one.look().pools is None
    assert not [target for target in server.requests if "metrics" in target]
    one.wants_pools = True
    assert isinstance(one.look().problem, ProtocolViolation), "they came as JSON"


def test_a_failed_round_reports_its_results_so_far_and_the_reason(
    server: ScriptedGateway, operator: OperatorClient
) -> None:
    server.answers["GET /v1/approvals"] = (503, {"error": "approval_store_unavailable"})
    news = feed(operator).look()
    assert news.status is not None
    assert (news.holds, news.problem is not None) == (None, True)


def test_an_invalid_time_ends_the_round_but_not_the_desk(server: ScriptedGateway, operator: OperatorClient) -> None:
    first = {"event_id": "e", "event_type": "t", "timestamp": "0001-01-01T00:00:01+00:00"}
    server.answers["GET /v1/audit/events"] = (200, {"events": [first], "count": 1})
    one = feed(operator)
    assert isinstance(one.look().problem, ProtocolViolation)
    server.answers["GET /v1/audit/events"] = (
        200, {"events": [{"event_id": str(at), "event_type": "t", "timestamp": "soon"} for at in range(9)], "count": 9},
    )  # fmt: skip
    two = feed(operator)
    assert [len(two.look().events) for _ in range(2)] == [9, 0]


def test_a_gateway_that_is_away_is_asked_less_often_and_at_most_so_seldom(operator: OperatorClient) -> None:
    one = feed(operator)
    away = Unreachable("unreachable", was_sent=False)
    pauses = [one._pause(away) for _ in range(6)]
    assert pauses == [1.0, 2.0, 4.0, LONGEST_PAUSE, LONGEST_PAUSE, LONGEST_PAUSE]
    assert one._pause(None) == 0.5
    assert one._pause(away) == 1.0


def test_an_errand_tells_whatever_came_of_it() -> None:
    told: list[Any] = []
    errand(lambda: 1, told.append)
    wait_for(lambda: told, "the result")
    errand(lambda: 1 // 0, told.append)
    wait_for(lambda: len(told) == 2, "the failure")
    assert told[0] == 1
    assert told[1].message.startswith("ZeroDivisionError")


def test_rounds_go_on_until_they_are_stopped(operator: OperatorClient) -> None:
    told: list[News] = []
    one = Feed(operator, 600.0, told.append)
    one.start()
    wait_for(lambda: told, "the first round")
    one.hurry()
    wait_for(lambda: len(told) == 2, "the next at once")
    one.stop()


def test_workers_are_read_out_of_metrics_and_nothing_else_is(tmp_path: Path) -> None:
    compute = Pool("compute", {"idle": 2, "busy": 1}, 7)
    assert pools_of(METRICS) == (compute, Pool("http", {"idle": 1}))
    many = "".join(f'gate_workers{{profile="p{at}",state="idle"}} 1.0\n' for at in range(99))
    assert len(pools_of(many)) == MOST_POOLS


def test_a_time_of_another_day_keeps_its_hour_in_twelve_columns() -> None:
    today = datetime.now(UTC).isoformat()
    assert len(brief(today)) == 12
    assert re.fullmatch(r"01-0[12] \d\d:04", brief("2026-01-02T03:04:05.678Z"))
    assert brief("soon") == "soon"


@given(st.text())
def test_noise_is_no_metrics(text: str) -> None:
    assert len(pools_of(text)) <= MOST_POOLS


@given(st.lists(st.text(st.sampled_from("ab 字"), max_size=40), min_size=5, max_size=5), st.integers(60, 220))
def test_a_row_fits_however_long_its_cells_are(cells: list[str], width: int) -> None:
    widths = shared_out([7, 8, None, None, 13], width)
    assert cell_len(row(cells, widths).plain) <= width
