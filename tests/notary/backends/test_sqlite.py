"""One SQLite file, in good and in bad days."""

import contextlib
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from notary.backends import sqlite
from notary.backends.sqlite import FileLimits, SqliteDatabase
from notary.database import DatabaseGone
from tests.notary.backends.children import table
from tests.notary.running import ROOT, execute


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteDatabase]:
    opened = SqliteDatabase(tmp_path / "a file?.sqlite3", table, FileLimits(lock_seconds=0.05, reserved_pages=0))
    opened.open()
    yield opened
    opened.close()


def said_by(role: str, path: Path) -> list[str]:
    """The output of a role of children.py."""
    command = [sys.executable, "-m", "tests.notary.backends.children", role, str(path)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=120, check=False)
    return done.stdout.splitlines()


def put(database: SqliteDatabase, name: str) -> None:
    with database.unit() as connection:
        connection.execute("INSERT INTO things VALUES (?, ?)", (name, b"x" * 3000))


def names(database: SqliteDatabase) -> list[str]:
    with database.unit(writes=False) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM things ORDER BY name")]


def flushed(database: SqliteDatabase, **how: bool) -> bool:
    """Whether a unit like this one is flushed to the disk with its commit."""
    with database.unit(**how) as connection:
        return bool(connection.execute("PRAGMA synchronous").fetchone() == (2,))


def test_only_what_may_be_lost_with_the_machine_goes_without_a_flush_and_only_itself(database: SqliteDatabase) -> None:
    assert not flushed(database, is_durable=False)
    assert flushed(database)
    with pytest.raises(ZeroDivisionError), database.unit(is_durable=False):
        raise ZeroDivisionError
    assert flushed(database, writes=False)
    with pytest.raises(DatabaseGone), database.unit(is_durable=False) as connection:
        connection.execute("INSERT INTO nowhere VALUES (1)")
    assert flushed(database)
    assert flushed(database, writes=False, is_durable=False), "there is nothing to flush"


