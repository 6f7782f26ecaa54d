"""Log lines of the supervisor on standard error: JSON lines, or one readable line each on a terminal.

A line is one write, so that lines of several processes on one pipe never mix. SECURITY: callers pass names, numbers
and paths, never a key.
"""

import os
import sys
from typing import TextIO, cast

import structlog

_ORDER = ("level", "time", "message", "process")


def _ordered(_: object, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    return {key: event[key] for key in _ORDER if key in event} | {k: v for k, v in event.items() if k not in _ORDER}


class _StandardError:
    """Writes a line whole. Never raises: a log that nobody reads must not end the gateway."""

    def write(self, text: str) -> None:
        try:
            os.write(2, text.encode(errors="backslashreplace"))
        except OSError:
            return

    def flush(self) -> None:
        """Nothing is held back."""


def configure_logs(*, to_terminal: bool | None = None) -> None:
    """Set up structlog for this process; call once, before the first line."""
    human = sys.stderr.isatty() if to_terminal is None else to_terminal
    rendering: list[structlog.typing.Processor] = (
        [structlog.dev.ConsoleRenderer(pad_event_to=28)]
        if human
        else [
            structlog.processors.format_exc_info,
            structlog.processors.EventRenamer("message"),
            _ordered,
            structlog.processors.JSONRenderer(),
        ]
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=not human, key="time"),
            *rendering,
        ],
        wrapper_class=structlog.make_filtering_bound_logger("info"),
        logger_factory=structlog.WriteLoggerFactory(cast(TextIO, _StandardError())),
        cache_logger_on_first_use=True,
    )


log: structlog.typing.FilteringBoundLogger = structlog.get_logger(process="supervisor")
