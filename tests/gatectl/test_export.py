"""gatectl audit export: whole files only, continued where they were cut, nothing that a spreadsheet would run."""

import csv
import json
import resource
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from gateway_client import AgentClient, Executed
from gateway_client.cli.evidence_export.columns import columns_of, row_of

from tests.support.gatectl import Gatectl, pointed_at
from tests.support.scripted_gateway import ScriptedGateway, scripted_gateway

EVENTS = "GET /v1/audit/events"


def event(number: int, **members: Any) -> dict[str, Any]:
    """Event `number`; three share a millisecond."""
    stamp = f"2026-11-21T11:00:{number // 3 // 1000:02}.{number // 3 % 1000:03}Z"
    return {"event_id": f"evt_{number}", "event_type": "ActionCall", "timestamp": stamp, **members}


def page_of(events: list[dict[str, Any]], target: str) -> list[dict[str, Any]]:
    """The events that a gateway answers to this query, newest first."""
    query = parse_qs(urlsplit(target).query)
    before, limit = query.get("before", ["9"])[0], int(query["limit"][0])
    kinds = query.get("event_type", [])
    fitting = [one for one in reversed(events) if one["timestamp"] < before]
    return [one for one in fitting if not kinds or one["event_type"] in kinds][:limit]


class AuditedGateway(ScriptedGateway):
    """Answers pages of `events`; each number in `broken` is a question that it answers with 503."""

    events: list[dict[str, Any]]
    broken: set[int]

    def answer(self, method: str, target: str) -> tuple[int, Any]:
        self.requests.append(target)
        if len(self.requests) in self.broken:
            return 503, {"error": "evidence_store_unavailable"}
        page = page_of(self.events, target)
        return 200, {"events": page, "count": len(page)}


def serve(server: ScriptedGateway, events: list[dict[str, Any]], *broken: int) -> AuditedGateway:
    server.__class__ = AuditedGateway
    assert isinstance(server, AuditedGateway)
    server.events, server.broken = events, set(broken)
    return server


def ids(file: Path) -> list[str]:
    return [json.loads(line)["event_id"] for line in file.read_text().splitlines()]


def test_an_export_has_each_event_once_newest_first(gatectl: Gatectl, agent: AgentClient, tmp_path: Path) -> None:
    done = agent.execute("text_digest", {"text": "exported"})
    assert isinstance(done, Executed)
    file = tmp_path / "events.jsonl"
    told = gatectl.done("audit", "export", "--out", str(file), "--action", "text_digest", "--after", "1h")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert told.out == f"{len(lines)} events in {file}\n"
    assert lines[0]["trace_id"] == done.trace_id
    assert (file.stat().st_mode & 0o777, [one.name for one in tmp_path.iterdir()]) == (0o600, ["events.jsonl"])
    assert {one["action_id"] for one in lines} == {"text_digest"}


def test_a_connection_that_breaks_in_the_middle_costs_no_event(gatectl: Gatectl, tmp_path: Path) -> None:
    events, file = [event(number) for number in range(2500)], tmp_path / "events.jsonl"
    with scripted_gateway({}) as server:
        serve(server, events, 2, 4)
        gatectl = pointed_at(gatectl, server.url)
        ran = gatectl.done("audit", "export", "--out", str(file))
    assert ids(file) == [one["event_id"] for one in reversed(events)]
    assert "asking again until it answers" in ran.err


def test_a_cut_export_is_continued_behind_its_last_whole_line(gatectl: Gatectl, tmp_path: Path) -> None:
    events, file, part = [event(number) for number in range(40)], tmp_path / "all.jsonl", tmp_path / "all.jsonl.part"
    with scripted_gateway({}) as server:
        serve(server, events, 1)
        there = pointed_at(gatectl, server.url)
        assert there.here("audit", "export", "--out", str(file), "--before", "2999-01-01").code == 6
        begun = part.read_bytes()
        for kept in (0, 1, 17, 40):
            lines = [json.dumps(one).encode() + b"\n" for one in list(reversed(events))[:kept]]
            part.write_bytes(begun + b"".join(lines) + b'{"event_id":"evt_')
            refused = there.here("audit", "export", "--out", str(file), "--before", "2999-01-01")
            assert (refused.code, "--resume continues it" in refused.err) == (5, True)
            assert there.here("audit", "export", "--out", str(file), "--resume").code == 2
            there.done("audit", "export", "--out", str(file), "--before", "2999-01-01", "--resume")
            assert ids(file) == [one["event_id"] for one in reversed(events)]
            assert not part.exists()
            file.unlink()


