"""`python -m notary.programs.backup DIR [--with-keys]`, settings as JSON on standard input: copy what a gateway keeps,
while it runs.

Behind `gateway backup`. The ledger is copied from one read transaction, so that it is of one moment, whatever is
written meanwhile; of the checkpoints those come along that it continues, and the place up to which a collector has
taken its events, so that those that wait for it are not left out. The copy is marked: a start refuses it until an
operator says why it is gone on from (notary/programs/accept_rollback.py), which ends every lease, since it is unknown
which proofs and budgets were used after it was taken. Guarantees that DIR is there whole or not at all, mode 0700, its
files 0600, and that nothing that is there is written over.
"""

import argparse
import hashlib
import os
import shutil
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec

from ipc.process.clock import iso
from ipc.process.exits import Exit
from ipc.process.private_files import PrivateFileError, partial_of, read_private, sync_folder, write_private
from ipc.settings import Settings
from notary import checkpoint_file, event_export
from notary.backends.sqlite import connect
from notary.checkpoints import BACKUP
from notary.ledger.schema import planted
from notary.reading.queries import newest_time
from notary.tree.checkpoint import Checkpoint, NoteRefused, parted
from notary.tree.tiles import Tree

LEDGER: Final = "ledger.sqlite3"
MANIFEST: Final = "backup.json"
KEYS: Final = "keys"
_STATE_FILES = ("checkpoint-keys.jwks.json", "lease-keys.jwks.json")
_LEARNED: Final = "learned.json"
"""In the fronts' folder; in the state directory where no front has started since an earlier version."""


class NotBackedUp(Exception):
    """No backup was made; the message says why and what to do."""


class _Copied(msgspec.Struct, frozen=True):
    """The ledger in the backup: its leaves, and when its newest event was written (ISO 8601), if there is one."""

    leaves: int
    newest: str | None


def back_up(settings: Settings, target: Path, *, with_keys: bool) -> str:
    """Do it; a sentence that tells what was. Raises NotBackedUp, KeyFileError, sqlite3.Error, OSError."""
    if settings.ledger.url is not None:
        raise NotBackedUp(
            "the ledger is in a PostgreSQL: back that up with pg_dump, and the state directory with your own tools"
            " (docs/operations.md)."
        )
    if os.path.lexists(target):
        raise NotBackedUp(f"{target} is there already; nothing was written. Name a folder that is not.")
    made = partial_of(target, os.getppid())
    made.mkdir(mode=0o700)
    try:
        exported = Path(settings.state_dir) / event_export.FILE_NAME
        if exported.exists():  # before the ledger, which so has every event up to it
            write_private(made / exported.name, exported.read_bytes())
        copied = _ledger(Path(settings.ledger_file), made / LEDGER)
        _checkpoints(Path(settings.state_dir) / checkpoint_file.FILE_NAME, made / checkpoint_file.FILE_NAME, copied)
        for file in _public(settings):
            write_private(made / file.name, file.read_bytes())
        if with_keys:
            (made / KEYS).mkdir(mode=0o700)
            for file in _private(settings):
                write_private(made / KEYS / file.name, read_private(file))
        _manifest(made, settings.version, copied, with_keys=with_keys)
        sync_folder(made)
        made.rename(target)  # refuses a folder that is not empty; a name that was free a moment ago is ours
        sync_folder(target.parent)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    keys = f"in {target / KEYS}: keep it as you keep them" if with_keys else "not in it"
    until = "" if copied.newest is None else f", the newest event of {copied.newest}"
    return f"{target} has the ledger with {copied.leaves} leaves{until}. Signing keys are {keys}."


