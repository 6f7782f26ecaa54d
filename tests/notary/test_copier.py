"""The copier as the notary forks it: what it holds, that it copies, and that nothing waits for it."""

import errno
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import psutil
import pytest

from ipc.walls.given import Given
from notary.backends.sqlite import CHECKPOINT_PAGES
from notary.copier import start_copier
from notary.reading.source import Source, opened
from supervisor.children.walls import find_walls
from tests.notary.running import NotaryProcess, settings_in
from tests.notary.samples import make_note
from tests.support.asking import Asker
from tests.support.gateway import wait_for
from tests.support.logs import capture_logs
from tests.support.processes import descriptors, is_running, status, title
from tests.support.wal import is_copied, wal_state

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may look into a process that is not dumpable")
BATCH = 200


class Serving:
    """A notary with the walls of this machine, a front, and its copier."""

    def __init__(self, folder: Path) -> None:
        settings = settings_in(folder)
        self.ledger = folder / "ledger.sqlite3"
        self.process = NotaryProcess(msgspec.structs.replace(settings, walls=find_walls(settings)))
        self.process.ready()
        self.front: Asker = self.process.attach("front-a")
        (copier,) = psutil.Process(self.process.process.pid).children()
        self.copier = copier.pid
        wait_for(lambda: title(self.copier) == "gateway: copier", "the copier's name")

    def write(self, events: int) -> None:
        """Have so many events written; all are answered."""
        for number in self.front.send(*[make_note(reason="r" * 900) for _ in range(events)]):
            self.front.answer(number)

    def fill(self) -> None:
        """Write until the log holds more pages than a copier leaves in it, or has been begun anew."""
        most = 0
        while (now := wal_state(self.ledger).written) >= most and now < CHECKPOINT_PAGES + BATCH:
            most = now
            self.write(BATCH)


@contextmanager
def serving(folder: Path) -> Iterator[Serving]:
    made = Serving(folder)
    try:
        yield made
    finally:
        made.front.close()
        if made.process.process.poll() is None:
            made.process.kill()
        made.process.workers.close()


@only_root
def test_the_copier_holds_the_database_and_its_channel_alone_behind_walls(tmp_path: Path) -> None:
    with serving(tmp_path) as notary:
        notary.write(1)
        wait_for(lambda: status(notary.copier, "Seccomp") == "2", "its filter")
        wait_for(lambda: len(descriptors(notary.copier)) == 7, "its connection")
        held = [what for number, what in descriptors(notary.copier).items() if number > 2]
        files = {what for what in held if what.startswith("/")}
        assert files == {f"{notary.ledger}{name}" for name in ("", "-wal", "-shm")}
        assert [what.split(":")[0] for what in held if what not in files] == ["socket"]
        assert (status(notary.copier, "NoNewPrivs"), status(notary.copier, "CapEff")) == ("1", "0" * 16)


@only_root
def test_the_copier_copies_a_long_log_while_the_notary_answers(tmp_path: Path) -> None:
    with serving(tmp_path) as notary:
        notary.fill()
        wait_for(lambda: is_copied(notary.ledger) or wal_state(notary.ledger).written < CHECKPOINT_PAGES, "the copy")
        written = int(Path(f"/proc/{notary.copier}/io").read_text().split("wchar: ")[1].split()[0])
        assert written > 4096 * 100, "by the copier"
        assert notary.process.stop() == 0
        assert not Path(f"{notary.ledger}-wal").exists(), "the notary was the last to close it"
        assert not is_running(notary.copier)


def test_a_copier_that_is_stopped_holds_no_operation_up(tmp_path: Path) -> None:
    with serving(tmp_path) as notary:
        os.kill(notary.copier, signal.SIGSTOP)
        notary.write(BATCH)
        assert notary.process.stop() == 0
        assert not is_running(notary.copier)
    assert not Path(f"{notary.ledger}-wal").exists()
    with opened(Source(str(notary.ledger))) as connection:
        assert connection.execute("SELECT count(*) FROM events").fetchone() == (BATCH,)


def test_a_notary_whose_copier_was_killed_keeps_its_log_bounded(tmp_path: Path) -> None:
    with serving(tmp_path) as notary:
        os.kill(notary.copier, signal.SIGKILL)
        wait_for(lambda: not psutil.pid_exists(notary.copier), "the notary to notice")
        notary.fill()
        assert wal_state(notary.ledger).written < CHECKPOINT_PAGES + BATCH, "a commit has copied it"
        assert notary.process.stop() == 0


def test_a_copier_dies_with_its_notary(tmp_path: Path) -> None:
    with serving(tmp_path) as notary:
        notary.process.kill()
        wait_for(lambda: not is_running(notary.copier), "the copier's end")


def test_a_machine_that_has_no_room_for_a_copier_leaves_the_notary_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses() -> int:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(os, "fork", refuses)
    with capture_logs() as lines:
        assert start_copier(tmp_path / "ledger", Given()) is None
    assert [line["cause"] for line in lines] == ["[Errno 11] Resource temporarily unavailable"]
