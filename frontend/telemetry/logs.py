"""Log lines of the front, and the trace id that those of one request carry."""

from contextvars import ContextVar

from ipc.process.journald import own_journal
from ipc.process.logs import Fields, LogWriter, log, write_lines
from ipc.process.stderr import is_read_by_person
from ipc.texts.identifiers import new

__all__ = ["begin_trace", "configure_logs", "log", "trace_id", "trace_now"]

trace_id: ContextVar[str | None] = ContextVar("trace_id", default=None)
"""The trace id of the request that is being answered. Tasks and threads that it starts inherit it."""


def begin_trace() -> None:
    """Give the request that is answered from now on a trace id of its own."""
    trace_id.set(new("trc_"))


def trace_now() -> str:
    """The trace id of the request that is being answered; outside of any a new one, which nothing else has."""
    return trace_id.get() or new("trc_")


def configure_logs(process: str, *, to_terminal: bool | None = None) -> None:
    """Say from now on which process says something: "front 1", "check"."""

    def bound() -> Fields:
        trace = trace_id.get()
        return {"process": process} if trace is None else {"process": process, "trace_id": trace}

    write_lines(
        LogWriter(bound, human=is_read_by_person() if to_terminal is None else to_terminal, journal=own_journal())
    )
