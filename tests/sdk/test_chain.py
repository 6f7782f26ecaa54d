"""Chains verified without the gateway: whole, in part, changed."""

import json
from typing import Any

import pytest
import rfc8785
from gateway_client import verify_chain
from gateway_client.evidence.canonical import canonical_bytes
from gateway_client.results import AuditEvent

from tests.support.gateway import Gateway


@pytest.fixture(scope="module")
def exported(gate: Gateway) -> list[AuditEvent]:
    agent = gate.agent()
    for number in range(5):
        agent.execute("text_digest", {"text": str(number)})
    events = gate.operator().get("/v1/audit/events?limit=1000").json()["events"]
    return [
        AuditEvent(event_id=one["event_id"], event_type=one["event_type"], timestamp=one["timestamp"], raw=one)
        for one in events
    ]


def lines_of(exported: list[AuditEvent]) -> list[bytes]:
    return [rfc8785.dumps(dict(event.raw)) + b"\n" for event in reversed(exported)]


def test_an_export_of_a_running_gateway_is_a_chain_in_every_form(exported: list[AuditEvent]) -> None:
    lines = lines_of(exported)
    assert len(lines) >= 4
    reports = [
        verify_chain(lines),
        verify_chain(line.decode().rstrip("\n") for line in lines),
        verify_chain(json.loads(line) for line in lines),
        verify_chain(exported, newest_first=True),
        verify_chain(reversed(lines), newest_first=True),
    ]
    assert all(report == reports[0] for report in reports)
    assert reports[0].intact
    assert reports[0].events_checked == len(lines)
    assert reports[0].first_prev_hash is None


def test_kept_values_beside_an_event_are_no_part_of_its_chain(exported: list[AuditEvent]) -> None:
    shown = [dict(one.raw) | {"kept_state": "whole", "kept_values": {"/a": 1}} for one in reversed(exported)]
    plain = verify_chain(lines_of(exported))
    assert verify_chain(shown) == verify_chain(map(json.dumps, shown)) == plain


def test_a_part_of_a_chain_says_what_it_must_be_held_against(exported: list[AuditEvent]) -> None:
    lines = lines_of(exported)
    first, rest = verify_chain(lines[:2]), verify_chain(lines[2:])
    assert first.intact
    assert rest.intact
    assert rest.first_prev_hash == first.head_hash
    empty = verify_chain([])
    assert (empty.intact, empty.events_checked, empty.head_hash) == (True, 0, None)


def test_every_change_of_an_export_breaks_its_chain_at_its_place(exported: list[AuditEvent]) -> None:
    lines = lines_of(exported)[:25]
    ids = [json.loads(line)["event_id"] for line in lines]
    for place in range(len(lines) - 1):
        other = [*lines]
        other[place] = lines[place].replace(b'"event_type":"', b'"event_type":"X')
        report = verify_chain(other)
        assert (report.intact, report.broken_at, report.events_checked) == (False, ids[place + 1], place + 1)
        assert not verify_chain(reversed(other), newest_first=True).intact
        other[place] = lines[place].replace(b'{"', b'{ "', 1)
        assert verify_chain(other).broken_at == ids[place + 1]
        if place:
            assert verify_chain(lines[:place] + lines[place + 1 :]).broken_at == ids[place + 1]
        swapped = [*lines]
        swapped[place], swapped[place + 1] = swapped[place + 1], swapped[place]
        assert not verify_chain(swapped).intact
    assert verify_chain(lines).intact
    assert verify_chain(lines + lines[-1:]).broken_at == ids[-1]


@pytest.mark.parametrize(
    "item", ["", "{", "[]", "1", {}, {"event_id": "e"}, {"event_id": 1, "prev_hash": None},
             {"event_id": "e", "prev_hash": "sha256:AB"}, {"event_id": "e", "prev_hash": 2**70},
             {"event_id": "e", "prev_hash": None, "n": 2**70}, 7]
)  # fmt: skip
def test_a_malformed_event_breaks_a_chain_with_a_reason(item: Any) -> None:
    report = verify_chain([item])
    assert not report.intact
    assert report.reason is not None
    assert report.reason.startswith("event 1 of the export ") or "canonical" in report.reason


def test_a_value_without_canonical_form_is_refused() -> None:
    for value in (2**70, float("nan"), "\ud800", object()):
        with pytest.raises(ValueError, match="canonical"):
            canonical_bytes(value)
