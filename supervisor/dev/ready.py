"""The announcement that a dev gateway serves: one line of JSON for programs, a few lines for a person on a terminal.

SECURITY: the JSON line holds the operator's key of this dev gateway, so the ready file has mode 0600, and the line is
never written to a terminal, where others could see it. `running.json` in the state directory, by which gatectl finds
the gateway, names the files with keys and holds none.
"""

import contextlib
import os
import select
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import msgspec

from ipc.process.exits import Exit
from supervisor.dev.private_files import check_can_write, write_private
from supervisor.logs import log
from supervisor.refusal import Refused


class ReadyOperator(msgspec.Struct, frozen=True):
    """The dev operator's credential."""

    name: str
    key: str
    key_file: str
    private_key_file: str


class Ready(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="ready"):
    """The ready line; its first member is `"event":"ready"`."""

    base_url: str
    public_base_url: str
    pid: int
    state_dir: str
    client_socket: str
    admin_socket: str
    operator: ReadyOperator
    console: str | None = None
    """The link that signs the operator in once; left out without a console."""


PRINT_SECONDS = 1.0
"""For standard output to take the ready line."""
RUNNING = "running.json"
"""In the state directory while the gateway serves."""


class _Running(msgspec.Struct, frozen=True):
    """The content of `running.json`, for gatectl (sdk/gateway_client/cli/contexts/running_dev.py)."""

    pid: int
    public_base_url: str
    client_socket: str
    admin_socket: str
    operator_key_file: str
    private_key_file: str


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
    """Return the function that announces a serving gateway: `running.json`, ready file, standard output, and `friendly`
    on a terminal.

    Raises Refused when one of the files can't be written any more.
    """

    def announce() -> None:
        line = msgspec.json.encode(ready).decode() + "\n"
        _write(Path(ready.state_dir) / RUNNING, msgspec.json.encode(_running(ready)).decode() + "\n")
        if file is not None:
            _write(file, line)
        is_seen = sys.stdout.isatty()
        if not is_seen:
            _print(line)
        for stream in (sys.stderr, sys.stdout):
            if stream.isatty():
                with contextlib.suppress(OSError):  # of a terminal that takes nothing at the moment
                    os.write(stream.fileno(), friendly.encode(errors="backslashreplace"))
                return

    return announce


def _print(line: str) -> None:
    """The ready line on standard output. A reader that is gone, or does not read, is no reason not to serve."""
    try:
        if select.select([], [sys.stdout], [], PRINT_SECONDS)[1]:
            os.write(sys.stdout.fileno(), line.encode())
        else:
            log.warning("the ready line was not printed: standard output is full and not read")
    except OSError as error:
        log.warning("the ready line was not printed", error=str(error))


def forget_running(state_dir: Path, cleanup: ExitStack) -> None:
    """Remove what a gateway that was killed left in the state directory, and at the end what this one will have."""
    _forget(state_dir / RUNNING)
    cleanup.callback(_forget, state_dir / RUNNING)


def _running(ready: Ready) -> _Running:
    operator = ready.operator
    return _Running(
        ready.pid, ready.public_base_url, ready.client_socket, ready.admin_socket, operator.key_file,
        operator.private_key_file,
    )  # fmt: skip


def _write(file: Path, text: str) -> None:
    try:
        write_private(file, text)
    except OSError as error:
        raise Refused(Exit.NO_PERMISSION, f"ready file {file} can't be written: {error.strerror}.") from None