def test_a_wal_is_cut_to_nothing_unless_a_reader_needs_it_and_then_lengthened_again(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "db", table, FileLimits(reserved_pages=400))
    database.open()
    wal = tmp_path / "db-wal"
    whole = wal.stat().st_size
    assert not database.has_old_frames, "it was not there"
    put(database, "a")
    with closing(sqlite3.connect(database.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM things").fetchall()
        put(database, "b")
        assert not database.cut_wal()
        assert wal.stat().st_size >= whole
        reader.execute("ROLLBACK")
    assert database.cut_wal()
    assert wal.stat().st_size == 0
    database.tend()
    assert wal.stat().st_size == whole
    assert names(database) == ["a", "b"]
    with closing(sqlite3.connect(database.path)) as reader:  # so that the end of the first leaves the WAL
        reader.execute("SELECT * FROM things").fetchall()
        database.close()
        following = SqliteDatabase(tmp_path / "db", table, FileLimits(reserved_pages=0))
        following.open()
        assert following.has_old_frames
    assert following.cut_wal()
    assert not following.has_old_frames
    following.close()


def test_where_the_disk_is_nearly_full_no_room_is_taken_beforehand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "SPARE_BYTES", 1 << 62)
    database = SqliteDatabase(tmp_path / "db", table, FileLimits(reserved_pages=4500))
    database.open()
    put(database, "a")
    database.tend()
    put(database, "b")
    assert names(database) == ["a", "b"]
    assert (tmp_path / "db-wal").stat().st_size < 100_000
    database.close()


def test_room_that_can_not_be_taken_is_not_asked_for_again(tmp_path: Path) -> None:
    assert sqlite._reserve(tmp_path / "not there", 500) == 500


def test_its_files_are_for_their_owner_alone(database: SqliteDatabase) -> None:
    put(database, "a")
    modes = {path.suffix: stat.S_IMODE(path.stat().st_mode) for path in database.path.parent.iterdir()}
    assert modes == {".sqlite3": 0o600, ".sqlite3-wal": 0o600, ".sqlite3-shm": 0o600}


def test_a_wal_that_was_lengthened_beforehand_is_read_as_far_as_it_was_written(tmp_path: Path) -> None:
    limits = FileLimits(reserved_pages=1000)
    first, second = SqliteDatabase(tmp_path / "db", table, limits), SqliteDatabase(tmp_path / "db", table, limits)
    first.open()
    wal = tmp_path / "db-wal"
    sizes = [wal.stat().st_size]
    put(first, "a")
    second.open()
    put(second, "b")
    assert names(first) == ["a", "b"]
    for _ in range(3):  # each time that there is nothing else to do
        sizes.append(wal.stat().st_size)
        first.tend()
    assert sizes == [32 + pages * (24 + 4096) for pages in (300, 600, 900, 1000)]
    assert names(second) == ["a", "b"]
    # As it lies there after a crash: another process finds what was committed, and goes on behind it.
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("db", "db-wal"):
        shutil.copy(tmp_path / name, copy / name)
    third = SqliteDatabase(copy / "db", table, limits)
    third.open()
    put(third, "c")
    assert names(third) == ["a", "b", "c"]
    for database in (first, second, third):
        database.close()


def test_a_unit_that_raises_leaves_nothing(database: SqliteDatabase) -> None:
    put(database, "a")
    with pytest.raises(ZeroDivisionError), database.unit() as connection:
        connection.execute("INSERT INTO things VALUES ('b', NULL)")
        raise ZeroDivisionError
    assert names(database) == ["a"]


def test_an_sql_error_leaves_nothing_and_the_next_unit_works(database: SqliteDatabase) -> None:
    put(database, "a")
    with pytest.raises(DatabaseGone), database.unit() as connection:
        connection.execute("INSERT INTO things VALUES ('b', NULL)")
        connection.execute("INSERT INTO things VALUES ('a', NULL)")
    put(database, "c")
    assert names(database) == ["a", "c"]


def test_a_value_that_sqlite_does_not_take_leaves_nothing_and_keeps_no_lock(database: SqliteDatabase) -> None:
    """An error of Python's module, not of SQLite: it has no code."""
    with pytest.raises(DatabaseGone, match="not supported"), database.unit() as connection:
        connection.execute("INSERT INTO things VALUES ('a', 'x')")
        connection.execute("SELECT ?", (object(),))
    put(database, "b")
    assert names(database) == ["b"]


def test_a_stranger_that_keeps_the_lock_costs_a_bounded_wait(database: SqliteDatabase) -> None:
    with closing(sqlite3.connect(database.path, isolation_level=None)) as stranger:
        stranger.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseGone, match="locked"):  # and not never
            put(database, "a")
        assert names(database) == []
        stranger.execute("ROLLBACK")
    put(database, "b")
    assert names(database) == ["b"]


def patience(database: SqliteDatabase) -> int:
    """Milliseconds for which a unit waits for the lock."""
    with database.unit(writes=False) as connection:
        return int(connection.execute("PRAGMA busy_timeout").fetchone()[0])


def test_a_lock_that_is_kept_is_waited_for_once_until_something_was_written(database: SqliteDatabase) -> None:
    with closing(sqlite3.connect(database.path, isolation_level=None)) as stranger:
        assert patience(database) == 50
        stranger.execute("BEGIN IMMEDIATE")
        for _ in range(2):
            with pytest.raises(DatabaseGone, match="locked"):
                put(database, "a")
            assert patience(database) == 0, "and what only reads makes nobody wait again"
        assert database.cut_wal() is False
        assert patience(database) == 0
        stranger.execute("ROLLBACK")
    put(database, "b")
    assert (names(database), patience(database)) == (["b"], 50)


