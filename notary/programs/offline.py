"""`python -m notary.programs.offline LEDGER --keys JWKS`: check a ledger without the service that wrote it.

Behind `gateway ledger verify`. Several segments, and segments and their ledger, must go on from each other. Progress
on a terminal, the first broken event beside its neighbours, one sentence at the end. Exit 0: whole. 8: something does
not fit. 69: nothing can be said. Opens the file read-only.
"""

import argparse
import signal
import sqlite3
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ipc.evidence.unfinished_segments import unfinished_in
from ipc.process.exits import Exit
from ipc.process.output import flushed
from ipc.texts.visible import has_overlay
from notary.database import DatabaseGone
from notary.reading.audit import CannotCheck, Findings, ForeignShape, check, neighbours, readable
from notary.reading.kept_checkpoints import KeptCheckpoint, keys_by_name, read_kept
from notary.reading.source import NotReadable, Source, add_source
from notary.reading.verify import Break
from notary.sealing.joints import (
    LedgerPart,
    carried_keys,
    part_of,
    problem_of_beginning,
    problem_of_joints,
    segments_in,
)
from notary.signing.receipt_keys import ReceiptKeys
from notary.tree.checkpoint import NoteRefused
from notary.tree.notes import Keys

PROGRESS_SECONDS = 0.1
_PLURALS = {"leaf": "leaves"}
_SHOWN = ("timestamp", "event_type", "action_id", "decision", "event_id")


