"""The guest's log: bounded lines on the gateway's own log, under the call's trace id.

Guarantees that a provider can't flood the log or forge a line in it: lines are cut, counted and JSON-encoded. SECURITY:
secret values never reach a guest, so they can't come out here.
"""

from workers.log import write_line

MAX_LINES_PER_CALL = 20
MAX_LINE_CHARACTERS = 1000
_LEVELS = {"debug": "debug", "info": "info", "warn": "warning", "error": "error"}


class GuestLog:
    """The log of one call."""

    def __init__(self, trace_id: str, action_id: str) -> None:
        self._trace_id = trace_id
        self._action_id = action_id
        self._lines = 0

    def message(self, level: str, text: str) -> None:
        """Write one line, or drop it when the call has written its share."""
        self._lines += 1
        if self._lines > MAX_LINES_PER_CALL:
            return
        write_line(
            _LEVELS.get(level, "info"), "provider says", text=text[:MAX_LINE_CHARACTERS], trace_id=self._trace_id,
            action_id=self._action_id, is_last=self._lines == MAX_LINES_PER_CALL,
        )  # fmt: skip
