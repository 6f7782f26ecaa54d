"""`gateway ledger seal`: move the oldest part of a ledger to a file of its own, while the gateway runs or is stopped.

While it runs, a program of its own writes the segment, by a connection that can't write, and the notary cuts the ledger
in one unit and deletes the rows in slices: calls go on. Otherwise the program does all of it.
"""

import argparse
import fcntl
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from ipc.evidence.unfinished_segments import forget_unfinished
from ipc.messages.sealing import CopiedSegment
from ipc.process.exits import Exit
from ipc.settings import Settings
from supervisor.commands import Commands
from supervisor.commands.inspect.rollback import local_user, run_alone, run_for_ledger
from supervisor.commands.named import add_gateway, named_settings
from supervisor.life.asking import ask_gateway
from supervisor.refusal import Refused

MOST_SECONDS: Final = 24 * 3600.0
_PROGRAM: Final = "notary.programs.seal"
_LOOK_AGAIN_SECONDS: Final = 1.0


def add_seal(commands: Commands) -> None:
    """Put `seal` beside the other commands of `ledger`."""
    seal = commands.add_parser(
        "seal",
        help="move the oldest part of the ledger to a file of its own",
        description="Move events, intents and receipts from before a time, up to a checkpoint, to a segment: a file "
        "that verifies by itself. Nothing is deleted before the segment was flushed and read back. The gateway may run "
        "meanwhile; stopped, a ledger's file is made shorter, too. Run it as the user that the gateway runs as.",
    )
    seal.add_argument("--before", required=True, metavar="TIME", help="ISO 8601; at least a day ago")
    seal.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder for segments; made if missing")
    add_gateway(seal)
    seal.set_defaults(run=_seal)


def _seal(options: argparse.Namespace) -> int:
    settings = named_settings(options)
    if settings is None:
        return Exit.CONFIG
    folder: Path = options.out.absolute()
    arguments = ["--before", options.before, "--out", str(folder), "--by", local_user()]
    arguments += ["--parent", str(os.getpid())]
    with _held(folder), _leaving_nothing(folder):
        try:
            print(run_alone(_PROGRAM, settings, arguments, MOST_SECONDS), end="")
        except Refused as error:
            if error.code != Exit.LOCKED:
                raise
            _seal_running(settings, arguments)
    return Exit.OK


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """SECURITY: a second one would remove the segment that the first has written and not cut off yet. Raises
    Refused."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise Refused(Exit.NO_PERMISSION, f"--out: {folder} can't be used: {error.strerror}.") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise Refused(Exit.LOCKED, f"another gateway ledger seal writes to {folder}.") from None
    finally:
        os.close(descriptor)


@contextmanager
def _leaving_nothing(folder: Path) -> Iterator[None]:
    """Remove the unfinished segment of a program that did not come to its end, also where a signal ends the command."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # as nohup has it
            signal.signal(number, _end)
    try:
        yield
    finally:
        with suppress(OSError):  # the next seal tells it
            forget_unfinished(folder)
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def _seal_running(settings: Settings, arguments: list[str]) -> None:
    state_dir = Path(settings.state_dir)
    _finish_earlier(state_dir)
    printed = run_for_ledger(_PROGRAM, settings, [*arguments, "--copy"], MOST_SECONDS)
    copied = msgspec.json.decode(printed, type=CopiedSegment)
    answer = _asked(state_dir, copied.sealed)
    if answer["problem"] is not None:
        if answer["is_refused"]:
            Path(copied.path).unlink()  # the ledger has all of it
        raise Refused(Exit.FAILED, f"{answer['problem']}.")
    print(copied.told, flush=True)
    try:
        while answer["left"] and answer["problem"] is None:
            time.sleep(_LOOK_AGAIN_SECONDS)
            answer = _asked(state_dir, copied.sealed)
        is_done = answer["problem"] is None
    except Refused:
        is_done = False
    if not is_done:
        print("gateway: the gateway deletes the other rows later, or when it starts again.", file=sys.stderr)


def _finish_earlier(state_dir: Path) -> None:
    """Have the notary do what it was asked before. Raises Refused, before anything is copied.

    SECURITY: it may still cut the ledger for a command that has ended, whose segment would be removed as unfinished.
    """
    if (problem := _asked(state_dir, "")["problem"]) is not None:
        raise Refused(Exit.UNAVAILABLE, f"the ledger can't be sealed now: {problem}.")


def _asked(state_dir: Path, sealed: str) -> dict[str, Any]:
    answer = ask_gateway(state_dir, "seal", sealed=sealed)
    if "error" in answer:
        raise Refused(Exit.FAILED, f"{answer['error']}.")
    return answer
