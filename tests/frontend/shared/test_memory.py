"""The memory that fronts share: flags that all see, locks that end with their holder, and a start that is reported
once."""

import mmap
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from frontend.limits.rates import PER_SECOND, Rates, SessionRates, TooMuch
from frontend.limits.sessions import SessionTable
from frontend.shared.memory import MemoryLocked, SharedMemory
from frontend.telemetry.present import Presence, Present
from ipc.channel import front_memory as at
from ipc.channel.front_memory import Layout, make_memory
from tests.support.shared import WIDTH, views

ROOT = Path(__file__).resolve().parents[3]
TAKES = """
import sys
from frontend.limits.bucket import SharedBucket
from frontend.shared.memory import SharedMemory
from ipc.channel.front_memory import BUCKETS, Layout
memory = SharedMemory(int(sys.argv[1]), Layout(2, 8192), int(sys.argv[2]))
bucket = SharedBucket(1, 10_000, lambda: 1.0, cells=memory.part(BUCKETS, 64), lock=memory.lock(BUCKETS))
print("ready", flush=True)
sys.stdin.readline()
print(sum(bucket.take("one") is None for _ in range(20_000)))
"""
HOLDS = """
import fcntl, sys
fcntl.lockf(int(sys.argv[1]), fcntl.LOCK_EX)
print("ready", flush=True)
sys.stdin.readline()
"""
"""All locks."""
TRIES = """
import fcntl, sys
try:
    fcntl.lockf(int(sys.argv[1]), fcntl.LOCK_EX | fcntl.LOCK_NB)
    print("free")
except BlockingIOError:
    print("held")
"""


