"""Log lines of the supervisor. SECURITY: callers pass names, numbers and paths, never a key."""

import sys

from ipc.journal import own_journal
from ipc.logs import Lines, log, write_lines

__all__ = ["configure_logs", "log"]


def configure_logs(*, to_terminal: bool | None = None) -> None:
    """Call once, before the first line."""
    human = sys.stderr.isatty() if to_terminal is None else to_terminal
    write_lines(Lines(lambda: {"process": "supervisor"}, human=human, journal=own_journal()))
