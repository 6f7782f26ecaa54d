"""Checkpoints as texts (C2SP tlog-checkpoint), and notes taken apart (C2SP signed-note). Knows no key.

A note is a text, an empty line, and a line for each signature. The text of a checkpoint names the log (origin), its
size and its root; one extension line tells the time and how many intents were unresolved then.
"""

import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from typing import Final, NamedTuple

import msgspec

from ipc.keys.verifier_keys import ID_BYTES, NAME
from notary.tree.merkle import HASH_BYTES

MAX_NOTE: Final = 16_384
MARK: Final = "\N{EM DASH} "
"""The beginning of a signature line."""
_EXTENSION = re.compile(r"time=(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) unresolved=(0|[1-9]\d{0,15})", re.ASCII)
_SIZE = re.compile(r"0|[1-9]\d{0,17}", re.ASCII)


class NoteRefused(ValueError):
    """The text is no note, has no signature by a known key, or is no checkpoint. The message says which."""


class Checkpoint(msgspec.Struct, frozen=True):
    """The contents of a note of this log."""

    origin: str
    size: int
    root: bytes
    time: str
    """UTC, milliseconds, `Z`."""
    unresolved: int
    """Intents without an end, when it was signed."""

    @property
    def text(self) -> str:
        """The signed text."""
        root = b64encode(self.root).decode()
        return f"{self.origin}\n{self.size}\n{root}\ntime={self.time} unresolved={self.unresolved}\n"

    @classmethod
    def parse(cls, text: str) -> "Checkpoint":
        """Raises NoteRefused."""
        head, extension = tree_head(text)
        told = _EXTENSION.fullmatch(extension.removesuffix("\n"))
        if told is None:
            raise NoteRefused("the note is no checkpoint of a gateway: its fourth line must be its time")
        return cls(head.origin, head.size, head.root, told[1], int(told[2]))


class TreeHead(NamedTuple):
    """The contents of a checkpoint of any log (C2SP tlog-checkpoint)."""

    origin: str
    size: int
    root: bytes


def tree_head(text: str) -> tuple[TreeHead, str]:
    """Parse a checkpoint's text; also return its extension lines. Raises NoteRefused."""
    origin, size, root, extension = (*text.split("\n", 3), "", "", "", "")[:4]
    if not text.endswith("\n") or not NAME.fullmatch(origin) or not _SIZE.fullmatch(size):
        raise NoteRefused("the note is no checkpoint: origin or size make no sense")
    return TreeHead(origin, int(size), decoded(root, HASH_BYTES)), extension


def parted(note: str) -> tuple[str, list[tuple[str, bytes, bytes]]]:
    """The text of a note, and (name, key id, signature) of each of its signature lines. Raises NoteRefused."""
    text, is_there, lines = note.rpartition("\n\n")
    if len(note) > MAX_NOTE or not is_there or not lines.endswith("\n") or any(c < " " and c != "\n" for c in note):
        raise NoteRefused("it is no signed note")
    return text + "\n", [signature_of(line) for line in lines[:-1].split("\n")]


def signature_of(line: str) -> tuple[str, bytes, bytes]:
    """(name, key id, signature) of a signature line. Raises NoteRefused."""
    name, _, encoded = line.removeprefix(MARK).partition(" ")
    if not line.startswith(MARK) or not NAME.fullmatch(name):
        raise NoteRefused("a signature line of the note makes no sense")
    identified = decoded(encoded)
    if len(identified) <= ID_BYTES:
        raise NoteRefused("a signature line of the note makes no sense")
    return name, identified[:ID_BYTES], identified[ID_BYTES:]


def decoded(text: str, length: int | None = None) -> bytes:
    """The bytes of base64 in its one form; of this length, if one is given. Raises NoteRefused."""
    try:
        data = b64decode(text)
    except (NotBase64, ValueError):
        raise NoteRefused("a part of the note is not base64") from None
    # Characters outside the alphabet were ignored: encoding the bytes again shows them.
    if (length is not None and len(data) != length) or b64encode(data).decode() != text:
        raise NoteRefused("a part of the note is base64 of another form or length")
    return data
