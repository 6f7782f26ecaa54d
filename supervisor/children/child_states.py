"""The life of one child, over all its processes, as a table. No I/O.

A child in a crash loop makes readiness fail until it works again: one that never came up, until it serves; one that
served and died again and again, until it has served for a whole minute.
"""

from collections.abc import Mapping

WAITING = "waiting"
STARTING = "starting"
SERVING = "serving"
LOOPING = "looping"
RETRYING = "retrying"
PROVING = "proving"

MOVES: Mapping[tuple[str, str], str] = {
    (WAITING, "start"): STARTING,
    (STARTING, "serve"): SERVING,
    (STARTING, "prove"): SERVING,
    (STARTING, "end"): WAITING,
    (SERVING, "end"): WAITING,
    (WAITING, "loop"): LOOPING,
    (LOOPING, "loop"): LOOPING,
    (LOOPING, "start"): RETRYING,
    (RETRYING, "serve"): SERVING,
    (RETRYING, "prove"): PROVING,
    (RETRYING, "end"): LOOPING,
    (PROVING, "healthy"): SERVING,
    (PROVING, "end"): LOOPING,
    (SERVING, "healthy"): SERVING,
}
"""(state, event) -> state. Each end is `end`; `loop` follows it where the back-off says that there were too many."""

FAILING = frozenset({LOOPING, RETRYING, PROVING})
"""States in which readiness fails."""


class IllegalChildMove(Exception):
    """The table has no such move: an internal error."""


def after(state: str, event: str) -> str:
    """The next state. Raises IllegalMove."""
    try:
        return MOVES[state, event]
    except KeyError:
        raise IllegalChildMove(f"{event} while {state}") from None
