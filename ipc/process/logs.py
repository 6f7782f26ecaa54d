"""Log lines of supervisor and front: one event a line on standard error, JSON for machines, readable on a terminal.

A line is one write, so that lines of several processes on one pipe never mix, and a log that is not read never stops a
call: the line is dropped and counted (ipc/process/stderr.py). Every call says a line, so nothing stands between it and
its bytes: no record, no walk through the stack for a place that no line shows. Where standard error is the system's
journal, a line is an entry of it (ipc/process/journald.py) with its fields as fields. A stack trace only for what we
caused, never for what a caller caused, and without the variables of its frames. SECURITY: callers pass identifiers,
numbers and codes, never tokens, proofs or bodies.
"""

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import msgspec

from ipc.process.journald import JournaldSocket
from ipc.process.log_level import says_details
from ipc.process.stderr import stderr
from ipc.texts.visible import has_overlay

Fields = Mapping[str, object]
Sink = Callable[[str, str, Fields, BaseException | None], None]
"""Takes level, message, fields and the exception to show with them. Never raises."""

DROPPED = "log lines were dropped"
_COLOURS = {"warning": "\x1b[33m", "error": "\x1b[31m"}
_PLAIN = "\x1b[0m"
_MESSAGE_COLUMNS = 28
_encode = msgspec.json.Encoder(enc_hook=repr).encode


class LogWriter:
    """Says events on standard error: as JSON, or for a person. `bound` gives what every line carries besides; `journal`
    takes them instead, where it can."""

    def __init__(
        self, bound: Callable[[], Fields] = dict, *, human: bool = False, journal: JournaldSocket | None = None
    ) -> None:  # fmt: skip
        self._bound = bound
        self._journal = journal
        self._shown = _for_people if human else _as_json

    def write(self, level: str, message: str, fields: Fields, error: BaseException | None) -> None:
        """One line, or for a person a line with the trace below it, whole. Never waits for a reader."""
        stderr.say(lambda: self._emit(level, message, fields, error), self._tell_dropped)

    def _emit(self, level: str, message: str, fields: Fields, error: BaseException | None) -> bool:
        try:
            trace = "" if error is None else "".join(traceback.format_exception(error)).removesuffix("\n")
            whole = {**self._bound(), **fields}
            if self._journal is not None and self._journal.write(level, _message(message, whole), _texts(whole, trace)):
                return True
            line = self._shown(level, message, whole, trace)
        except Exception as problem:
            about = {"about": message, "why": type(problem).__name__}
            line = _as_json("error", "a line could not be written", about, "")
        return stderr.put(line)

    def _tell_dropped(self, count: int, since: float) -> bool:
        return self._emit("warning", DROPPED, {"dropped": count, "since": _stamp(since)}, None)


class Log:
    """`log.info("front is ready", pid=7)`: a message that is always the same, and fields.

    The field `exc_info` is an exception, or True for the one that is being handled: its trace is shown with the line.
    """

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.says_details = says_details()
        """Whether `debug` says anything: a caller that has to collect fields for it asks first."""

    def debug(self, message: str, /, **fields: object) -> None:
        """Log a step of a call, if the configuration asks for it."""
        if self.says_details:
            self._say("debug", message, fields)

    def info(self, message: str, /, **fields: object) -> None:
        """Log a normal event."""
        self._say("info", message, fields)

    def warning(self, message: str, /, **fields: object) -> None:
        """Log an event that an operator may want to look at."""
        self._say("warning", message, fields)

    def error(self, message: str, /, **fields: object) -> None:
        """Log an error."""
        self._say("error", message, fields)

    def exception(self, message: str, /, **fields: object) -> None:
        """Log an error with the trace of the exception that is being handled."""
        self._say("error", message, {"exc_info": True, **fields})

    def _say(self, level: str, message: str, fields: dict[str, object]) -> None:
        shown = fields.pop("exc_info", None)
        error = sys.exception() if shown is True else shown
        self.sink(level, message, fields, error if isinstance(error, BaseException) else None)


class _SecondText:
    """The text of a second, kept while lines are said in it."""

    def __init__(self) -> None:
        self._kept = (-1, "")

    def of(self, second: int) -> str:
        kept = self._kept
        if kept[0] != second:
            kept = self._kept = (second, datetime.fromtimestamp(second, UTC).isoformat()[:19])
        return kept[1]


_seconds = _SecondText()


def _stamp(moment: float) -> str:
    second, microseconds = divmod(round(moment * 1_000_000), 1_000_000)
    return f"{_seconds.of(second)}.{microseconds:06d}Z"


def _as_json(level: str, message: str, fields: Fields, trace: str) -> bytes:
    fixed = {"level": level, "time": _stamp(time.time()), "message": message}
    line = {**fixed, **fields, **fixed}
    if trace:
        line["exception"] = trace
    try:
        return _encode(line) + b"\n"
    except (ValueError, RecursionError, TypeError):
        return json.dumps(line, default=repr).encode() + b"\n"


def _for_people(level: str, message: str, fields: Fields, trace: str) -> bytes:
    """A decision in columns, anything else with its fields; a trace below. Control characters are escaped."""
    start = f"{datetime.now():%H:%M:%S.%f}"[:-3]  # noqa: DTZ005 - a person reads the clock on the wall
    if "decision" in fields:
        return f"{start} {visible(_columns(fields))}\n".encode(errors="backslashreplace")
    shown = "  ".join(f"{name}={visible(str(value))}" for name, value in fields.items())
    colour = "" if "NO_COLOR" in os.environ else _COLOURS.get(level, "")
    line = f"{start} {colour}{level:<7}{_PLAIN if colour else ''} {visible(message):<{_MESSAGE_COLUMNS}}  {shown}"
    return "\n".join([line.rstrip(), *map(visible, trace.splitlines()), ""]).encode(errors="backslashreplace")


def _message(message: str, fields: Fields) -> str:
    """The text of a journal entry that is shown without its fields."""
    return visible(_columns(fields)) if "decision" in fields else message


def _texts(fields: Fields, trace: str) -> dict[str, str]:
    """Fields as the journal has them: texts as they are, everything else as JSON."""
    texts = {name: value if isinstance(value, str) else _encode(value).decode() for name, value in fields.items()}
    return texts | {"exception": trace} if trace else texts


def _columns(fields: Fields) -> str:
    """`allow  text_digest  dev:anonymous  3 ms  trc_0197…`, then the code of a refusal and its cause."""
    names = ("decision", "action_id", "principal", "duration_ms", "trace_id", "code", "cause")
    units = {"duration_ms": " ms"}
    return "  ".join(f"{fields[name]}{units.get(name, '')}" for name in names if name in fields)


def visible(text: str) -> str:
    """`text`, escaped where a character of it can't be printed or is drawn over others."""
    return text if text.isprintable() and not has_overlay(text) else text.encode("unicode_escape").decode()


log = Log(LogWriter().write)
"""The process's own."""


def write_lines(lines: LogWriter) -> None:
    """Have every line of this process look so from now on."""
    log.sink = lines.write
