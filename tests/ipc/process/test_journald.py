"""Log lines as entries of the system's journal, over a real datagram socket."""

import json
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.process.journald import MAX_ENTRY_BYTES, JournaldSocket, encode_entry, is_journal
from ipc.process.logs import Log, LogWriter


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[tuple[JournaldSocket, socket.socket]]:
    """A journal, and where its entries come out."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "journal"))
        sock.settimeout(60)
        writer = JournaldSocket(str(tmp_path / "journal"))
        yield writer, sock
        writer.close()


def parsed(entry: bytes) -> dict[str, str]:
    """An entry, as the journal reads it."""
    fields: dict[str, str] = {}
    while entry:
        name, separator, rest = entry.partition(b"\n")
        if b"=" in name:
            key, _, value = name.partition(b"=")
            fields[key.decode()], entry = value.decode(), rest
            continue
        (size,) = struct.unpack("<Q", rest[:8])
        fields[name.decode()], entry = rest[8 : 8 + size].decode(), rest[9 + size :]
        assert separator
    return fields


def test_fields_of_a_line_are_fields_of_the_journal(journal: tuple[JournaldSocket, socket.socket]) -> None:
    writer, sock = journal
    Log(LogWriter(lambda: {"process": "front 1"}, journal=writer).write).warning(
        "a call waits", trace_id="trc_1", pid=7
    )
    assert parsed(sock.recv(MAX_ENTRY_BYTES)) == {
        "MESSAGE": "a call waits", "PRIORITY": "4", "SYSLOG_IDENTIFIER": "gateway", "PROCESS": "front 1",
        "TRACE_ID": "trc_1", "PID": "7",
    }  # fmt: skip


def test_a_decision_reads_as_it_does_on_a_terminal(journal: tuple[JournaldSocket, socket.socket]) -> None:
    writer, sock = journal
    fields = {"decision": "allow", "action_id": "mail", "principal": "ann", "duration_ms": 3, "trace_id": "trc_1"}
    Log(LogWriter(journal=writer).write).info("call", **fields)
    assert parsed(sock.recv(MAX_ENTRY_BYTES))["MESSAGE"] == "allow  mail  ann  3 ms  trc_1"


def test_a_trace_of_many_lines_is_one_field_and_nothing_in_it_becomes_another(
    journal: tuple[JournaldSocket, socket.socket],
) -> None:
    writer, sock = journal
    Log(LogWriter(journal=writer).write).error("broken", exc_info=ValueError("x\nMESSAGE=forged\nPRIORITY=0"))
    fields = parsed(sock.recv(MAX_ENTRY_BYTES))
    assert (fields["MESSAGE"], fields["PRIORITY"]) == ("broken", "3")
    assert fields["EXCEPTION"].endswith("MESSAGE=forged\nPRIORITY=0")


def test_names_that_the_journal_keeps_for_itself_or_does_not_know_are_left_out() -> None:
    fields = {"_PID": "1", "message": "forged", "a-b": "x", "1a": "x", "x" * 65: "x", "ok_1": "y"}
    assert parsed(encode_entry("info", "said", fields)) == {
        "MESSAGE": "said", "PRIORITY": "6", "SYSLOG_IDENTIFIER": "gateway", "OK_1": "y",
    }  # fmt: skip


@pytest.mark.parametrize("size", [10, MAX_ENTRY_BYTES + 1])
def test_an_entry_that_the_journal_refuses_is_written_as_a_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], size: int
) -> None:
    writer = JournaldSocket(str(tmp_path / "nobody"))
    try:
        Log(LogWriter(journal=writer).write).info("said", text="x" * size)
    finally:
        writer.close()
    assert json.loads(capfd.readouterr().err)["message"] == "said"


def test_standard_error_is_the_journal_only_where_its_name_is_that_of_the_descriptor() -> None:
    stderr = os.fstat(2)
    assert is_journal(f"{stderr.st_dev}:{stderr.st_ino}")
    assert not is_journal(f"{stderr.st_dev}:{stderr.st_ino + 1}")
    assert not is_journal("")
    assert not is_journal("1:1", -1)
