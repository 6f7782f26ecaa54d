"""What this process has logged, as a list of events instead of lines."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ipc.logs import log


class _Kept(logging.Handler):
    def __init__(self, found: list[dict[str, Any]]) -> None:
        super().__init__()
        self._found = found

    def emit(self, record: logging.LogRecord) -> None:
        fields = dict(record.__dict__["fields"])
        if record.exc_info:
            fields["exc_info"] = record.exc_info[1]
        self._found.append({**fields, "event": record.getMessage(), "log_level": record.levelname.lower()})


@contextmanager
def capture_logs() -> Iterator[list[dict[str, Any]]]:
    """Each event as `{"event": message, "log_level": level, **fields}`; nothing is written meanwhile."""
    found: list[dict[str, Any]] = []
    before, log.logger.handlers = log.logger.handlers, [_Kept(found)]
    try:
        yield found
    finally:
        log.logger.handlers = before
