"""Log lines as a reader gets them: whole, without anybody else's control characters, and never at a call's cost."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]

DECISION = (
    'log.info("allow text_digest dev:anonymous 3 ms", decision="allow", action_id="text_digest", '
    'principal="dev:anonymous", duration_ms=3, trace_id="trc_1")'
)
FAILURE = 'secret = "hush-" + "hush"\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    log.exception("broken")'


def program(statements: str, *, human: bool) -> str:
    return (
        "from frontend.telemetry.logs import configure_logs, log\n"
        f"configure_logs('front 1', to_terminal={human})\n{statements}\nprint('alive')"
    )


def said(statements: str, *, human: bool, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program(statements, human=human)], cwd=ROOT, capture_output=True, text=True, timeout=120,
        env=os.environ | environment,
    )  # fmt: skip
    assert done.stdout == "alive\n", done.stderr
    return done.stderr


def line(statements: str) -> dict[str, Any]:
    (only,) = said(statements, human=False).splitlines()
    fields: dict[str, Any] = json.loads(only)
    return fields


def test_a_decision_is_one_line_of_json_with_every_field() -> None:
    fields = line(DECISION)
    assert list(fields)[:3] == ["level", "time", "message"]
    assert {name: fields[name] for name in fields if name not in ("time", "message")} == {
        "level": "info", "decision": "allow", "action_id": "text_digest", "principal": "dev:anonymous",
        "duration_ms": 3, "trace_id": "trc_1", "process": "front 1",
    }  # fmt: skip


def test_a_decision_is_one_line_in_columns_on_a_terminal() -> None:
    (only,) = said(DECISION, human=True).splitlines()
    assert re.fullmatch(
        r"\d\d:\d\d:\d\d\.\d{3} allow  text_digest  dev:anonymous  3 ms  trc_1", only
    ), only  # fmt: skip


def test_nobodys_text_moves_a_terminals_cursor() -> None:
    hostile = 'log.info("x", cause="\\x1b[2J\\u202egpj.exe\\nallow", decision_of="\\x07")'
    shown = re.sub(r"\x1b\[\d+m", "", said(hostile, human=True))
    assert shown.count("\n") == 1
    assert all(character.isprintable() for character in shown.rstrip("\n"))


def test_a_mark_that_strikes_characters_out_is_written_out_on_a_terminal() -> None:
    shown = said('log.info("x", cause="pay 1\\u03360\\u0336")', human=True)
    assert "\u0336" not in shown
    assert "pay 1\\u03360\\u0336" in shown


def test_what_has_no_json_is_said_all_the_same() -> None:
    fields = line('log.info("x", broken="\\ud800", thing=object, number=2**70, inner={1: b"2"})')
    assert fields["message"] == "x"
    assert fields["number"] == 2**70


def test_a_stack_trace_shows_no_variable_even_where_rich_is_installed(tmp_path: Path) -> None:
    package = tmp_path / "rich"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "console.py").write_text(
        "class Console:\n    def __init__(self, file, **_):\n        self.file = file\n"
        "    def print(self, thing):\n        self.file.write(f'VARIABLES {thing}')\n"
    )
    (package / "traceback.py").write_text(
        "class Traceback:\n    @classmethod\n    def from_exception(cls, *_, **__):\n        return 'hush-hush'\n"
    )
    for human in (False, True):
        shown = said(FAILURE, human=human, PYTHONPATH=f"{tmp_path}:{ROOT}")
        assert "ZeroDivisionError" in shown
        assert "VARIABLES" not in shown
        assert "hush-hush" not in shown


def test_a_log_that_nobody_reads_any_more_ends_nothing() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", program(f"{DECISION}\n{FAILURE}", human=False)], cwd=ROOT, stdout=subprocess.PIPE,
        stderr=writing, timeout=120,
    )  # fmt: skip
    os.close(writing)
    assert (done.returncode, done.stdout) == (0, b"alive\n")
