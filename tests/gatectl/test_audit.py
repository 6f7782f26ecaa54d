"""The audit commands: no event missed or told twice, exports that verify without a gateway, broken chains as exit 8."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from gateway_client import AgentClient, Executed
from gateway_client.cli.watching.tailing import Tail
from gateway_client.results import AuditEvent, EventFilter
from hypothesis import given
from hypothesis import strategies as st

from tests.support.gatectl import Gatectl, pointed_at
from tests.support.gateway import wait_for
from tests.support.scripted_gateway import scripted_gateway


def event(number: int, millisecond: int) -> AuditEvent:
    second, rest = divmod(millisecond, 1000)
    stamp = f"2026-11-21T11:{second // 60:02}:{second % 60:02}.{rest:03}Z"
    fields: dict[str, Any] = {"event_id": f"evt_{number}", "event_type": "x", "timestamp": stamp}
    return AuditEvent(**fields, raw=fields)


@given(st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 4000), st.booleans()), max_size=40))
def test_every_event_is_printed_once_in_any_order_of_writing(writes: list[tuple[int, int, bool]]) -> None:
    """Each write: when it is written, how much earlier its stamp is, and whether the tail looks right after."""
    tail, written, told = Tail(EventFilter()), list[AuditEvent](), list[str]()

    def look() -> None:
        after = tail.next_filter().after
        events = [one for one in written if after is None or one.timestamp > after]
        told.extend(one.event_id for one in tail.fresh(sorted(events, key=lambda one: one.timestamp, reverse=True)))

    for number, (moment, delay, looks) in enumerate(sorted(writes)):
        written.append(event(number, max(0, moment - delay)))
        if looks:
            look()
    look()
    assert sorted(told) == sorted(one.event_id for one in written)


def test_seen_events_are_forgotten_once_they_can_not_come_again() -> None:
    tail = Tail(EventFilter())
    for second in range(100):
        tail.fresh([event(second, second * 1000)])
    assert len(tail._seen) <= 6
    assert tail.next_filter().after == "2026-11-21T11:01:34.000Z"


def test_tail_shows_a_call_as_it_comes(gatectl: Gatectl, agent: AgentClient) -> None:
    agent.execute("text_digest", {"text": "before"})
    assert agent.session is not None
    mine = ["--session-id", agent.session.session_id]
    with gatectl.started("audit", "tail", "-n", "1", "--interval", "0.2", "--for", "600", *mine) as tail:
        assert tail.stdout is not None
        first = wait_for(tail.stdout.readline, "the last event")
        done = agent.execute("text_digest", {"text": "now"})
        assert isinstance(done, Executed)
        second = wait_for(tail.stdout.readline, "the new event")
    assert done.trace_id not in first
    assert " allow  text_digest  dev:anonymous  " in second
    assert second.endswith(f"ms  {done.trace_id}\n")


def test_tail_names_the_type_of_an_event_that_is_no_call(gatectl: Gatectl) -> None:
    stamped = {"timestamp": "2026-11-21T11:12:13.123Z", "prev_hash": None, "principal": "operator:ann"}
    added = stamped | {
        "event_id": "evt_1",
        "event_type": "PolicyAllowlistAdded",
        "action_id": "pay",
        "decision": "allow",
    }
    sealed = stamped | {"event_id": "evt_2", "event_type": "LedgerSealed", "decision": "allow"}
    with scripted_gateway({"GET /v1/audit/events": (200, {"events": [sealed, added], "count": 2})}) as server:
        lines = pointed_at(gatectl, server.url).done("audit", "tail", "--for", "0").out.splitlines()
    assert [line.split("  ")[1:] for line in lines] == [
        ["allow", "PolicyAllowlistAdded", "pay", "operator:ann", "evt_1"],
        ["allow", "LedgerSealed", "operator:ann", "evt_2"],
    ]


def test_events_are_filtered_and_bounded(gatectl: Gatectl, agent: AgentClient) -> None:
    done = agent.execute("text_digest", {"text": "x"})
    assert isinstance(done, Executed)
    events = gatectl.done("audit", "events", "--trace-id", done.trace_id, "--after", "5m", "--json").lines
    assert [one["receipt_id"] for one in events] == [done.receipt_id]
    assert gatectl.done("audit", "events", "--after", "2999-01-01T00:00:00Z").out == "no events\n"
    assert len(gatectl.done("audit", "events", "--all", "--json").lines) > 1
    assert gatectl.here("audit", "events", "--after", "yesterday").code == 2


def test_kept_values_are_shown_and_searched_for(gatectl: Gatectl) -> None:
    one = {"event_id": "evt_1", "event_type": "ActionCall", "timestamp": "2026-11-21T11:12:13.123Z", "prev_hash": None}
    whole = one | {"kept_state": "whole", "kept_values": {"/invoice_id": "in_\x1b7", "/amount": 100, "/iban": None}}
    gone = one | {"event_id": "evt_2", "kept_state": "erased", "kept_values": {"/invoice_id": None}}
    with scripted_gateway({"GET /v1/audit/events": (200, {"events": [whole, gone, one], "count": 3})}) as server:
        there = pointed_at(gatectl, server.url)
        out = there.done("audit", "events", "--kept", "/invoice_id=in_7", "--kept", "/a=b=c").out
        assert "kept.%2Finvoice_id=in_7&kept.%2Fa=b%3Dc" in server.requests[-1]
        assert there.here("audit", "events", "--kept", "invoice").code == 2
    heading, first, second, third = out.splitlines()
    assert "KEPT" in heading
    assert "/invoice_id=in_\\u001b7 /amount=100 /iban=null" in first
    assert "erased" in second
    assert third.split()[-2:] == ["-", "-"]


def test_an_export_verifies_and_one_that_was_touched_does_not(
    gatectl: Gatectl, agent: AgentClient, tmp_path: Path
) -> None:
    for number in range(3):
        agent.execute("text_digest", {"text": str(number)})
    export, bent = tmp_path / "events.jsonl", tmp_path / "bent.jsonl"
    assert gatectl.done("audit", "events", "--export", str(export)).out.endswith(f" events in {export}\n")
    assert os.stat(export).st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["events.jsonl"]
    out = gatectl.done("audit", "verify", "--export", str(export)).out
    assert "from the first event ever" in out
    head = out.split()[-1]
    gatectl.done("audit", "verify", "--export", str(export), "--head", head)
    lines = export.read_bytes().splitlines(keepends=True)
    changed = json.loads(lines[-2]) | {"principal": "somebody-else"}
    for kept in (
        [*lines[:2], *lines[3:]],
        [*lines[:-2], json.dumps(changed).encode() + b"\n", lines[-1]],
        [lines[1], lines[0]],
    ):
        bent.write_bytes(b"".join(kept))
        ran = gatectl.here("audit", "verify", "--export", str(bent))
        assert (ran.code, ran.err.startswith("gatectl: chain_broken: broken at evt_")) == (8, True)
    bent.write_bytes(b"".join(lines[:-1]))  # a tail that is gone shows in the head alone
    ran = gatectl.here("audit", "verify", "--export", str(bent), "--head", head, "--json")
    assert (ran.code, ran.json["intact"]) == (8, False)


def test_an_export_replaces_nothing(gatectl: Gatectl, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.write_text("mine")
    ran = gatectl.here("audit", "events", "--export", str(there))
    assert (ran.code, there.read_text(), os.listdir(tmp_path)) == (5, "mine", ["there"])


def test_a_broken_ledger_is_exit_8_and_the_answer_is_printed(gatectl: Gatectl) -> None:
    report = {"intact": False, "events_checked": 7, "broken_at": "evt_8", "reason": "prev_hash\x1b does not match"}
    with scripted_gateway({"GET /v1/audit/verify": (200, report)}) as server:
        there = pointed_at(gatectl, server.url)
        told, as_json = there.here("audit", "verify"), there.here("audit", "verify", "--json")
    assert (told.code, told.out) == (8, "")
    assert "chain_broken: broken at evt_8 after 7 events: prev_hash\\u001b does not match" in told.err
    assert (as_json.code, as_json.json, as_json.error["error"]) == (8, report, "chain_broken")


@pytest.mark.parametrize("command", ["audit verify --export", "receipts verify --keys"])
@pytest.mark.parametrize("content", ["", "[]", "\n"])
def test_a_file_of_nothing_proves_nothing(gatectl: Gatectl, tmp_path: Path, command: str, content: str) -> None:
    file, jwks = tmp_path / "file", tmp_path / "jwks.json"
    file.write_text(content)
    jwks.write_text(gatectl.done("receipts", "keys").out)
    words = [*command.split(), str(file)] if "audit" in command else [*command.split(), str(jwks), str(file)]
    told, as_json = gatectl.here(*words), gatectl.here(*words, "--json")
    assert (told.code, as_json.code) == (8, 8)
    if "audit" in command and content:  # a line that is no event
        assert as_json.error["error"] == "chain_broken"
        return
    assert as_json.error["error"] == "nothing_verified"
    assert told.err.startswith("gatectl: nothing_verified: ")
    document = as_json.json
    assert document.get("intact", False) is False
    assert document.get("verified", 0) == 0
