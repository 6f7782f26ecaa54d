"""`gateway logs --trace`: lines of one trace, out of files and of the journal, in order; nothing in them is obeyed."""

import io
import json
from pathlib import Path

import pytest

from supervisor.cli import main
from supervisor.commands.inspect import logbook
from supervisor.commands.inspect.logbook import as_json, as_text, lines_of

TRACE, OTHER = "trc_01", "trc_02"


def stream(*lines: object) -> io.BytesIO:
    return io.BytesIO(b"".join((one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n" for one in lines))


def line(time: str, process: str, trace_id: str = TRACE, **fields: object) -> dict[str, object]:
    at = f"2026-11-23T10:00:{time}Z"
    return {"level": "info", "time": at, "message": "m", "process": process, "trace_id": trace_id, **fields}


def messages(*streams: io.BytesIO) -> list[str]:
    return [str(one.get("process", one["message"])) for one in lines_of(TRACE, streams)[0]]


def test_lines_of_several_files_come_in_the_order_of_time_and_others_are_left_out() -> None:
    one = stream(line("02.000001", "front 1"), line("01.5", "notary"), line("03", "notary", OTHER))
    two = stream(line("01.500001", "worker compute 1"), line("00", "x", OTHER, about=TRACE), b"noise", b"")
    assert messages(one, two) == ["notary", "worker compute 1", "front 1"]


def test_a_line_that_is_no_json_and_has_the_trace_keeps_its_place() -> None:
    shown = stream(line("01", "notary"), f"10:00:01.1 warning trace_id={TRACE}".encode(), line("02", "front 1"))
    assert messages(shown) == ["notary", f"10:00:01.1 warning trace_id={TRACE}", "front 1"]


def test_entries_of_the_journal_are_the_lines_that_they_were() -> None:
    within = line("01", "worker http 1", text="x")
    entries = stream(
        {"MESSAGE": json.dumps(within), "PRIORITY": "6", "_PID": "7", "__REALTIME_TIMESTAMP": "1"},
        {
            "MESSAGE": f"allow  a  p  3 ms  {TRACE}", "PRIORITY": "6", "PROCESS": "front 1", "TRACE_ID": TRACE,
            "DURATION_MS": "3", "__REALTIME_TIMESTAMP": "1795428002000001", "_HOSTNAME": "h", "SYSLOG_IDENTIFIER": "g",
        },
    )  # fmt: skip
    worker, front = lines_of(TRACE, [entries])[0]
    assert worker == within
    assert (front["process"], front["duration_ms"], front["level"]) == ("front 1", "3", "info")
    assert front["time"] == "2026-11-23T10:00:02.000001Z"
    assert not [name for name in front if name.startswith("_") or name.isupper()]


def test_nothing_in_a_line_is_obeyed_by_a_terminal() -> None:
    hostile = line("01", "worker \x1b[2J", text="\u202ex\x1b]0;t\x07\ny") | {"na\x1bme": 1}
    (entry,) = lines_of(TRACE, [stream(hostile)])[0]
    for shown in (as_text(entry), as_json(entry)):
        assert shown.isprintable(), shown
        assert "\u202e" not in shown
    assert json.loads(as_json(entry)) == hostile


@pytest.mark.parametrize("data", [b"\xff" * 9, b"[" * 5000, b"{}", b'"x"', b'{"trace_id": 1, "MESSAGE": [1]}'])
def test_noise_ends_nothing(data: bytes) -> None:
    entries, is_cut = lines_of(TRACE, [stream(data + TRACE.encode(), line("01", "notary"))])
    assert entries[-1]["process"] == "notary"
    assert not is_cut
    assert all(as_text(one) and as_json(one) for one in entries)


def test_a_flood_and_an_endless_line_are_cut_and_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logbook, "MAX_LINES", 3)
    entries, is_cut = lines_of(TRACE, [stream(*(line("01", str(number)) for number in range(9)))])
    assert ([one["process"] for one in entries], is_cut) == (["0", "1", "2"], True)
    monkeypatch.setattr(logbook, "MAX_LINE_BYTES", 100)
    endless = stream(b"x" * 150 + TRACE.encode(), line("01", "n"))
    assert all(len(json.dumps(one)) < 300 for one in lines_of(TRACE, [endless])[0])


def test_the_command_tells_by_its_exit_code_whether_there_was_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    log.write_bytes(stream(line("01", "notary", intent_id="i")).getvalue())
    assert main(["logs", "--trace", TRACE, str(log)]) == 0
    assert (
        capsys.readouterr().out
        == "2026-11-23T10:00:01Z  notary            info     m                             intent_id=i\n"
    )
    assert main(["logs", "--trace", TRACE, "--json", str(log)]) == 0
    assert json.loads(capsys.readouterr().out)["intent_id"] == "i"
    assert main(["logs", "--trace", "trc_x", str(log)]) == 1
    assert "no line of 'trc_x'" in capsys.readouterr().err
    assert main(["logs", "--trace", TRACE, str(tmp_path / "none")]) == 77
