"""Log lines of the supervisor. SECURITY: callers pass names, numbers and paths, never a key."""

from ipc.process.journald import own_journal
from ipc.process.logs import LogWriter, log, write_lines
from ipc.process.stderr import is_read_by_person

__all__ = ["configure_logs", "log"]


def configure_logs(*, to_terminal: bool | None = None) -> None:
    """Call once, before the first line."""
    human = is_read_by_person() if to_terminal is None else to_terminal
    write_lines(LogWriter(lambda: {"process": "supervisor"}, human=human, journal=own_journal()))
