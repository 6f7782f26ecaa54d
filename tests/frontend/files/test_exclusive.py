"""Turns at a file that several fronts change."""

import fcntl
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio
import trio.testing
from msgspec.structs import replace

from frontend.files import exclusive
from frontend.files.exclusive import Exclusive, NotChanged
from ipc.process.private_files import write_private
from tests.support.patience import PATIENCE, PATIENT
from tests.support.worker_desk import until

HOLDS = """
import fcntl, os, sys
fcntl.flock(os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def shared(path: Path, lock: Path | None = None, **seconds: float) -> Exclusive:
    return Exclusive(path, lock, replace(PATIENT.files, **seconds))


async def test_changes_of_two_fronts_at_once_lose_none(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("0")
    fronts = [shared(path), shared(path)]

    async def add_one(front: Exclusive) -> None:
        async with front.turn() as turn:
            await turn.replace(str(int(path.read_text()) + 1).encode())

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(add_one, fronts[number % 2])
    assert path.read_text() == "20"
    assert set(os.listdir(tmp_path)) == {"file", "file.lock"}


async def test_a_turn_that_does_not_come_is_given_up_and_comes_later(tmp_path: Path) -> None:
    path = tmp_path / "file"
    other = os.open(tmp_path / "file.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(other, fcntl.LOCK_EX)
    with pytest.raises(NotChanged, match="others have been changing it"):
        async with shared(path, turn_seconds=0.1).turn():
            raise AssertionError("this is nobody's turn")
    os.close(other)
    with trio.fail_after(60):  # the thread that still waited has not kept what it got
        async with shared(path).turn() as turn:
            await turn.replace(b"x")
    assert path.read_bytes() == b"x"


async def test_a_caller_that_stops_waiting_for_a_turn_leaves_no_thread(tmp_path: Path) -> None:
    threads = trio.to_thread.current_default_thread_limiter()
    with turn_of_another_process(tmp_path / "file"):
        for _ in range(5):
            with pytest.raises(NotChanged, match="others have been changing it"):
                async with shared(tmp_path / "file", turn_seconds=0.02).turn():
                    raise AssertionError("this is nobody's turn")
        await until(lambda: not threads.borrowed_tokens)


async def test_tasks_of_one_front_do_not_wait_for_each_other_for_ever(tmp_path: Path, nursery: trio.Nursery) -> None:
    file = shared(tmp_path / "file")

    async def keep(task_status: trio.TaskStatus[None]) -> None:
        async with file.turn():
            task_status.started()
            await trio.sleep_forever()

    await nursery.start(keep)
    file.deadlines = replace(PATIENT.files, turn_seconds=0.05)
    with pytest.raises(NotChanged):
        async with file.turn():
            raise AssertionError("another task has the turn")


async def test_a_write_that_takes_too_long_keeps_the_turn_until_it_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mock_clock: trio.testing.MockClock
) -> None:
    path, disk = tmp_path / "file", threading.Event()
    mock_clock.rate = 1.0

    def slow(path: Path, content: bytes) -> None:
        trio.from_thread.run_sync(mock_clock.jump, PATIENCE)  # the write has begun before its time is over
        disk.wait(120)
        write_private(path, content)

    monkeypatch.setattr(exclusive, "write_private", slow)
    with pytest.raises(NotChanged, match="was not written within"):
        async with shared(path).turn() as turn:
            await turn.replace(b"late")
    with pytest.raises(NotChanged, match="others have been changing it"):
        async with shared(path, turn_seconds=0.05).turn():
            raise AssertionError("the other write would come on top of this one")
    disk.set()
    monkeypatch.undo()
    async with shared(path).turn() as turn:
        assert path.read_bytes() == b"late"
        await turn.replace(b"next")
    assert path.read_bytes() == b"next"


@pytest.mark.parametrize("before", [b"old", None])
async def test_what_is_in_place_and_can_not_be_made_durable_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bytes | None
) -> None:
    path, real = tmp_path / "file", os.fsync
    if before is not None:
        path.write_bytes(before)

    def broken(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(5, "Input/output error")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(NotChanged, match="Input/output error"):
        async with shared(path).turn() as turn:
            await turn.replace(b"new")
    assert (path.read_bytes() if path.exists() else None) == before
    assert set(os.listdir(tmp_path)) == {"file.lock"} | ({"file"} if before else set())


async def test_a_turn_has_one_change(tmp_path: Path) -> None:
    async with shared(tmp_path / "file").turn() as turn:
        await turn.replace(b"1")
        with pytest.raises(NotChanged, match="over"):
            await turn.replace(b"2")
    assert (tmp_path / "file").read_bytes() == b"1"


async def test_what_can_not_be_written_leaves_the_file_as_it_was_and_the_turn_free(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.mkdir()  # nothing can be renamed to it
    for _ in range(2):
        with pytest.raises(NotChanged, match="cannot write it"):
            async with shared(path).turn() as turn:
                await turn.replace(b"x")
    with pytest.raises(NotChanged, match="can't be locked"):
        async with shared(tmp_path / "none" / "file").turn():
            raise AssertionError("there is no such folder")
    assert sorted(os.listdir(tmp_path)) == ["file", "file.lock"]


@contextmanager
def turn_of_another_process(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, f"{path}.lock"], stdout=subprocess.PIPE, stdin=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        try:
            yield process
        finally:
            process.kill()


async def test_a_front_that_is_killed_in_its_turn_leaves_the_turn_to_others(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with turn_of_another_process(path) as other, trio.fail_after(60):
        other.kill()
        (tmp_path / ".file.0123456789abcdef").write_bytes(b"half a change")
        async with shared(path).turn() as turn:
            await turn.replace(b"x")
    assert path.read_bytes() == b"x"
    assert sorted(os.listdir(tmp_path)) == ["file", "file.lock"]


async def test_each_change_shows_by_a_later_time_whatever_the_clock_of_the_disk_says(tmp_path: Path) -> None:
    path, times = tmp_path / "file", []
    for _ in range(5):
        async with shared(path).turn() as turn:
            await turn.replace(b"same")
        times.append(path.stat().st_mtime_ns)
    ahead = times[-1] + 10**12
    os.utime(path, ns=(ahead, ahead))
    async with shared(path).turn() as turn:
        await turn.replace(b"same")
    times += [ahead, path.stat().st_mtime_ns]
    assert times == sorted(set(times))


async def test_a_change_of_another_kind_has_the_turn_too_and_the_lock_may_lie_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    path, lock = folder / "file", tmp_path / "lock"
    path.write_text("0")

    def add_one() -> int:
        path.write_text(str(int(path.read_text()) + 1))
        return int(path.read_text())

    counts = []

    async def change(front: Exclusive) -> None:
        async with front.turn() as turn:
            counts.append(await turn.perform(add_one))
            with pytest.raises(NotChanged, match="the turn is over"):
                await turn.perform(add_one)

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(change, shared(path, lock))
    assert sorted(counts) == list(range(1, 11))
    assert (os.listdir(folder), lock.exists()) == (["file"], True)
