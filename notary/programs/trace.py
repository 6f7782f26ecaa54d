"""`python -m notary.programs.trace TRACE LEDGER --parent PID`: the audit events of one request, oldest first, as a JSON
array.

Behind `gateway policy explain --trace`. Exit 0, or 69 with a sentence: nothing can be said. Opens the ledger read-only.
"""

import argparse
import sqlite3
import sys

from ipc.evidence.records import EventQuery
from ipc.process.exits import Exit
from ipc.process.parent import die_with_parent, refuse_core_dumps
from notary.reading.audit import CannotCheck, readable
from notary.reading.queries import events_of
from notary.reading.source import NotReadable, add_source, source_in


def main(arguments: list[str] | None = None) -> int:
    """Entry point. Returns an exit code of ipc/process/exits.py."""
    parser = argparse.ArgumentParser(prog="notary.programs.trace", allow_abbrev=False)
    parser.add_argument("trace")
    add_source(parser)
    parser.add_argument("--parent", type=int, required=True)
    options = parser.parse_args(arguments)
    die_with_parent(options.parent)
    refuse_core_dumps()
    try:
        with readable(source_in(options)) as connection:
            events = events_of(connection, EventQuery(trace_id=options.trace))
    except (CannotCheck, NotReadable, sqlite3.Error) as problem:
        print(f"gateway: {problem}", file=sys.stderr)
        return Exit.UNAVAILABLE
    sys.stdout.buffer.write(b"[" + b",".join(reversed(events)) + b"]")
    sys.stdout.buffer.flush()
    return Exit.OK


if __name__ == "__main__":
    sys.exit(main())
