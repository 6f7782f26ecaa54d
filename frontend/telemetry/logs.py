"""Log lines: one event a line, on standard error.

JSON lines for machines, one coloured line for a person on a terminal. A stack trace only for what we caused, never
for what a caller caused. SECURITY: callers of the logger pass identifiers and codes, never tokens, proofs or bodies.
"""

import logging
import sys
from typing import Any

import structlog

_ORDER = ("level", "time", "message")


def _ordered(_: Any, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    return {key: event[key] for key in _ORDER if key in event} | {k: v for k, v in event.items() if k not in _ORDER}


def configure_logs(process: str, *, to_terminal: bool | None = None) -> None:
    """Set up structlog for this process. `process` is bound to every line ("front 1", "policy 1")."""
    human = sys.stderr.isatty() if to_terminal is None else to_terminal
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=not human, key="time"),
    ]
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
        processors=shared + rendering,
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(process=process)
