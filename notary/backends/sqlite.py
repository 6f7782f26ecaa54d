"""One SQLite file, as the gateway uses it: opened with the same settings everywhere, reopened after a failure.

Guarantees: WAL with synchronous FULL, mode 0600, a file that is created only when its owner asks for it and never by a
reopening, and that a connection which has seen an I/O error is not used again. Every failure is a DatabaseGone with a
sentence for the log. For one thread at a time; knows no tables.
"""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec

from notary.database import DatabaseGone, OpenTransaction

LOCK_SECONDS = 2.0
"""How long a unit waits for a writer that takes no turns (a backup tool, an administrator's shell)."""
CHECKPOINT_PAGES = 4000
"""WAL pages (16 MB) after which a commit copies them into the file: some 10 ms every 1,100 calls."""
RESERVED_AT_ONCE = 300
"""Pages of one step: at the start, which waits for the disk as little as possible, and whenever the notary is idle."""
SPARE_BYTES = 1 << 28
"""Free bytes on the disk below which nothing is reserved; they are left to commits."""
_SHARED_BYTES = 1 << 16
"""Free bytes on the disk below which it is full: two steps of the memory that processes of one database share."""
_FULL_PAGE = "docs/runbooks/full-disk.md"
CACHED_STATEMENTS = 256
WRITER_CACHE_KIB, READER_CACHE_KIB = 8192, 2048
_FLUSHED, _NOT_FLUSHED = "PRAGMA synchronous=FULL", "PRAGMA synchronous=NORMAL"
_WAL_HEADER_BYTES, _FRAME_BYTES = 32, 24 + 4096


class FileLimits(msgspec.Struct, frozen=True):
    """How long one file is waited for, and how much room its WAL is given beforehand."""

    lock_seconds: float = LOCK_SECONDS
    reserved_pages: int = CHECKPOINT_PAGES + 500
    """Pages for which the WAL has room in advance: a commit that lengthens the file costs twice as much."""
    long_wal_bytes: int = 4 * CHECKPOINT_PAGES * 4096
    """Beyond that the WAL is cut as soon as no reader needs it."""


DEFAULT_LIMITS: Final = FileLimits()


def connect(path: Path, *, writes: bool, lock_seconds: float = LOCK_SECONDS) -> sqlite3.Connection:
    """Open an existing file. Raises sqlite3.Error."""
    connection = sqlite3.connect(
        file_uri(path, "rw" if writes else "ro"), uri=True, timeout=lock_seconds, isolation_level=None,
        check_same_thread=False, cached_statements=CACHED_STATEMENTS,
    )  # fmt: skip
    try:
        for pragma in (
            _FLUSHED.removeprefix("PRAGMA "),
            f"wal_autocheckpoint={CHECKPOINT_PAGES}",
            f"cache_size=-{WRITER_CACHE_KIB if writes else READER_CACHE_KIB}",
            # Compiled in differently everywhere. Zeroing what is deleted doubles the pages that a sweep writes.
            "secure_delete=OFF",
            "temp_store=MEMORY",
            # SECURITY: an attacker who could write the schema must not get functions called by it.
            "trusted_schema=OFF",
        ):
            connection.execute(f"PRAGMA {pragma}")
        if not writes:
            connection.execute("PRAGMA cell_size_check=ON")
    except BaseException:
        connection.close()
        raise
    return connection


def file_uri(path: Path, mode: str, **options: str) -> str:
    """The SQLite URI of a file; `mode` is ro, rw or rwc."""
    rest = "".join(f"&{name}={value}" for name, value in options.items())
    return f"file:{quote(str(path.absolute()))}?mode={mode}{rest}"


