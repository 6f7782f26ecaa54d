"""Identifiers are UUIDs of version 7 that only grow and cannot be guessed."""

import os
import re
import threading
import time
import uuid

import pytest

from ipc.texts import identifiers
from ipc.texts.identifiers import new


def value(identifier: str) -> int:
    return uuid.UUID(identifier.partition("_")[2]).int


def drawn(sequence: identifiers._Sequence) -> int:
    first, last = sequence.next()
    return first << 64 | last


def test_an_identifier_is_its_prefix_and_a_uuid_of_version_7_of_now() -> None:
    before = time.time_ns() // 1_000_000
    text = new("ses_")
    after = time.time_ns() // 1_000_000
    assert re.fullmatch(r"ses_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", text)
    identifier = uuid.UUID(text[4:])
    assert identifier.version == 7
    assert identifier.variant == uuid.RFC_4122
    # Other tests may have drawn so many that the counter ran into the time a little.
    assert before <= identifier.int >> 80 <= after + 50


def test_each_one_is_greater_than_all_before_as_number_and_as_text() -> None:
    made = [new("evt_") for _ in range(50_000)]
    assert made == sorted(set(made))


def test_they_keep_growing_when_the_wall_clock_steps_back(monkeypatch: pytest.MonkeyPatch) -> None:
    sequence = identifiers._Sequence()
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now)
    first = drawn(sequence)
    monkeypatch.setattr(time, "time_ns", lambda: now - 3_600_000_000_000)
    later = [drawn(sequence) for _ in range(10_000)]
    assert [first, *later] == sorted({first, *later})
    monkeypatch.setattr(time, "time_ns", lambda: now + 60_000_000_000)
    assert drawn(sequence) >> 80 == (now + 60_000_000_000) // 1_000_000


def test_a_full_counter_carries_into_the_time_and_leaves_version_and_variant_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_763_726_400_000_000_000)
    sequence = identifiers._Sequence()
    made = [uuid.UUID(int=drawn(sequence)) for _ in range(9_000)]
    assert [one.int for one in made] == sorted({one.int for one in made})
    assert {one.version for one in made} == {7}
    assert {one.variant for one in made} == {uuid.RFC_4122}
    assert made[-1].int >> 80 > made[0].int >> 80


def test_the_last_62_bits_are_all_random() -> None:
    tails = [value(new("x_")) & ((1 << 62) - 1) for _ in range(4_000)]
    assert len(set(tails)) == len(tails)
    for bit in range(62):
        ones = sum(tail >> bit & 1 for tail in tails)
        assert 1_700 < ones < 2_300, f"bit {bit}"


def test_threads_never_get_the_same_one() -> None:
    made: list[list[str]] = [[] for _ in range(4)]

    def draw(into: list[str]) -> None:
        into.extend(new("t_") for _ in range(5_000))

    threads = [threading.Thread(target=draw, args=(into,)) for into in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len({one for part in made for one in part}) == 20_000
    assert all(part == sorted(part) for part in made)


def test_a_forked_copy_draws_other_random_bits() -> None:
    new("x_")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, new("x_").encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        theirs = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    assert value(theirs) & ((1 << 62) - 1) != value(new("x_")) & ((1 << 62) - 1)
