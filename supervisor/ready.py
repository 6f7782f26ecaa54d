"""What is told when a dev gateway serves: one line of JSON for programs, five lines for a person on a terminal.

SECURITY: the JSON line holds the operator's key of this dev gateway, so the ready file has mode 0600.
"""

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import msgspec

from ipc.exits import Exit
from supervisor.private_files import check_can_write, write_private
from supervisor.refusal import Refused


class ReadyOperator(msgspec.Struct, frozen=True):
    """The dev operator's credential."""

    name: str
    key: str
    private_key_file: str


class Ready(msgspec.Struct, frozen=True, tag_field="event", tag="ready"):
    """The ready line; its first member is `"event":"ready"`."""

    base_url: str
    public_base_url: str
    pid: int
    state_dir: str
    client_socket: str
    admin_socket: str
    operator: ReadyOperator


def prepare_ready_file(file: Path | None, cleanup: ExitStack) -> None:
    """Remove a ready file of an earlier run, which would be false now, and check that a new one can be written.

    It is removed again at the end. Raises Refused.
    """
    if file is None:
        return
    try:
        check_can_write(file)
        file.unlink(missing_ok=True)
    except OSError as error:
        raise Refused(Exit.NO_PERMISSION, f"ready file {file} can't be written: {error.strerror}.") from None
    cleanup.callback(_forget, file)


def _forget(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except OSError:
        return


def announcer(ready: Ready, friendly: str, file: Path | None) -> Callable[[], None]:
    """What to call when the gateway serves: ready file, standard output, and `friendly` on a terminal.

    Raises Refused when the ready file can't be written any more.
    """

    def announce() -> None:
        line = msgspec.json.encode(ready) + b"\n"
        if file is not None:
            try:
                write_private(file, line.decode())
            except OSError as error:
                raise Refused(Exit.NO_PERMISSION, f"ready file {file} can't be written: {error.strerror}.") from None
        try:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            # Nobody reads it: no reason not to serve. What stays in the buffer must not fail again at exit.
            os.dup2(2, sys.stdout.fileno())
        if sys.stderr.isatty():
            sys.stderr.write(friendly)
            sys.stderr.flush()

    return announce
