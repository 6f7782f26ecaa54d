"""Log lines before anybody has said how they should look, and as a person reads them."""

import json
import os
import re
import time
from collections.abc import Iterator
from datetime import datetime

import pytest

from ipc.process.logs import Fields, LogWriter, log, write_lines


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    write_lines(LogWriter())


def said(capfd: pytest.CaptureFixture[str], lines: LogWriter) -> list[str]:
    write_lines(lines)
    log.info("starting", pid=7, state_dir="/var/lib/gateway")
    try:
        raise ValueError("hush\x1b[2J")
    except ValueError as error:
        log.exception("broken", at="here")
        caught = error
    log.error("broken later", exc_info=caught)
    return capfd.readouterr().err.splitlines()


def test_a_line_is_json_in_a_fixed_order_with_the_trace_of_what_is_handled(capfd: pytest.CaptureFixture[str]) -> None:
    lines = [json.loads(line) for line in said(capfd, LogWriter())]
    assert [list(line) for line in lines] == [
        ["level", "time", "message", "pid", "state_dir"],
        ["level", "time", "message", "at", "exception"],
        ["level", "time", "message", "exception"],
    ]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", line["time"]) for line in lines)
    assert all(line["exception"].startswith("Traceback") and "ValueError" in line["exception"] for line in lines[1:])


def test_a_line_has_the_time_of_its_own_second(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = [1_764_000_000.25, 1_764_000_000.999_999_9, 1_764_000_001.5, 1_764_000_000.0]
    for moment in moments:
        monkeypatch.setattr(time, "time", lambda now=moment: now)
        log.info("a line")
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    told = [datetime.fromisoformat(line["time"]).timestamp() for line in lines]
    assert told == [1_764_000_000.25, 1_764_000_001.0, 1_764_000_001.5, 1_764_000_000.0]


def test_bound_fields_are_in_every_line_and_a_field_of_the_line_wins(capfd: pytest.CaptureFixture[str]) -> None:
    def bound() -> Fields:
        return {"process": "front 1", "pid": 1}

    first, second, _ = map(json.loads, said(capfd, LogWriter(bound)))
    assert (first["process"], first["pid"], second["process"], second["pid"]) == ("front 1", 7, "front 1", 1)


@pytest.mark.parametrize("colours", [True, False])
def test_a_person_gets_a_short_line_without_foreign_control_characters(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, colours: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    if not colours:
        monkeypatch.setenv("NO_COLOR", "1")
    lines = said(capfd, LogWriter(human=True))
    assert re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3} info    starting +pid=7  state_dir=/var/lib/gateway", lines[0])
    assert ("\x1b[31merror" in lines[1]) is colours
    assert "hush\\x1b[2J" in "".join(lines)
    assert "\x1b[2J" not in "".join(lines)


def test_a_log_without_a_reader_ends_nothing_and_its_lines_are_counted(capfd: pytest.CaptureFixture[str]) -> None:
    kept = os.dup(2)
    reader, writer = os.pipe()
    os.close(reader)
    try:
        os.dup2(writer, 2)
        log.info("not heard")
        log.info("not heard either")
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(writer)
    log.info("heard")
    told, heard = map(json.loads, capfd.readouterr().err.splitlines())
    assert (told["level"], told["message"], told["dropped"]) == ("warning", "log lines were dropped", 2)
    assert heard["message"] == "heard"


def test_a_line_that_can_not_be_made_is_replaced_by_a_report_and_raises_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    endless: list[object] = []
    endless.append(endless)
    log.info("too deep", found=endless, level_of="a call")
    line = json.loads(capfd.readouterr().err)
    assert (line["level"], line["about"]) == ("error", "too deep")


def test_no_field_takes_the_place_of_what_every_line_has(capfd: pytest.CaptureFixture[str]) -> None:
    log.info("fixed", message="another", time="never")
    line = json.loads(capfd.readouterr().err)
    assert (line["message"], line["level"]) == ("fixed", "info")
    assert line["time"] != "never"


def test_a_value_without_a_json_form_is_written_all_the_same(capfd: pytest.CaptureFixture[str]) -> None:
    log.info("half a pair", text="\ud800", found={1, 2})
    assert json.loads(capfd.readouterr().err)["text"] == "\ud800"


def test_a_line_is_one_write_with_its_trace(capfd: pytest.CaptureFixture[str]) -> None:
    kept = os.dup(2)
    reader, writer = os.pipe2(os.O_DIRECT)  # each write is a packet, which a read gives back alone
    try:
        os.dup2(writer, 2)
        said(capfd, LogWriter())
        said(capfd, LogWriter(human=True))
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(writer)
    packets = list(iter(lambda: os.read(reader, 65536), b""))
    os.close(reader)
    assert len(packets) == 6
    assert all(packet.endswith(b"\n") for packet in packets)
    assert [packet.count(b"\n") for packet in packets[:4]] == [1, 1, 1, 1]


def test_an_exception_that_is_not_being_handled_has_no_trace(capfd: pytest.CaptureFixture[str]) -> None:
    log.exception("nothing is wrong")
    log.error("nothing is known", exc_info=None)
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [list(line) for line in lines] == [["level", "time", "message"]] * 2
    assert [line["level"] for line in lines] == ["error", "error"]
