"""The file of checkpoints beside the database: what a ledger that is put back, cut or rewritten does not fit.

One JSON object a line, `{"note": …}`, each durable before it counts. A line that a crash left half written is the last
one, and no checkpoint. A checkpoint that was cosigned has one more line then, which may follow those of newer ones. The
file is bounded: of long ago it keeps one checkpoint an hour, that with the most signatures, or where those are too many
one a day, a month or a year.
"""

import errno
import os
from collections.abc import Iterable, Iterator
from math import inf
from pathlib import Path
from typing import Final

import msgspec

from ipc.process.private_files import sync_folder, write_whole
from notary.tree.checkpoint import MARK

FILE_NAME: Final = "checkpoints"
MAX_BYTES: Final = 8 << 20
KEPT_WHOLE_BYTES: Final = 1 << 20
"""From the end: this much stays as it is when the rest is thinned."""
_TAIL_BYTES: Final = 1 << 16
_SPANS: Final = (len("2026-11-23T05"), len("2026-11-23"), len("2026-11"), len("2026"))
"""Characters of a time that say its hour, its day, its month and its year."""


class CheckpointLine(msgspec.Struct):
    """One line."""

    time: str
    note: str


_decode = msgspec.json.Decoder(CheckpointLine).decode
_encode = msgspec.json.Encoder().encode


def append(path: Path, time: str, note: str, *, max_bytes: int = MAX_BYTES) -> None:
    """Add a checkpoint, durably. Raises OSError, KeyFileError."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        # A line that a crash left half written must not swallow the next one.
        is_torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        data = (b"\n" if is_torn else b"") + _encode(CheckpointLine(time, note)) + b"\n"
        if os.write(descriptor, data) != len(data):
            # A full disk: the part is taken back, which needs no room.
            os.ftruncate(descriptor, size)
            raise OSError(errno.ENOSPC, "the line was written in part")
        os.fdatasync(descriptor)
    finally:
        os.close(descriptor)
    if size == 0:
        sync_folder(path.parent)
    if size > max_bytes:
        write_whole(path, _thinned(path.read_bytes(), max_bytes // 2), mode=0o600)


def newest(path: Path) -> str | None:
    """The newest note; None when there is no file, or no whole line in it. Raises OSError."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            notes = [line.note for line in _lines_of(file.read())]
    except FileNotFoundError:
        return None
    # The last one of its size has all its cosignatures.
    return max(reversed(notes), key=_size_in, default=None)


def _size_in(note: str) -> float:
    """SECURITY: a note that says no size counts as beyond all others, so that the caller meets it and refuses."""
    size = (*note.split("\n", 2), "")[1]
    return int(size) if size.isascii() and size.isdigit() and len(size) < 20 else inf


def _lines_of(data: bytes) -> Iterator[CheckpointLine]:
    """The readable lines: those that are whole."""
    for line in data.split(b"\n"):
        try:
            yield _decode(line)
        except msgspec.MsgspecError:
            continue


def _thinned(data: bytes, most: int) -> bytes:
    """The lines to keep: of long ago at most `most` bytes, so that the next thinning is not due at once."""
    cut = data.rfind(b"\n", 0, max(0, len(data) - KEPT_WHOLE_BYTES)) + 1
    kept, early = list(_lines_of(data[:cut])), b""
    for length in _SPANS:
        kept = _one_each(kept, length)
        early = _joined(kept)
        if len(early) <= most:
            break
    return early + data[cut:]


def _one_each(lines: Iterable[CheckpointLine], length: int) -> list[CheckpointLine]:
    """One of the lines whose times begin with the same so many characters: that with the most signatures."""
    spans: dict[str, CheckpointLine] = {}
    for line in lines:
        before = spans.setdefault(line.time[:length], line)
        if line.note.count(MARK) > before.note.count(MARK):
            spans[line.time[:length]] = line
    return list(spans.values())


def _joined(lines: Iterable[CheckpointLine]) -> bytes:
    return b"".join(_encode(line) + b"\n" for line in lines)
