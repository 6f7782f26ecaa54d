"""The unfinished export beside its target: `FILE.part`, with the events that have come, newest first.

The first line has the bounds of the export, so that it is continued with the same ones; each other line is one event as
the gateway sent it. Guarantees that a half-written last line is cut off before anything is appended. Never changes a
whole line. Mode 0600.
"""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from gateway_client.cli.display.output import ProgressLine
from gateway_client.cli.display.times import moved
from gateway_client.cli.exits import Failure, ScriptExit
from gateway_client.cli.exporting import MAX_LINE, exported
from gateway_client.results import AuditEvent, EventFilter

STEP = 1000


@dataclass(frozen=True, slots=True)
class ExportBounds:
    """The bounds of an export. `typed`: as they stand on the command line; `where`: what they were when it began."""

    typed: dict[str, str | None]
    where: EventFilter


@dataclass(slots=True)
class ExportPosition:
    """The last event that is in the part, and the others of its millisecond."""

    count: int = 0
    at: str | None = None
    ids: set[str] = field(default_factory=set)

    def note(self, event_id: str, timestamp: str) -> None:
        """One more event."""
        if timestamp != self.at:
            self.at, self.ids = timestamp, set()
        self.ids.add(event_id)
        self.count += 1

    def rest_of(self, where: EventFilter) -> EventFilter:
        """The filter for what is missing; events of the last millisecond fit again, and `ids` names them."""
        return where if self.at is None else replace(where, before=moved(self.at, 0.001))


class PartialExport:
    """One such file, open for appending. Use as a context."""

    def __init__(self, path: Path, bounds: ExportBounds, position: ExportPosition) -> None:
        self.path = path
        self.bounds = bounds
        self.position = position
        self._file = path.open("ab")

    @classmethod
    def begin(cls, path: Path, bounds: ExportBounds, *, replaces: bool) -> "PartialExport":
        """A new one. Raises Failure file_exists unless it `replaces`, OSError."""
        if replaces:
            path.unlink(missing_ok=True)  # a link would lead elsewhere, and a file would keep its mode
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            mend = "--resume continues it, --force begins anew"
            raise Failure(ScriptExit.CONFLICT, "file_exists", f"{path} is an export that was cut", mend) from None
        with open(descriptor, "wb") as file:
            file.write(_line_of({"typed": bounds.typed, "where": asdict(bounds.where)}))
        return cls(path, bounds, ExportPosition())

    @classmethod
    def resume(cls, path: Path, typed: dict[str, str | None], progress: ProgressLine) -> "PartialExport":
        """The one that is there, read to its last whole line. Raises Failure, OSError."""
        _cut(path)
        lines = exported(path, progress)
        try:
            head = json.loads(next(lines, b"null"))
            bounds = ExportBounds(head["typed"], EventFilter(**head["where"]))
            position = ExportPosition()
            for line in lines:
                event = json.loads(line)
                position.note(event["event_id"], event["timestamp"])
        except (ValueError, TypeError, KeyError):
            raise Failure(ScriptExit.FAILED, "export_damaged", f"{path} is no export of gatectl", "--force") from None
        if bounds.typed != typed:
            given = " ".join(f"--{name} {value}" for name, value in bounds.typed.items() if value is not None)
            mend = f"with --resume give the same ones: {given or 'none'}"
            raise Failure(ScriptExit.USAGE, "usage", f"{path} was begun with other bounds", mend)
        return cls(path, bounds, position)

    def __enter__(self) -> "PartialExport":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, events: Iterable[AuditEvent]) -> None:
        """Write these events, and flush them to the operating system. Raises OSError."""
        for event in events:
            self._file.write(_line_of(dict(event.raw)))
            self.position.note(event.event_id, event.timestamp)
        self._file.flush()

    def lines(self) -> Iterator[bytes]:
        """The events of the file, a line each."""
        with self.path.open("rb") as file:
            file.readline(MAX_LINE)
            while line := file.readline(MAX_LINE):
                yield line


def _line_of(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace") + b"\n"


def _cut(path: Path) -> None:
    """Take off the last line if its end is missing. Raises OSError."""
    with path.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        start = end
        while start > 0:
            step = min(start, 65536)
            start -= step
            file.seek(start)
            if (at := file.read(step).rfind(b"\n")) >= 0:
                file.truncate(start + at + 1)
                return
        file.truncate(0)