def process(script: str, descriptor: int, number: int = 2) -> "subprocess.Popen[str]":
    """A front of its own, as far as the memory goes; returned once it is ready."""
    started = subprocess.Popen(
        [sys.executable, "-c", script, str(descriptor), str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True, pass_fds=(descriptor,), cwd=ROOT,
    )  # fmt: skip
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    return started


def test_draining_is_told_once_and_seen_by_all() -> None:
    first, second = views()
    assert (first.is_draining, second.is_draining) == (False, False)
    assert (first.drain(), second.drain()) == (False, True)
    assert (first.is_draining, second.is_draining) == (True, True)


def test_of_several_fronts_one_tells_the_start_and_the_others_wait_for_it() -> None:
    first, second = views()
    assert (first.claims_start(), second.claims_start()) == (True, None)
    first.told_start(is_told=False)
    assert second.claims_start() is True, "a start that could not be told is another's to tell"
    second.told_start(is_told=True)
    assert (first.claims_start(), second.claims_start()) == (False, False)


def test_the_last_to_leave_knows_that_it_is() -> None:
    fronts = views(3)
    for front in fronts[:2]:
        front.begin_serving()
    assert [front.end_serving() for front in fronts[:2]] == [False, True]


def test_a_change_of_policy_is_counted_and_named_for_all() -> None:
    first, second = views()
    first.note_policy("a" * 64)
    assert (second.policy_changes, second.policy_digest()) == (0, "a" * 64)
    assert first.change_policy("b" * 64) == 1
    assert (second.policy_changes, second.policy_digest()) == (1, "b" * 64)


def test_two_processes_take_exactly_what_a_bucket_holds() -> None:
    descriptor = make_memory(Layout(2, WIDTH))
    takers = [process(TAKES, descriptor, number) for number in (1, 2)]
    for taker in takers:
        assert taker.stdin is not None
        taker.stdin.write("go\n")
        taker.stdin.flush()
    taken = [int(taker.communicate()[0]) for taker in takers]
    assert sum(taken) == 10_000


def test_a_lock_of_one_front_keeps_the_others_out() -> None:
    descriptor = make_memory(Layout(2, WIDTH))
    tries = [sys.executable, "-c", TRIES, str(descriptor)]
    with SharedMemory(descriptor, Layout(2, WIDTH), 1).lock(64):
        assert subprocess.check_output(tries, text=True, pass_fds=(descriptor,)) == "held\n"
    assert subprocess.check_output(tries, text=True, pass_fds=(descriptor,)) == "free\n"


def test_a_lock_ends_with_the_front_that_holds_it() -> None:
    descriptor = make_memory(Layout(2, WIDTH))
    holder = process(HOLDS, descriptor)
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    with SharedMemory(descriptor, Layout(2, WIDTH), 1).lock(64):
        pass


def test_a_front_that_holds_a_lock_and_stands_still_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    descriptor, pauses = make_memory(Layout(2, WIDTH)), list[float]()
    monkeypatch.setattr(time, "sleep", pauses.append)
    with process(HOLDS, descriptor) as holder:
        memory = SharedMemory(descriptor, Layout(2, WIDTH), 1)
        for causes in (1, 0):
            with pytest.raises(MemoryLocked) as refused, memory.lock(at.BUCKETS):
                pytest.fail("it has the lock")
            assert (refused.value.code, bool(refused.value.cause)) == ("overloaded", causes)
            assert 0.5 < sum(pauses) < 5
        holder.kill()
    with memory.lock(at.BUCKETS):
        pass
    with process(HOLDS, descriptor) as holder:
        with pytest.raises(MemoryLocked, match="overloaded"), memory.lock(at.BUCKETS):
            pytest.fail("it has the lock")
        assert 1 < sum(pauses) < 10
        holder.kill()


def test_a_locked_session_is_refused_and_costs_nothing_more() -> None:
    descriptor = make_memory(Layout(2, WIDTH))
    with process(HOLDS, descriptor) as holder:
        memory = SharedMemory(descriptor, Layout(2, WIDTH), 1)
        sessions = SessionRates(5, sessions=SessionTable(memory))
        with pytest.raises(TooMuch, match="overloaded"):
            sessions.take("ses_1")
        assert sessions.refused("ses_1") is None
        sessions.give_back("ses_1")
        with pytest.raises(MemoryLocked):
            Rates(memory=memory).take("write", "ann")
        presence = Presence(memory)
        presence.tell(Present())
        assert presence.others() == {}
        holder.kill()
    sessions.take("ses_1")


def test_a_front_that_stands_still_in_a_lock_keeps_no_other_from_draining_following_a_policy_or_stopping(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    descriptor, told = make_memory(Layout(2, WIDTH)), list[object]()
    memory = SharedMemory(descriptor, Layout(2, WIDTH), 1)

    def lives() -> None:
        told.extend([memory.claims_start(), memory.drain(), memory.drain(), memory.end_serving()])
        memory.note_policy("a" * 64)
        told.extend([memory.policy_digest(), memory.change_policy("b" * 64), memory.policy_digest()])
        memory.note_manifests("c" * 64)
        told.append(memory.manifests_digest())

    with process(HOLDS, descriptor) as holder:
        holder.send_signal(signal.SIGSTOP)
        living = threading.Thread(target=lives, daemon=True)
        living.start()
        living.join(30)
        is_over = not living.is_alive()
        holder.kill()
    assert is_over
    assert told == [None, False, True, True, "a" * 64, 1, "b" * 64, "c" * 64]
    assert capfd.readouterr().err.count("this front goes on without a lock") == 3
    assert memory.claims_start() is True


def test_nobody_can_make_the_memory_smaller_or_larger() -> None:
    descriptor = make_memory(Layout(1, WIDTH))
    for size in (0, 1 << 30):
        with pytest.raises(PermissionError):
            os.ftruncate(descriptor, size)
    os.close(descriptor)


def test_parts_do_not_overlap_and_fill_the_memory() -> None:
    layout = Layout(3, WIDTH)
    ends = [at.AREAS]
    for number in (1, 2, 3):
        area = layout.area(number)
        parts = [area.start, area.owners, area.now, area.numbers, area.names, area.names + at.NAMES_BYTES]
        assert parts == sorted(parts)
        assert area.start == ends[-1]
        assert area.owners + at.OWNER_ROWS * WIDTH * at.OWNER_BYTES <= area.start + layout.held_bytes == area.now
        ends.append(parts[-1])
    assert ends[-1] == layout.size
    assert at.BUCKETS + len(PER_SECOND) * at.BUCKET_BYTES <= at.SESSIONS
    assert layout.size % mmap.PAGESIZE == 0
