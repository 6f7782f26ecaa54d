"""`gateway logs --trace ID`: every line of one trace, from all processes, in the order of time."""

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path

from ipc.process.exits import Exit
from supervisor.commands import Commands
from supervisor.commands.inspect.logbook import MAX_LINES, as_json, as_text, lines_of
from supervisor.refusal import Refused


def add(commands: Commands) -> None:
    """Put `logs` beside the other commands."""
    parser = commands.add_parser(
        "logs",
        help="collect the lines of one trace from all processes",
        description="Read the log of a gateway (files, or standard input: `journalctl -u gateway -o json | gateway "
        'logs --trace ID`) and print every line of one trace, in the order of time. With `log_level = "debug"` notary, '
        "policy process and worker have lines for each call. Exit code 1 when there is none.",
    )
    parser.add_argument("--trace", required=True, metavar="ID", help="trace_id of an answer, an error or an event")
    parser.add_argument("--json", action="store_true", help="print JSON lines, as they were written")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="default: standard input")
    parser.set_defaults(run=_logs)


def _logs(options: argparse.Namespace) -> int:
    with ExitStack() as opened:
        try:
            streams = [opened.enter_context(file.open("rb")) for file in options.files] or [sys.stdin.buffer]
            lines, is_cut = lines_of(options.trace, streams)
        except OSError as error:
            raise Refused(
                Exit.NO_PERMISSION, f"{error.filename or 'the log'} can't be read: {error.strerror}."
            ) from None
    for line in lines:
        print(as_json(line) if options.json else as_text(line))
    if is_cut:
        print(f"gateway: there are more; these are {MAX_LINES}", file=sys.stderr)
    if not lines:
        print(f"gateway: no line of {options.trace!a}; is this the log, and is it whole?", file=sys.stderr)
    return Exit.OK if lines else Exit.FAILED