class _Progress:
    """One line that is written over, on a terminal and nowhere else."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty()
        self._next = 0.0

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self._is_shown and now >= self._next:
            self._next = now + PROGRESS_SECONDS
            share = f"{100 * done // total} %" if total else ""
            print(f"\r{done:,} of {total:,} events checked {share}\x1b[K", end="", file=sys.stderr)

    def clear(self) -> None:
        """Leave the line empty for what follows."""
        if self._is_shown:
            print("\r\x1b[K", end="", file=sys.stderr)


def main(arguments: list[str] | None = None) -> int:
    """Entry point. Returns an exit code of ipc/process/exits.py."""
    parser = argparse.ArgumentParser(prog="gateway ledger verify", description="Check a ledger without the service.")
    add_source(
        parser, nargs="+", metavar="LEDGER", help="a ledger's file, or the address of a PostgreSQL; or sealed segments"
    )
    parser.add_argument("--keys", type=Path, metavar="JWKS", help="receipt keys (GET /v1/receipt-keys)")
    parser.add_argument("--segments", type=Path, metavar="DIR", help="the ledger's sealed segments: all of them")
    parser.add_argument(
        "--checkpoint", type=Path, action="append", default=[], metavar="FILE", help="a checkpoint that was kept: again"
    )
    parser.add_argument(
        "--checkpoint-key", action="append", default=[], metavar="KEY", help="verifier key, name+id+base64: again"
    )
    options = parser.parse_args(arguments)
    try:
        keys = None if options.keys is None else _read_keys(options.keys)
        signers = _checkpoint_keys(options.checkpoint_key)
        kept = [one for path in options.checkpoint for one in _read_checkpoints(path, signers)]
        parts = list[LedgerPart]()
        for source in _sources(options):
            findings = _check(source, keys, signers, kept, parts)
            _show(_sentence(source.place, findings))
            if findings.broken is not None:
                return Exit.CHECK_FAILED
    except (CannotCheck, NotReadable) as problem:
        print(f"Nothing can be said: {problem}", file=sys.stderr)
        return Exit.UNAVAILABLE
    problem_of_all = problem_of_joints(parts, from_the_beginning=options.segments is not None)
    if problem_of_all is not None:
        place, reason = problem_of_all
        _show(_sentence(place, Findings(broken=Break(None, None, reason))))
        return Exit.CHECK_FAILED
    if options.segments is not None:
        _tell_unfinished(options.segments)
    return Exit.OK


def _show(text: str) -> None:
    """Print it; to a reader that is gone the exit code tells the finding."""
    with suppress(BrokenPipeError):
        print(text)


def _tell_unfinished(folder: Path) -> None:
    """Name the unfinished files beside the segments that were checked."""
    for path in unfinished_in(folder):
        mend = "the next gateway ledger seal into this folder removes it"
        print(f"{path} is unfinished, and may have kept values: {mend}.", file=sys.stderr)


def _sources(options: argparse.Namespace) -> list[Source]:
    """The places to check, oldest first: segments in the order of their leaves, then their ledger."""
    given = [Source(place, options.password_file, options.ca_file) for place in options.place]
    if options.segments is None:
        return given if len(given) == 1 else sorted(given, key=lambda source: Path(source.place).name)
    if len(given) != 1:
        raise CannotCheck("--segments belongs to one ledger.")
    return [*(Source(str(path)) for path in segments_in(options.segments)), *given]


def _check(
    source: Source, keys: ReceiptKeys | None, signers: Keys, kept: list[KeptCheckpoint], parts: list[LedgerPart]
) -> Findings:  # fmt: skip
    """Check one ledger or segment, and add it to `parts`. Without keys those count that a segment carries."""
    try:
        with readable(source) as connection:
            carried = carried_keys(connection)
            if keys is None and carried is None:
                raise CannotCheck("a ledger carries no keys: give --keys.")
            part = part_of(connection, source.place)
            if (reason := problem_of_beginning(part)) is not None:
                return Findings(broken=Break(None, None, reason))
            if carried is not None and part.end is None:
                return Findings(broken=Break(None, None, "it is a segment, and does not say where it ends"))
            if carried is not None:
                keys = keys or ReceiptKeys(carried.receipts)
                signers = signers or keys_by_name(carried.checkpoints)
                kept = [one for one in kept if part.holds(one.checkpoint.size)]
            progress = _Progress()
            try:
                findings = check(
                    connection, keys or ReceiptKeys({"keys": []}), progress, kept, signers or None,
                    is_segment=carried is not None,
                )  # fmt: skip
            finally:
                progress.clear()
            parts.append(part)
            if findings.broken is not None and findings.broken.seq is not None:
                for number, stored in neighbours(connection, findings.broken.seq):
                    _show(_line(number, stored, is_broken=number == findings.broken.seq))
            return findings
    except ForeignShape as problem:
        return Findings(broken=Break(None, None, str(problem)))
    except (DatabaseGone, sqlite3.DatabaseError, ValueError) as problem:
        return Findings(broken=Break(None, None, f"the file is damaged: {problem}"))


def _read_keys(path: Path) -> ReceiptKeys:
    try:
        return ReceiptKeys(msgspec.json.decode(path.read_bytes(), type=dict[str, Any]))
    except OSError as error:
        raise CannotCheck(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise CannotCheck(f"{path} is not a JWKS, an object with an array named keys.") from None


def _checkpoint_keys(texts: list[str]) -> Keys:
    try:
        return keys_by_name([key for text in texts for key in text.split() or [text]])
    except NoteRefused as error:
        raise CannotCheck(f"--checkpoint-key: {error}.") from None


def _read_checkpoints(path: Path, keys: Keys) -> list[KeptCheckpoint]:
    try:
        return read_kept(path, keys)
    except OSError as error:
        raise CannotCheck(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise CannotCheck(f"{path}: {error}.") from None
    except RecursionError:
        raise CannotCheck(f"{path}: holds no checkpoint.") from None


def _line(number: int, stored: bytes, *, is_broken: bool) -> str:
    mark = ">" if is_broken else " "
    try:
        event = msgspec.json.decode(stored, type=dict[str, Any])
        told = "  ".join(_printable(str(event.get(name, "-"))) for name in _SHOWN)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        told = _printable(stored[:100].decode("utf-8", "backslashreplace"))
    return f"{mark} {number:>9,}  {told}"


def _printable(text: str) -> str:
    """SECURITY: an agent may have chosen this text; a terminal must not obey it."""
    return "".join(c if c.isprintable() and not has_overlay(c) else c.encode("unicode_escape").decode() for c in text)


def _sentence(place: str, findings: Findings) -> str:
    broken = findings.broken
    if broken is None:
        continues = f" It continues {_counted(findings.continued, 'checkpoint')}." if findings.continued else ""
        if findings.signed:
            over = f"all but {_counted(findings.unsigned_leaves, 'leaf')}" if findings.unsigned_leaves else "all of it"
            signed = _counted(findings.signed, "checkpoint")
            continues = f" The log's key signed {signed}, the newest over {over}.{continues}"
        sealed = f" The {_counted(findings.sealed, 'event')} before it are sealed." if findings.sealed else ""
        sealed = f" It is a sealed segment.{sealed}" if findings.is_segment else sealed
        return (
            f"{place} is intact: {_counted(findings.events, 'event')} in one chain, "
            f"{_counted(findings.receipts, 'receipt')} with a valid signature, "
            f"{_counted(findings.unresolved, 'unresolved intent')}.{sealed}{continues}"
        )
    if broken.event_id is None:
        return f"{place} is broken: {_printable(broken.reason)}."
    name = _printable(broken.event_id)  # of an intent, unless it is an event and has a number
    if broken.seq is not None:
        name = f"event {name}, number {broken.seq:,}"
    return f"{place} is broken at {name}: {_printable(broken.reason)}."


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun if number == 1 else _PLURALS.get(noun, noun + 's')}"


if __name__ == "__main__":
    # Ctrl-C ends the check and nothing else: there is nothing to leave whole, and no trace to show.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(flushed(main()))
