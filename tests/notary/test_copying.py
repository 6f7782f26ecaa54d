"""When the write-ahead log is copied, by the copier or by the notary itself; a test plays the copier."""

import os
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from notary.backends.sqlite import CHECKPOINT_PAGES, LEFT_PAGES, FileLimits, SqliteDatabase, connect
from notary.copier import copy
from notary.copying import ANSWER_SECONDS, COPY, DONE, LOOK_SECONDS, PAUSE_SECONDS, CopierProcess, WalCopies
from tests.support.logs import capture_logs
from tests.support.processes import is_running
from tests.support.wal import is_copied, wal_state

SECRET = b"request" * 100
PAGES = 64
"""Of one commit."""


class Played:
    """A notary's database with a copier that the test plays: `ours` is its end of the channel."""

    def __init__(self, folder: Path) -> None:
        self.database = SqliteDatabase(folder / "db", _table, FileLimits(reserved_pages=0))
        self.database.open()
        self.pid = os.posix_spawn("/bin/sleep", ["sleep", "600"], {})
        self.ours, notarys = socket.socketpair()
        self.ours.setblocking(False)
        notarys.setblocking(False)
        self.now = 100.0
        self.copies = WalCopies(self.database, CopierProcess(self.pid, notarys), lambda: self.now)
        assert self.asked() == COPY, "the first request says that the database exists"
        self.answer()

    def asked(self) -> bytes:
        """Requests since the last look."""
        try:
            return self.ours.recv(100)
        except BlockingIOError:
            return b""

    def answer(self, word: bytes = DONE) -> None:
        """Say so, and have the notary hear it."""
        self.ours.send(word)
        self.copies.hear()

    def commit(self, pages: int) -> None:
        """Write so many pages or some more."""
        for _ in range(0, pages, PAGES):
            with self.database.unit(is_durable=False) as connection:
                connection.execute("UPDATE filler SET bytes = randomblob(?)", (PAGES * 4096,))

    def later(self, seconds: float) -> None:
        """The notary's loop goes round."""
        self.now += seconds
        self.copies.tend()


def _table(connection: object) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS filler (bytes BLOB)")  # type: ignore[attr-defined]
    connection.execute("INSERT INTO filler VALUES (zeroblob(1))")  # type: ignore[attr-defined]


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    made = Played(tmp_path)
    yield made
    made.copies.close()
    made.ours.close()
    made.database.close()


def test_the_copier_is_asked_once_the_log_is_long(played: Played) -> None:
    played.later(PAUSE_SECONDS)
    assert played.asked() == b""
    played.commit(CHECKPOINT_PAGES)
    played.later(LOOK_SECONDS)
    assert played.asked() == COPY
    played.later(PAUSE_SECONDS)
    assert played.asked() == b"", "one request at a time"


def test_a_commit_leaves_a_long_log_to_the_copier_up_to_a_bound(played: Played) -> None:
    played.commit(LEFT_PAGES - 2 * PAGES)
    before = wal_state(played.database.path)
    assert (before.written > CHECKPOINT_PAGES, before.copied < PAGES) == (True, True)
    played.commit(4 * PAGES)
    assert wal_state(played.database.path).written < 10 * PAGES, "a commit has copied it, and the next began it anew"


def test_the_notary_copies_what_the_copier_left_even_all_of_it(played: Played) -> None:
    played.commit(CHECKPOINT_PAGES)
    played.later(PAUSE_SECONDS)
    played.answer()  # it has copied nothing
    assert is_copied(played.database.path)
    played.commit(1)
    assert wal_state(played.database.path).written < 3 * PAGES, "the next unit has begun the log anew"


def test_a_log_that_a_reader_needs_is_not_copied_again_at_once(played: Played) -> None:
    played.commit(CHECKPOINT_PAGES)
    played.later(PAUSE_SECONDS)
    assert played.asked() == COPY
    played.now += LOOK_SECONDS
    played.answer()
    played.later(LOOK_SECONDS)
    assert played.asked() == b""
    played.later(PAUSE_SECONDS)
    assert played.asked() == COPY


def test_an_idle_notary_has_the_log_copied(played: Played) -> None:
    played.commit(1)
    played.copies.ask(is_idle=True)
    assert played.asked() == COPY
    played.answer()
    assert is_copied(played.database.path)


@pytest.mark.parametrize("way", ["late", "gone", "unasked", "two words"])
def test_a_copier_that_fails_is_ended_and_commits_copy_the_log_themselves(played: Played, way: str) -> None:
    with capture_logs() as lines:
        if way == "late":
            played.copies.ask(is_idle=False)
            played.later(ANSWER_SECONDS + 1)
        elif way == "gone":
            played.ours.shutdown(socket.SHUT_RDWR)
            played.copies.hear()
        elif way == "unasked":
            played.answer()
        else:
            played.copies.ask(is_idle=False)
            played.answer(2 * DONE)
    (line,) = lines
    assert line["event"].startswith("the notary copies its write-ahead log itself")
    assert line["cause"].startswith("copier: ")
    assert played.copies.patience() == float("inf")
    os.waitid(os.P_PID, played.pid, os.WEXITED | os.WNOWAIT)
    played.later(0)
    assert not is_running(played.pid)
    played.commit(CHECKPOINT_PAGES + 4 * PAGES)
    assert wal_state(played.database.path).written < 10 * PAGES, "a commit has copied it, and the next began it anew"
    played.copies.ask(is_idle=True)
    assert is_copied(played.database.path), "an idle notary copies it, too"


def test_a_connection_that_is_opened_again_leaves_the_log_to_the_copier_as_well(played: Played) -> None:
    played.database.close()
    played.commit(CHECKPOINT_PAGES + PAGES)
    state = wal_state(played.database.path)
    assert (state.written > CHECKPOINT_PAGES, state.copied < PAGES) == (True, True)


def test_a_notary_that_ends_takes_its_copier_along(played: Played) -> None:
    assert is_running(played.pid)
    played.copies.close()
    assert not is_running(played.pid)


def test_what_was_erased_leaves_the_log_although_a_copier_has_the_file_open(played: Played) -> None:
    path = played.database.path
    with closing(connect(path, writes=True)) as copier:
        with played.database.unit() as connection:
            connection.execute("UPDATE filler SET bytes = ?", (SECRET,))
        copy(copier)
        assert is_copied(path)
        with played.database.unit() as connection:
            connection.execute("UPDATE filler SET bytes = zeroblob(1000)")
        copy(copier)
        assert played.database.cut_wal()
    assert not [name for name in ("", "-wal") if SECRET in Path(f"{path}{name}").read_bytes()]
