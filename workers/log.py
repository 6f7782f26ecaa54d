"""Log lines of template and workers: one JSON object a line on standard error.

Small on purpose: a worker must not load a logging framework. A line is one write, so that lines of several processes
on one pipe never mix. SECURITY: callers pass identifiers, codes and sizes, never a secret, a body or a grant.
"""

import os
import time
import traceback

import msgspec

from ipc.log_level import says_details

SAYS_DETAILS = says_details()
"""Whether lines of the level `debug` are wanted. Read before a worker is forked, which has no environment."""
MAX_LINE_BYTES = 8192
_STDERR = 2


def write_line(level: str, message: str, **fields: object) -> None:
    """Write one line. Never raises: a log that is gone must not end a call."""
    now = time.time()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1_000_000):06d}Z"
    try:
        line = msgspec.json.encode({"level": level, "time": stamp, "message": message, **fields})
        if len(line) >= MAX_LINE_BYTES:
            line = msgspec.json.encode({"level": level, "time": stamp, "message": message[:200], "cut": True})
        os.write(_STDERR, line + b"\n")
    except (OSError, ValueError, TypeError):
        return


def write_failure(message: str, error: BaseException, **fields: object) -> None:
    """One line for what we caused ourselves, with the stack trace."""
    trace = "".join(traceback.format_exception(error))
    write_line("error", message, exception=trace[-6000:], **fields)
