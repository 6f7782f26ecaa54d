"""Chooses the refusals that are logged: the first of each user and code in a window, then their number.

Callers cause refusals, and a caller who repeats one must not fill the disk. 5xx answers with a cause are always logged:
only the log has the cause (docs/contract.md, "Errors").
"""

from dataclasses import dataclass
from typing import Final

from frontend.limits.windows import Window, Windows
from frontend.telemetry.logs import log

MAX_LINES: Final = 20
"""The most lines of one user and code in one window."""
OTHERS: Final = -1

Key = tuple[int | None, str]


@dataclass(slots=True)
class _Lines(Window):
    """`count` is the number of refusals left out; `said` the number of lines."""

    said: int = 0


class RefusalLines:
    """The refusals of one front. `seconds` is the length of a window."""

    def __init__(self, seconds: float) -> None:
        self._windows: Windows[Key, _Lines] = Windows(_Lines, lambda key: (OTHERS, key[1]), seconds)

    def may_say(self, uid: int | None, code: str) -> bool:
        """True if a refusal of this user with this code is logged; otherwise it is counted."""
        _, window, _ = self._windows.of((uid, code))
        if window.said < MAX_LINES:
            window.said += 1
            return True
        window.count += 1
        return False

    def tell_due(self, now: float) -> None:
        """Say how many were left out of windows that are over."""
        for (uid, code), window in self._windows.due(now):
            left_out, window.count, window.said = window.count, 0, 0
            who = {"is_many_users": True} if uid == OTHERS else {} if uid is None else {"uid": uid}
            log.warning("log lines of refusals were left out", code=code, left_out=left_out, **who)