def sealed_event(number: int, until: str, segment: str) -> dict[str, Any]:
    return event(number) | {"event_type": "LedgerSealed", "change": {"until": until, "segment": segment}}


def test_an_export_names_the_segments_that_have_what_it_lacks(gatectl: Gatectl, tmp_path: Path) -> None:
    events, file = [event(number) for number in range(30)], tmp_path / "events.jsonl"
    events += [
        sealed_event(30, "2026-08-01T00:00:00.000Z", "segment-a"),
        sealed_event(31, "2026-09-01T00:00:00.000Z", "segment-b"),
    ]
    with scripted_gateway({}) as server:
        serve(server, events)
        there = pointed_at(gatectl, server.url)
        ran = there.here("audit", "export", "--out", str(file))
        assert (ran.code, len(ids(file))) == (4, 32)
        assert "events up to 2026-09-01T00:00:00.000Z are in segment-a, segment-b" in ran.err
        part = there.here("audit", "export", "--out", str(file), "--force", "--after", "2026-08-15T00:00:00Z")
        assert (part.code, "are in segment-b" in part.err) == (4, True)
        there.done("audit", "export", "--out", str(file), "--force", "--after", "2026-09-01T00:00:00Z")


def test_an_export_ends_where_the_ledger_was_sealed_under_it(gatectl: Gatectl, tmp_path: Path) -> None:
    file, told = tmp_path / "events.jsonl", sealed_event(1, "2026-09-01T00:00:00.000Z", "segment-a")
    with scripted_gateway({}) as server:
        serve(server, [told])
        original = AuditedGateway.answer

        def answer(method: str, target: str) -> tuple[int, Any]:
            if "event_type" not in target:
                return 404, {"error": "sealed", "segment": "segment-a", "message": "it lies in segment-a"}
            return original(server, method, target)  # type: ignore[arg-type]

        server.answer = answer  # type: ignore[method-assign]
        ran = pointed_at(gatectl, server.url).here("audit", "export", "--out", str(file))
    assert (ran.code, file.read_bytes()) == (4, b"")
    assert "are in segment-a" in ran.err