def test_a_database_that_may_not_grow_fails_whole_and_goes_on_when_it_may(database: SqliteDatabase) -> None:
    put(database, "a")
    with database.unit() as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(DatabaseGone, match="full"), database.unit() as connection:
        for number in range(10):
            connection.execute("INSERT INTO things VALUES (?, ?)", (f"n{number}", b"x" * 3000))
    # The failure has closed the connection, and the limit was its own.
    put(database, "b")
    assert names(database) == ["a", "b"]


def test_a_disk_without_room_fails_whole_and_is_used_again_when_it_has_room(tmp_path: Path) -> None:
    first, full, *after = said_by("fill_disk", tmp_path / "db")
    assert (first, full[:6], after) == ("written", "gone: ", ["written", "kept exactly what was written: True"])


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    path = folder / "db"
    execute(path, "CREATE TABLE things (name)")
    path.chmod(0o444)
    folder.chmod(0o555)
    for parent in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        parent.chmod(0o755)
    (said,) = said_by("write_read_only", path)
    assert said.startswith("gone: ")
    folder.chmod(0o755)


@pytest.mark.parametrize("content", [b"not a database, but longer than a header would be" * 10, b"\x00" * 5000])
def test_a_file_that_is_no_database_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "db"
    path.write_bytes(content)
    with pytest.raises(DatabaseGone):
        SqliteDatabase(path, table).open()
    assert path.read_bytes() == content


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatabaseGone, match="No such file"):
        SqliteDatabase(tmp_path / "none" / "db", table).open()


def test_a_file_that_was_taken_away_is_never_made_again(database: SqliteDatabase) -> None:
    put(database, "a")
    database.path.unlink()
    for _ in range(2):
        with pytest.raises(DatabaseGone, match="No such file"):
            put(database, "b")
    assert not database.path.exists()


def test_a_file_that_was_exchanged_is_not_used(database: SqliteDatabase, tmp_path: Path) -> None:
    put(database, "a")
    other = SqliteDatabase(tmp_path / "other", table)
    other.open()
    other.close()
    os.replace(other.path, database.path)
    with pytest.raises(DatabaseGone, match="not the file any more"):
        put(database, "b")


def test_damage_is_a_failure_and_not_an_answer(database: SqliteDatabase) -> None:
    for number in range(200):
        put(database, f"n{number:04}")
    database.close()
    with open(database.path, "r+b") as file:
        file.seek(4096)
        file.write(os.urandom(4096 * 50))
    with pytest.raises(DatabaseGone, match=r"malformed|not a database"):
        names(database)


def test_a_file_that_belongs_to_another_user_is_told_as_that() -> None:
    """As after a restore by root: SQLite says no more than that it can't open the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "db"
        database = SqliteDatabase(path, table, FileLimits(reserved_pages=0))
        database.open()
        database.close()
        Path(folder).chmod(0o755)
        path.chmod(0)
        is_root = os.geteuid() == 0
        if is_root:
            os.seteuid(65534)
        try:
            with pytest.raises(DatabaseGone, match=f"unable to open database file; this user may not write {path}"):
                SqliteDatabase(path, table, FileLimits(reserved_pages=0)).open()
        finally:
            if is_root:
                os.seteuid(0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_a_full_volume_is_told_as_what_it_is_also_where_sqlite_says_that_the_disk_failed(tmp_path: Path) -> None:
    """At an open SQLite can't make the memory that its processes share, and calls that an I/O error of the disk."""
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "test", str(tmp_path)], check=False).returncode != 0:
        pytest.skip("no mount here")
    try:
        first = SqliteDatabase(tmp_path / "db", table, FileLimits(reserved_pages=0))
        first.open()
        first.close()
        with contextlib.suppress(OSError), (tmp_path / "ballast").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        with pytest.raises(DatabaseGone, match=r"disk I/O error; its volume is full: docs/runbooks/full-disk\.md"):
            SqliteDatabase(tmp_path / "db", table, FileLimits(reserved_pages=0)).open()
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=False)
