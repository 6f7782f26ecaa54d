"""The events of one request, read beside a notary that runs."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from ipc.process.exits import Exit
from supervisor.programs import INTERPRETER
from tests.notary.running import ROOT, Running
from tests.notary.samples import make_note, record_call


def traced(*arguments: object) -> "subprocess.CompletedProcess[str]":
    """The program."""
    return subprocess.run(
        [*INTERPRETER, "notary.trace", *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip


def events_of(file: Path, trace_id: str) -> object:
    done = traced(trace_id, file, "--parent", os.getpid())
    assert (done.returncode, done.stderr) == (Exit.OK, "")
    return json.loads(done.stdout)


def test_it_tells_the_events_of_one_request_oldest_first_and_of_no_other(notary: Running) -> None:
    notary.front.ask(make_note(trace_id="trc_1", reason="first"))
    record_call(notary.front)
    notary.front.ask(make_note(trace_id="trc_1", reason="second"))
    wanted = [event for event in notary.events() if event["trace_id"] == "trc_1"]
    assert [event["reason"] for event in wanted] == ["first", "second"]
    assert events_of(notary.path, "trc_1") == wanted
    assert events_of(notary.path, "trc_none") == []


def test_a_file_that_is_no_ledger_is_reported_in_one_sentence(tmp_path: Path) -> None:
    for content in (None, b"no database at all" * 100):
        if content is not None:
            (tmp_path / "ledger").write_bytes(content)
        done = traced("trc_1", tmp_path / "ledger", "--parent", os.getpid())
        assert (done.returncode, done.stdout) == (Exit.UNAVAILABLE, "")
        assert done.stderr.startswith("gateway: ")
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [["trc_1", "file"], ["trc_1", "--parent", "1"], ["trc_1", "file", "--par", "1"]])
def test_a_command_line_that_is_not_ours_is_refused(arguments: list[str]) -> None:
    done = traced(*arguments)
    assert done.returncode == Exit.USAGE
    assert done.stderr.startswith("usage: notary.trace")
