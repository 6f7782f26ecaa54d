"""Audit events as a file: one event a line in its canonical form, oldest first, so that the chain can be walked.

The gateway hands events out newest first. They go to a spool beside the target and are turned round from there, with
eight bytes of memory an event. Guarantees that the target is there whole or not at all, with mode 0600.
"""

import os
import tempfile
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from gateway_client.cli.display.output import ProgressLine
from gateway_client.cli.exits import Failure, ScriptExit
from gateway_client.evidence.chain import chained
from gateway_client.results import AuditEvent

STEP = 1000


def export(events: Iterable[AuditEvent], target: Path) -> int:
    """Write `events`, which come newest first; gives how many. Raises Failure file_exists, OSError."""
    if os.path.lexists(target):
        raise _exists(target)
    progress = ProgressLine()
    try:
        with (
            tempfile.TemporaryFile(dir=target.parent) as spool,
            tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.") as file,
        ):
            starts = array("Q")
            for event in events:
                starts.append(spool.tell())
                spool.write(chained(event.raw) + b"\n")
                if len(starts) % STEP == 0:
                    progress.show(f"{len(starts)} events")
            for line in _backwards(spool, starts):
                file.write(line)
            file.flush()
            os.fsync(file.fileno())
            os.link(file.name, target)  # a rename would replace what has come there meanwhile
    except FileExistsError:
        raise _exists(target) from None
    finally:
        progress.end()
    return len(starts)


def exported(file: Path, progress: ProgressLine) -> Iterator[bytes]:
    """The lines of an export. Raises OSError, ValueError for a line that is longer than any event."""
    with file.open("rb") as opened:
        count = 0
        while line := opened.readline(MAX_LINE):
            if len(line) == MAX_LINE:
                raise ValueError(f"{file}: line {count + 1} is longer than any event")
            count += 1
            if count % STEP == 0:
                progress.show(f"{count} events")
            yield line


MAX_LINE = 16 * 1024 * 1024


def _backwards(spool: BinaryIO, starts: "array[int]") -> Iterator[bytes]:
    end = spool.tell()
    for start in reversed(starts):
        spool.seek(start)
        yield spool.read(end - start)
        end = start


def _exists(target: Path) -> Failure:
    return Failure(ScriptExit.CONFLICT, "file_exists", f"{target} is there already", "name another file")
