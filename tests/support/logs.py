"""The log of this process, as a list of events instead of lines."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ipc.process.logs import Fields, log


@contextmanager
def capture_logs() -> Iterator[list[dict[str, Any]]]:
    """Each event as `{"event": message, "log_level": level, **fields}`; nothing is written meanwhile."""
    entries: list[dict[str, Any]] = []

    def keep(level: str, message: str, fields: Fields, error: BaseException | None) -> None:
        shown = {} if error is None else {"exc_info": error}
        entries.append({**fields, **shown, "event": message, "log_level": level})

    before, log.sink = log.sink, keep
    try:
        yield entries
    finally:
        log.sink = before