@pytest.mark.parametrize(
    "words", [["audit", "export", "--out"], ["audit", "events", "--export"], ["metrics", "--output"]]
)
def test_a_disk_that_takes_no_more_is_told_with_the_file(
    gatectl: Gatectl, agent: AgentClient, tmp_path: Path, words: list[str]
) -> None:
    agent.execute("text_digest", {"text": "one more event"})
    _, hard = before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, hard))
    try:
        ran = gatectl.here(*words, str(tmp_path / "out"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (ran.code, ran.err) == (1, f"gatectl: failed: {tmp_path / 'out'}: File too large\n")


def test_a_file_that_is_there_stays_unless_it_is_to_be_replaced(gatectl: Gatectl, tmp_path: Path) -> None:
    file = tmp_path / "there"
    file.write_text("mine")
    assert gatectl.here("audit", "export", "--out", str(file)).code == 5
    assert gatectl.here("audit", "export", "--out", str(file), "--resume").code == 5
    assert file.read_text() == "mine"
    gatectl.done("audit", "export", "--out", str(file), "--force")
    assert ids(file)
    assert [one.name for one in tmp_path.iterdir()] == ["there"]


def test_a_spreadsheet_runs_no_cell(gatectl: Gatectl, tmp_path: Path) -> None:
    hostile = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"]
    events = [event(number, reason=text, amount=-5) for number, text in enumerate(hostile)]
    events.append(event(9, reason='a "b", c\nd', kept={"/to": "sha256:00"}, kept_values={"/to": "=x", "/cents": 7}))
    with scripted_gateway({}) as server:
        serve(server, events)
        file = tmp_path / "events.csv"
        pointed_at(gatectl, server.url).done("audit", "export", "--format", "csv", "--out", str(file))
    text = file.read_bytes().decode()
    with file.open(newline="") as opened:
        rows = list(csv.DictReader(opened))
    assert [row["reason"] for row in rows] == ['a "b", c\nd', *(f"'{one}" for one in reversed(hostile))]
    assert {row["amount"] for row in rows} == {"", "-5"}
    assert (rows[0]["kept./to"], rows[0]["kept./cents"], rows[0]["commitment./to"]) == ("'=x", "7", "sha256:00")
    assert text.startswith("timestamp,event_id,event_type,")
    assert text.count("\r\n") == len(rows) + 1


def test_parquet_has_a_column_of_one_type_for_each_member(gatectl: Gatectl, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra parquet is not installed")
    events = [
        event(1, runtime={"duration_ms": 3}, mixed=1, kept_values={"/cents": 2**60}),
        event(2, runtime={"duration_ms": None}, mixed="x", ratio=1),
        event(3, listed=[1, "a"], ratio=0.5, is_new=True),
    ]
    with scripted_gateway({}) as server:
        serve(server, events)
        file = tmp_path / "events.parquet"
        pointed_at(gatectl, server.url).done("audit", "export", "--format", "parquet", "--out", str(file))
    table = parquet.read_table(file)
    kinds = {field.name: str(field.type) for field in table.schema}
    assert {name: kinds[name] for name in ("runtime.duration_ms", "mixed", "ratio", "is_new", "kept./cents")} == {
        "runtime.duration_ms": "int64", "mixed": "string", "ratio": "double", "is_new": "bool", "kept./cents": "string",
    }  # fmt: skip
    assert table.column("ratio").to_pylist() == [0.5, 1.0, None]
    assert table.column("listed").to_pylist() == ['[1, "a"]', None, None]
    assert table.column("kept./cents").to_pylist() == [None, None, str(2**60)]


def test_a_missing_pyarrow_is_told_before_anything_is_asked(
    gatectl: Gatectl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    ran = gatectl.here("audit", "export", "--format", "parquet", "--out", str(tmp_path / "x"))
    mend = "pip install './sdk[parquet]' in a clone of the gateway's repository"
    assert (ran.code, ran.err) == (2, f"gatectl: no_pyarrow: the Python package pyarrow is not installed - {mend}\n")
    assert list(tmp_path.iterdir()) == []


def test_columns_come_in_one_order() -> None:
    lines = [json.dumps(event(1, b=1, a={"z": 1, "y": 2}, kept_values={"/x": 1})).encode()]
    assert list(columns_of(lines)) == ["timestamp", "event_id", "event_type", "a.y", "a.z", "b", "kept./x"]
    assert row_of(lines[0])["a.z"] == 1


@pytest.mark.parametrize("is_link", [True, False], ids=["link", "readable"])
def test_force_begins_a_part_of_its_own(gatectl: Gatectl, tmp_path: Path, is_link: bool) -> None:
    """A link would lead the events elsewhere, and a file that others can read would keep its mode."""
    file, part, other = tmp_path / "all.jsonl", tmp_path / "all.jsonl.part", tmp_path / "other"
    other.write_text("mine")
    if is_link:
        part.symlink_to(other)
    else:
        part.touch()
        part.chmod(0o644)
    with scripted_gateway({}) as server:
        serve(server, [event(1)], 1)
        assert pointed_at(gatectl, server.url).here("audit", "export", "--out", str(file), "--force").code != 0
    assert (other.read_text(), part.is_symlink(), part.stat().st_mode & 0o777) == ("mine", False, 0o600)
