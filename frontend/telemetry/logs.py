"""Log lines: one event a line, on standard error.

JSON lines for machines, one coloured line for a person on a terminal. A stack trace only for what we caused, never
for what a caller caused. A line is one write, and a log that nobody reads never ends a call. SECURITY: callers of the
logger pass identifiers and codes, never tokens, proofs or bodies; no renderer shows the variables of a stack.
"""

import json
import logging
import os
import sys
from typing import Any, TextIO, cast

import msgspec
import structlog

_ORDER = ("level", "time", "message")
_encode = msgspec.json.Encoder(enc_hook=repr).encode


class _StandardError:
    """Writes a line whole. Never raises: a reader that went away must not take the front's answers with it."""

    def write(self, text: str) -> None:
        try:
            os.write(2, text.encode(errors="backslashreplace"))
        except OSError:
            return

    def flush(self) -> None:
        """Nothing is held back."""


def _as_json(_: Any, __: str, event: structlog.typing.EventDict) -> str:
    ordered = {key: event[key] for key in _ORDER if key in event} | {k: v for k, v in event.items() if k not in _ORDER}
    try:
        return _encode(ordered).decode()
    except (UnicodeEncodeError, RecursionError, TypeError):
        return json.dumps(ordered, default=repr)


class _ForPeople:
    """One readable line: a decision in columns, anything else as structlog shows it, nothing that moves a cursor."""

    def __init__(self) -> None:
        # SECURITY: structlog's own choice, where `rich` is installed, prints the variables of every frame.
        self._render = structlog.dev.ConsoleRenderer(
            pad_event_to=28, exception_formatter=structlog.dev.plain_traceback
        )  # fmt: skip

    def __call__(self, logger: Any, name: str, event: structlog.typing.EventDict) -> str:
        shown = {key: _visible(value) for key, value in event.items()}
        return _columns(shown) if "decision" in shown else self._render(logger, name, shown)


def _visible(value: Any) -> Any:
    return value if not isinstance(value, str) or value.isprintable() else value.encode("unicode_escape").decode()


def _columns(event: dict[str, Any]) -> str:
    """`12:04:31.220 allow  text_digest  dev:anonymous  3 ms  trc_0197…`, then the code of a refusal and its cause."""
    parts = [event["decision"], event["action_id"], event["principal"], f"{event['duration_ms']} ms", event["trace_id"]]
    more = [event[name] for name in ("code", "cause") if name in event]
    return f"{event['time'][11:23]} " + "  ".join([*parts, *more])


def configure_logs(process: str, *, to_terminal: bool | None = None) -> None:
    """Set up structlog for this process. `process` is bound to every line ("front 1", "policy 1")."""
    human = sys.stderr.isatty() if to_terminal is None else to_terminal
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=not human, key="time"),
    ]
    rendering: list[structlog.typing.Processor] = (
        [_ForPeople()]
        if human
        else [structlog.processors.format_exc_info, structlog.processors.EventRenamer("message"), _as_json]
    )
    structlog.configure(
        processors=shared + rendering,
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(cast(TextIO, _StandardError())),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(process=process)
