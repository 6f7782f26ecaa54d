"""Requests to `POST /add-checkpoint`, parsed from bytes. Pure; knows no key and no record.

Owns the form of a request (C2SP tlog-witness, "add-checkpoint") and its bounds. Trusts none of it.
"""

import re
from typing import Final

import msgspec

from notary.tree.checkpoint import MAX_NOTE, NoteRefused, TreeHead, decoded, parted, tree_head
from notary.tree.merkle import HASH_BYTES

MAX_PROOF: Final = 63
MAX_BODY: Final = 64 * 1024
"""A note of MAX_NOTE characters, a proof, and a line."""
_OLD: Final = re.compile(r"old (0|[1-9][0-9]{0,17})")


class Submission(msgspec.Struct, frozen=True):
    """A checkpoint as it was sent: of which tree, since which size, and the note itself."""

    old_size: int
    proof: tuple[bytes, ...]
    head: TreeHead
    note: str

    @property
    def text(self) -> str:
        """The signed text of the note."""
        return parted(self.note)[0]


def parse(body: bytes) -> Submission:
    """Raises NoteRefused with a sentence for its sender."""
    try:
        first, is_there, note = body.decode().partition("\n\n")
    except UnicodeDecodeError:
        raise NoteRefused("the request is no UTF-8 text") from None
    old, *proof = first.split("\n")
    told = _OLD.fullmatch(old)
    if not is_there or told is None:
        raise NoteRefused("the request begins with no line of the old size, or has no empty line after the proof")
    if len(proof) > MAX_PROOF:
        raise NoteRefused(f"the proof has more than {MAX_PROOF} lines")
    if len(note) > MAX_NOTE:
        raise NoteRefused("the checkpoint is too large")
    hashes = tuple(decoded(line, HASH_BYTES) for line in proof)
    head, _ = tree_head(parted(note)[0])
    if int(told[1]) > head.size:
        raise NoteRefused("the old size is above the size of the checkpoint")
    return Submission(int(told[1]), hashes, head, note)