def _ledger(source: Path, copy: Path) -> _Copied:
    """SECURITY: marked before it has its name, so that no copy starts as if nothing had happened since. Rows are
    copied, not pages: free room in pages may have copies of what was erased."""
    write_private(copy, b"")
    with closing(connect(source, writes=False)) as ledger:
        if (name := planted(ledger)) is not None:
            raise NotBackedUp(f"{source} has a {name}, which no gateway makes: its backup would be no ledger either.")
        ledger.execute("VACUUM INTO ?", (str(copy),))
    with closing(connect(copy, writes=True)) as backup:
        backup.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (BACKUP, iso(time.time())))
        newest = newest_time(backup)
        leaves = Tree(backup).size
        backup.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for beside in ("-wal", "-shm"):
        Path(f"{copy}{beside}").unlink(missing_ok=True)
    return _Copied(leaves, None if newest is None else iso(newest))


def _checkpoints(source: Path, copy: Path, copied: _Copied) -> None:
    """Those that the copied ledger continues: newer ones were signed while it was copied."""
    try:
        lines = source.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return
    kept = b"".join(line for line in lines if _size_of(line) <= copied.leaves)
    write_private(copy, kept, max_bytes=2 * checkpoint_file.MAX_BYTES)


def _size_of(line: bytes) -> float:
    """Leaves of the checkpoint in a line; infinity for another text."""
    try:
        return Checkpoint.parse(parted(msgspec.json.decode(line, type=checkpoint_file.CheckpointLine).note)[0]).size
    except (msgspec.MsgspecError, NoteRefused, ValueError):
        return float("inf")


def _public(settings: Settings) -> list[Path]:
    """Existing files that hold no secret."""
    named = [Path(settings.state_dir) / name for name in _STATE_FILES]
    learned = (Path(folder) / _LEARNED for folder in (settings.fronts_folder, settings.state_dir))
    named += [one for one in learned if one.exists()][:1]
    if settings.receipt_keys_jwks_path is not None:
        named.append(Path(settings.receipt_keys_jwks_path))
    return [one for one in named if one.exists()]


def _private(settings: Settings) -> list[Path]:
    """Files of signing keys."""
    named = (settings.lease_signing_key_path, settings.grant_signing_key_path, settings.receipt_signing_key_path)
    files = [Path(one) for one in named if one is not None]
    return [*files, *(one.with_name("checkpoint.pem") for one in files[-1:])]


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return f"sha256:{hashlib.file_digest(content, 'sha256').hexdigest()}"


def _manifest(folder: Path, version: str, copied: _Copied, *, with_keys: bool) -> None:
    digests = {str(one.relative_to(folder)): _digest(one) for one in sorted(folder.rglob("*")) if one.is_file()}
    told = {
        "gateway_version": version, "taken_at": iso(time.time()), "leaves": copied.leaves,
        "newest_event": copied.newest, "with_keys": with_keys, "files": digests,
    }  # fmt: skip
    write_private(folder / MANIFEST, msgspec.json.format(msgspec.json.encode(told)) + b"\n")


def main(arguments: list[str] | None = None) -> int:
    """Entry point. Returns an exit code of ipc/process/exits.py; the sentence that explains it goes to standard
    error."""
    parser = argparse.ArgumentParser(prog="python -m notary.programs.backup", description="Copy what a gateway keeps.")
    parser.add_argument("target", type=Path)
    parser.add_argument("--with-keys", action="store_true")
    options = parser.parse_args(arguments)
    settings = msgspec.json.decode(sys.stdin.buffer.read(), type=Settings)
    try:
        print(back_up(settings, options.target.absolute(), with_keys=options.with_keys))
        return Exit.OK
    except NotBackedUp as error:
        print(error, file=sys.stderr)
        return Exit.CONFIG
    except PrivateFileError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except (sqlite3.Error, OSError) as error:
        what, why = settings.ledger_file, str(error)
        if isinstance(error, OSError) and error.filename and f".{options.target.name}." not in str(error.filename):
            what, why = str(error.filename), str(error.strerror)  # of a file that is copied beside the ledger
        print(f"{what} could not be copied to {options.target.absolute()}: {why}", file=sys.stderr)
        return Exit.UNAVAILABLE


if __name__ == "__main__":
    sys.exit(main())