class SqliteDatabase:
    """The writing connection of one thread.

    `prepare` creates or checks the schema; it runs inside a transaction when the file is opened for the first time, and
    raises DatabaseGone for a file that it does not know. Later openings are of that very file, or none.
    """

    def __init__(
        self, path: Path, prepare: Callable[[sqlite3.Connection], None], limits: FileLimits = DEFAULT_LIMITS
    ) -> None:
        self.path = path.absolute()
        self._prepare = prepare
        self._limits = limits
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._reserved = 0
        self._lock_seconds = limits.lock_seconds
        """How long a unit waits now."""
        self.is_shared = False
        self.gateway_id = ""
        self.check: Callable[[OpenTransaction], str | None] | None = None
        self.is_unchanged = True
        self.has_old_frames = False
        """A notary that ended without closing left its WAL: what was erased since may still be in it."""

    def open(self) -> None:
        """Create the file where it is missing, and its schema. Raises DatabaseGone."""
        try:
            _create(self.path)
            self.has_old_frames = _size_of(self._wal) > 0
            self._identity = _identity_of(self.path)
            self._connection = self._connect()
            (mode,) = self._connection.execute("PRAGMA journal_mode=WAL").fetchone()
        except (sqlite3.Error, OSError) as error:
            self.close()
            raise DatabaseGone(self._sentence(error)) from error
        if mode != "wal":
            self.close()
            raise DatabaseGone(f"{self.path}: SQLite's WAL mode does not work on this file system")
        with self.unit() as connection:
            self._prepare(connection)
        self._reserve_more()

    @contextlib.contextmanager
    def unit(self, *, writes: bool = True, is_durable: bool = True) -> Iterator[sqlite3.Connection]:
        """One transaction: durable when the block has ended, rolled back whole when it raises.

        With `is_durable` False it may be undone by a crash of the machine, whole, until the next one that is durable.

        SQLite's errors, in the block or of the commit, are raised as DatabaseGone.
        """
        connection = self._usable()
        is_durable = is_durable or not writes
        try:
            if not is_durable:
                connection.execute(_NOT_FLUSHED)
            connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            yield connection
            connection.execute("COMMIT")
            if writes and self._lock_seconds != self._limits.lock_seconds:
                self._wait_for_locks(self._limits.lock_seconds)
        except sqlite3.Error as error:
            # Errors of Python's module itself have no code.
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
                self._wait_for_locks(0.0)
            else:
                self.close()
            self._roll_back()
            raise DatabaseGone(self._sentence(error)) from error
        except BaseException:
            self._roll_back()
            raise
        finally:
            if not is_durable:
                self._flush_again()

    def _wait_for_locks(self, seconds: float) -> None:
        """Set how long units wait for a lock. One unit waits for a lock that is held for long; those after it fail at
        once, until one has written."""
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute(f"PRAGMA busy_timeout={round(seconds * 1000)}")
                self._lock_seconds = seconds

    def _flush_again(self) -> None:
        if self._connection is not None:
            try:
                self._connection.execute(_FLUSHED)
            except sqlite3.Error:
                self.close()

    def tend(self) -> None:
        """Copy the WAL into the file as far as readers allow, and lengthen it, so that no call has to. Errors show at
        the next unit."""
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            with contextlib.suppress(DatabaseGone):
                self._reserve_more()

    def follow(self) -> None:
        """See Database: no other process writes."""

    @property
    def has_long_wal(self) -> bool:
        """The WAL is much longer than without a reader that stood in the way of copying it. SQLite uses such a file
        again from its beginning, and never shortens it."""
        return _size_of(self._wal) > self._limits.long_wal_bytes

    def cut_wal(self) -> bool:
        """Copy the whole WAL into the file and cut it to nothing: it still held what was overwritten in the file. False
        while a reader needs it. Raises DatabaseGone."""
        connection = self._usable()
        try:
            connection.execute("PRAGMA busy_timeout=0")
            (is_busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self._wait_for_locks(self._lock_seconds)
        except sqlite3.Error as error:
            self.close()
            raise DatabaseGone(self._sentence(error)) from error
        if not is_busy:
            self._reserved, self.has_old_frames = 0, False
        return not is_busy

    def _reserve_more(self) -> None:
        wanted = self._limits.reserved_pages
        if self._reserved < wanted:
            with self.unit():
                # There is no other writer while this unit is open.
                self._reserved = _reserve(self._wal, wanted)

    @property
    def _wal(self) -> Path:
        return self.path.with_name(f"{self.path.name}-wal")

    def close(self) -> None:
        """Release the file; a transaction that is open is rolled back. The next unit opens the file again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    def _connect(self) -> sqlite3.Connection:
        self._lock_seconds = self._limits.lock_seconds
        return connect(self.path, writes=True, lock_seconds=self._lock_seconds)

    def _usable(self) -> sqlite3.Connection:
        try:
            # A connection to a file that was moved away would go on writing where no later start looks.
            if _identity_of(self.path) != self._identity:
                self.close()
                raise DatabaseGone(f"{self.path}: is not the file any more that was opened at start")
            if self._connection is None:
                self._connection = self._connect()
        except (sqlite3.Error, OSError) as error:
            self.close()
            raise DatabaseGone(self._sentence(error)) from error
        return self._connection

    def _roll_back(self) -> None:
        if self._connection is not None and self._connection.in_transaction:
            try:
                self._connection.execute("ROLLBACK")
            except sqlite3.Error:
                self.close()

    def _sentence(self, error: Exception) -> str:
        why = f"; its volume is full: {_FULL_PAGE}" if _is_full(self.path.parent) else ""
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            files = (self.path, self._wal, self.path.parent)
            others = [one for one in files if os.access(one, os.F_OK) and not _is_writable(one)]
            why = f"; this user may not write {others[0]}" if others else why
        return f"{self.path}: {error.strerror if isinstance(error, OSError) else error}{why}"


def _is_writable(path: Path) -> bool:
    return os.access(path, os.R_OK | os.W_OK, effective_ids=True)


def _is_full(folder: Path) -> bool:
    """True where SQLite can't make the memory that its processes share: it calls that an I/O error of the disk."""
    try:
        volume = os.statvfs(folder)
    except OSError:
        return False
    return volume.f_bavail * volume.f_frsize < _SHARED_BYTES


def _reserve(wal: Path, pages: int) -> int:
    """Lengthen the WAL with zeros, a step towards so many pages; returns the pages that it holds now. SQLite reads it
    up to the first frame whose checksum does not fit.

    Only for speed: where there is no room for it, the WAL grows as it is used.
    """
    with contextlib.suppress(OSError), open(wal, "r+b", buffering=0) as file:
        disk = os.fstatvfs(file.fileno())
        if disk.f_bavail * disk.f_frsize < SPARE_BYTES:
            return pages
        held = max(0, (file.seek(0, os.SEEK_END) - _WAL_HEADER_BYTES) // _FRAME_BYTES)
        wanted = min((held // RESERVED_AT_ONCE + 1) * RESERVED_AT_ONCE, pages)
        missing = _WAL_HEADER_BYTES + wanted * _FRAME_BYTES - file.tell()
        while missing > 0:
            missing -= file.write(bytes(min(missing, 1 << 20)))
        os.fdatasync(file.fileno())
        return max(held, wanted)
    return pages


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _identity_of(path: Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _create(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        # It must not be opened to look at it: closing that descriptor would release SQLite's locks, which are on this
        # file and its -shm.
        return
    os.close(descriptor)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
