"""Log lines of supervisor and front: one event a line on standard error, JSON for machines, readable on a terminal.

Python's own logging does the work; here stands how a line looks. A line is one write, so that lines of several
processes on one pipe never mix, and a log that nobody reads never ends a call. A stack trace only for what we caused,
never for what a caller caused, and without the variables of its frames. SECURITY: callers pass identifiers, numbers and
codes, never tokens, proofs or bodies.
"""

import contextlib
import json
import logging
import os
from collections.abc import Callable, Mapping, MutableMapping
from datetime import UTC, datetime
from typing import Any

import msgspec

Fields = Mapping[str, object]

_STDERR = 2
_COLOURS = {"warning": "\x1b[33m", "error": "\x1b[31m"}
_PLAIN = "\x1b[0m"
_MESSAGE_COLUMNS = 28
_encode = msgspec.json.Encoder(enc_hook=repr).encode
# What is on no line need not be found out for it.
logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False


class Log(logging.LoggerAdapter[logging.Logger]):
    """`log.info("front is ready", pid=7)`: a message that is always the same, and fields."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Fields travel with the record; `exc_info` is an exception, or True for the one that is being handled."""
        exc_info = kwargs.pop("exc_info", None)
        return msg, {"exc_info": exc_info, "extra": {"fields": kwargs}}


class Lines(logging.Formatter):
    """A record as JSON, or for a person. `bound` gives what every line carries besides."""

    def __init__(self, bound: Callable[[], Fields] = dict, *, human: bool = False) -> None:
        super().__init__()
        self._bound = bound
        self._shown = _for_people if human else _as_json

    def format(self, record: logging.LogRecord) -> str:
        """One line, or for a person one with a trace below it."""
        trace = self.formatException(record.exc_info) if record.exc_info and record.exc_info[0] else ""
        fields = {**self._bound(), **record.__dict__.get("fields", {})}
        return self._shown(record.levelname.lower(), record.getMessage(), fields, trace)


class StandardError(logging.Handler):
    """Writes each line whole. A reader that went away must not take an answer with it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Never raises."""
        try:
            line = self.format(record)
        except Exception as error:
            line = _as_json(
                "error", "a line could not be written", {"about": record.msg, "why": type(error).__name__}, ""
            )
        with contextlib.suppress(OSError):
            os.write(_STDERR, line.encode(errors="backslashreplace") + b"\n")


def _as_json(level: str, message: str, fields: Fields, trace: str) -> str:
    time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    fixed = {"level": level, "time": time, "message": message}
    line = {**fixed, **fields, **fixed}
    if trace:
        line["exception"] = trace
    try:
        return _encode(line).decode()
    except (ValueError, RecursionError, TypeError):
        return json.dumps(line, default=repr)


def _for_people(level: str, message: str, fields: Fields, trace: str) -> str:
    """A decision in columns, anything else with its fields; a trace below. Nothing in it moves a cursor."""
    start = f"{datetime.now():%H:%M:%S.%f}"[:-3]  # noqa: DTZ005 - a person reads the clock on the wall
    if "decision" in fields:
        return f"{start} {visible(_columns(fields))}"
    shown = "  ".join(f"{name}={visible(str(value))}" for name, value in fields.items())
    colour = "" if "NO_COLOR" in os.environ else _COLOURS.get(level, "")
    line = f"{start} {colour}{level:<7}{_PLAIN if colour else ''} {visible(message):<{_MESSAGE_COLUMNS}}  {shown}"
    return "\n".join([line.rstrip(), *map(visible, trace.splitlines())])


def _columns(fields: Fields) -> str:
    """`allow  text_digest  dev:anonymous  3 ms  trc_0197…`, then the code of a refusal and its cause."""
    names = ("decision", "action_id", "principal", "duration_ms", "trace_id", "code", "cause")
    units = {"duration_ms": " ms"}
    return "  ".join(f"{fields[name]}{units.get(name, '')}" for name in names if name in fields)


def visible(text: str) -> str:
    """`text` with whatever is no printable character escaped."""
    return text if text.isprintable() else text.encode("unicode_escape").decode()


def write_lines(lines: Lines) -> None:
    """Have every line of this process look so from now on."""
    _handler.setFormatter(lines)


_logger = logging.getLogger("gateway")
_logger.setLevel(logging.INFO)
_logger.propagate = False
_handler = StandardError()
_logger.addHandler(_handler)
write_lines(Lines())
log = Log(_logger, {})
"""The process's own."""
