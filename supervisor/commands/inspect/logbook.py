"""Lines of a gateway's log that belong to one trace, from all its processes, from a file or the journal.

Reads the standard error of a gateway, and the output of `journalctl -o json`: there the lines of template, workers and
policy processes are JSON within a message. Guarantees bounded memory for any input, and the order of time. A line that
is not JSON and holds the trace is printed as it is.
"""

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, BinaryIO

from ipc.process.logs import visible

MAX_LINE_BYTES = 1 << 20
MAX_LINES, MAX_BYTES = 10_000, 64 << 20
"""Limits for one trace. A call has some dozens of lines; more than the limit are cut, and the output says so."""
_FIRST = ("time", "level", "process", "message")
_JOURNALS = {"_HOSTNAME", "PRIORITY", "SYSLOG_IDENTIFIER", "MESSAGE"}
_LEVELS = {"7": "debug", "6": "info", "4": "warning", "3": "error"}

Line = dict[str, Any]


def lines_of(trace_id: str, streams: Iterable[BinaryIO]) -> tuple[list[Line], bool]:
    """(lines in the order of time, whether there were more than are kept). Raises OSError."""
    lines: list[tuple[float, int, Line]] = []
    wanted, latest, size = trace_id.encode(), 0.0, 0
    for stream in streams:
        for data in _whole_lines(stream):
            if wanted not in data:
                continue
            line = _parsed(data)
            if line.get("trace_id", trace_id) != trace_id:
                continue
            latest = _moment(line.get("time")) or latest
            lines.append((latest, len(lines), line))
            size += len(data)
            if len(lines) > MAX_LINES or size > MAX_BYTES:
                return [one for _, _, one in sorted(lines[:-1], key=_place)], True
    return [one for _, _, one in sorted(lines, key=_place)], False


def as_json(line: Line) -> str:
    """One line of JSON, in ASCII: no terminal finds anything in it to obey."""
    return json.dumps({**{name: line[name] for name in _FIRST if name in line}, **line})


def as_text(line: Line) -> str:
    """One line for people: time, process, level, message, then the fields."""
    named = {name: visible(str(line.get(name, "-"))) for name in _FIRST}
    rest = {name: value for name, value in line.items() if name not in (*_FIRST, "trace_id")}
    shown = "  ".join(f"{visible(name)}={visible(_text(value))}" for name, value in rest.items())
    start = f"{named['time']}  {named['process']:<16}  {named['level']:<7}  {named['message']:<28}"
    return f"{start}  {shown}".rstrip()


def _place(one: tuple[float, int, Line]) -> tuple[float, int]:
    return one[:2]


def _whole_lines(stream: BinaryIO) -> Iterator[bytes]:
    """The lines; the rest of an overlong line is left out."""
    is_rest = False
    while data := stream.readline(MAX_LINE_BYTES):
        if not is_rest:
            yield data
        is_rest = not data.endswith(b"\n")


def _parsed(data: bytes) -> Line:
    text = data.decode(errors="replace").rstrip("\n")
    fields = _object(text)
    if fields is None:
        return {"message": text}
    return _from_journal(fields) if fields.keys() & _JOURNALS and "message" not in fields else fields


def _from_journal(entry: Line) -> Line:
    """An entry as the line that it was: fields of the gateway, not those of the journal itself."""
    within = _object(entry["MESSAGE"]) if isinstance(entry.get("MESSAGE"), str) else None
    if within is not None and "message" in within:
        return within
    fields = {name.lower(): value for name, value in entry.items() if name not in _JOURNALS and name[0] != "_"}
    stamp = str(entry.get("__REALTIME_TIMESTAMP", ""))
    if stamp.isdecimal() and len(stamp) < 20:
        moment = datetime.fromtimestamp(int(stamp) / 1e6, UTC)
        fields["time"] = moment.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"
    fields["level"] = _LEVELS.get(str(entry.get("PRIORITY")), "-")
    return {**fields, "message": entry.get("MESSAGE")}


def _object(text: str) -> Line | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _moment(time: object) -> float | None:
    try:
        return datetime.fromisoformat(str(time)).timestamp()
    except (ValueError, OverflowError):
        return None


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
