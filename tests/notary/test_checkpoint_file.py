"""The file of checkpoints: what is written is durable and whole, which note is the newest, and what is kept."""

import json
from pathlib import Path

import pytest

from notary import checkpoint_file
from notary.checkpoint_file import KEPT_WHOLE_BYTES, append, newest

NOW = "2026-11-23T05:00:00.000Z"


def note(size: object, more: str = "") -> str:
    return f"gate.example\n{size}\nroot\ntime={NOW} unresolved=0\n\n— gate.example sig\n{more}"


def line(text: str, time: str = NOW) -> bytes:
    return json.dumps({"time": time, "note": text}, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints"


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Folders that were flushed."""
    folders: list[Path] = []
    monkeypatch.setattr(checkpoint_file, "sync_folder", folders.append)
    return folders


def test_a_new_file_is_its_owners_and_its_name_is_durable_too(path: Path, synced: list[Path]) -> None:
    append(path, NOW, note(1))
    assert (path.stat().st_mode & 0o777, synced) == (0o600, [path.parent])
    append(path, NOW, note(2))
    assert path.read_bytes() == line(note(1)) + line(note(2))
    assert synced == [path.parent], "the name was durable already"


@pytest.mark.parametrize("torn", [b"{", b"{}\n{", b'{"time":"', b"\n"])
def test_a_half_written_line_of_a_crash_swallows_no_later_line(path: Path, torn: bytes) -> None:
    path.write_bytes(torn)
    append(path, NOW, note(1))
    assert path.read_bytes() == torn + (b"" if torn.endswith(b"\n") else b"\n") + line(note(1))
    assert newest(path) == note(1)


def test_the_newest_note_is_the_largest_and_of_two_the_later_one(path: Path) -> None:
    assert newest(path) is None
    path.write_bytes(b"\n{}\n")
    assert newest(path) is None
    for one in (note(9), note(10), note(10, "— witness sig\n"), note(9, "— witness sig\n")):
        append(path, NOW, one)
    assert newest(path) == note(10, "— witness sig\n")


@pytest.mark.parametrize("size", ["", "x", "-1", "1" + "0" * 19, "\u0663", "1.0"])
def test_a_note_that_says_no_size_is_not_passed_over(path: Path, size: str) -> None:
    for one in (note(10**18), note(size), note(3)):
        append(path, NOW, one)
    assert newest(path) == note(size)
    append(path, NOW, "no note at all")
    assert newest(path) == "no note at all"


def test_a_long_file_is_read_from_its_end(path: Path) -> None:
    path.write_bytes(b"".join(line(note(number, "x" * 1000)) for number in range(200)))
    append(path, NOW, note(1000))
    assert newest(path) == note(1000)


@pytest.mark.parametrize("cosigned", [0, 3, 11])
def test_the_most_signed_checkpoint_of_each_old_hour_and_all_recent_ones_stay(path: Path, cosigned: int) -> None:
    early = [
        [line(note(number, "— witness sig\n" * (number == cosigned)), f"2026-11-01T{hour:02}:{number * 5:02}:00.000Z")
         for number in range(12)]
        for hour in range(2)
    ]  # fmt: skip
    late = [line(note(number, "x" * 3000), f"2026-11-01T02:00:00.{number:03}Z") for number in range(400)]
    path.write_bytes(b"".join([*early[0], *early[1], *late]))
    append(path, NOW, note(480), max_bytes=KEPT_WHOLE_BYTES)
    kept = path.read_bytes()
    begin = early[0][cosigned] + early[1][cosigned] + late[0]
    assert kept.startswith(begin)
    rest = kept.removeprefix(begin)
    assert (b"".join(late) + line(note(480))).endswith(rest)
    assert KEPT_WHOLE_BYTES <= len(rest) < KEPT_WHOLE_BYTES + len(late[-1])
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_of_years_stays_bounded_and_is_not_written_anew_for_each_checkpoint(path: Path) -> None:
    days = [f"{year}-{month:02}-{day:02}" for year in (2026, 2027) for month in range(1, 13) for day in range(1, 29)]
    hours = [(day, hour) for day in days for hour in range(24)]
    early = [line(note(number, "x" * 200), f"{day}T{hour:02}:00:00.000Z") for number, (day, hour) in enumerate(hours)]
    path.write_bytes(b"".join(early))
    bound = 2 * KEPT_WHOLE_BYTES
    assert path.stat().st_size > 2 * bound
    append(path, NOW, note(90_000), max_bytes=bound)
    thinned = path.stat()
    assert thinned.st_size <= bound
    assert path.read_bytes().startswith(early[0] + early[24] + early[48]), "one of each day"
    append(path, NOW, note(90_001), max_bytes=bound)
    assert path.stat().st_ino == thinned.st_ino
    assert newest(path) == note(90_001)
