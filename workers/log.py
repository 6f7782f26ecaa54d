"""Log lines of template and workers: one JSON object a line on standard error.

Small on purpose: a worker must not load a logging framework. A line is one write, so that lines of several processes
on one pipe never mix; one that is not taken at once is dropped (ipc/process/stderr.py). SECURITY: callers pass
identifiers, codes and sizes, never a secret, a body or a grant.
"""

import time
import traceback

import msgspec

from ipc.process.log_level import says_details
from ipc.process.stderr import stderr

SAYS_DETAILS = says_details()
"""Whether lines of the level `debug` are wanted. Read before a worker is forked, which has no environment."""
MAX_LINE_BYTES = 8192


def write_line(level: str, message: str, **fields: object) -> None:
    """Write one line. Never raises and never waits: a log that is gone, or full, must not end a call."""
    stderr.say(lambda: _put(level, message, fields), _tell_dropped)


def _put(level: str, message: str, fields: dict[str, object]) -> bool:
    fixed = {"level": level, "time": _stamp(time.time()), "message": message}
    try:
        line = msgspec.json.encode({**fixed, **fields})
        if len(line) >= MAX_LINE_BYTES:
            line = msgspec.json.encode({**fixed, "message": message[:200], "cut": True})
    except (ValueError, TypeError):
        return False
    return stderr.put(line + b"\n")


def _tell_dropped(count: int, since: float) -> bool:
    return _put("warning", "log lines were dropped", {"dropped": count, "since": _stamp(since)})


def _stamp(moment: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + f".{int(moment % 1 * 1_000_000):06d}Z"


def write_failure(message: str, error: BaseException, **fields: object) -> None:
    """One line for what we caused ourselves, with the stack trace."""
    trace = "".join(traceback.format_exception(error))
    write_line("error", message, exception=trace[-6000:], **fields)
