"""Checkpoints that an auditor has kept, and whether a ledger continues them.

They come in one of three forms: a signed note, the answer of `GET /v1/audit/checkpoint`, or lines of JSON with a note
in each, as the gateway's own file has them.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from notary.database import OpenTransaction
from notary.ledger.leaves import leaves_of
from notary.ledger.page_ring import RingEntry
from notary.tree.checkpoint import Checkpoint, NoteRefused, parted
from notary.tree.merkle import node_hash, root
from notary.tree.notes import Keys, opened, read_verifier_key
from notary.tree.tiles import Tree

MAX_FILE_BYTES: Final = 256 << 20
_MEMBERS: Final = ("checkpoint", "note")


class KeptCheckpoint(msgspec.Struct, frozen=True):
    """A checkpoint, and the file that it was read from."""

    path: Path
    checkpoint: Checkpoint


def keys_by_name(verifier_keys: Iterable[str]) -> Keys:
    """Verifier keys (`name+id+base64`) by their name. Raises NoteRefused."""
    keys: dict[str, list[Ed25519PublicKey]] = {}
    for name, key in map(read_verifier_key, verifier_keys):
        keys.setdefault(name, []).append(key)
    return keys


def read_kept(path: Path, keys: Keys) -> list[KeptCheckpoint]:
    """Every checkpoint in a file; each has a signature by one of these keys where there are any.

    Raises OSError, and ValueError with a sentence for a file of another kind.
    """
    if path.stat().st_size > MAX_FILE_BYTES:
        raise ValueError("is too large to hold checkpoints")
    checkpoints = []
    # A line may have been cut within a character; text with a replacement character has no valid signature.
    for note in _notes_in(path.read_bytes().decode(errors="replace")):
        checkpoints.append(KeptCheckpoint(path, Checkpoint.parse(opened(note, keys) if keys else parted(note)[0])))
    if not checkpoints:
        raise ValueError("holds no checkpoint")
    return checkpoints


def _notes_in(text: str) -> Iterator[str]:
    if not text.lstrip().startswith("{"):
        yield text
        return
    try:
        whole = [msgspec.json.decode(text, type=dict[str, Any])]
    except msgspec.MsgspecError:
        lines = [line for line in text.splitlines() if line.strip()]
        # The last line may have been cut by a crash.
        whole = [one for line in lines[:-1] if (one := _object(line)) is not None]
        whole += [one for line in lines[-1:] if (one := _object(line, is_last=True)) is not None]
    for one in whole:
        note = next((one[name] for name in _MEMBERS if isinstance(one.get(name), str)), None)
        if note is None:
            raise NoteRefused("an object in it has neither a checkpoint nor a note")
        yield note


def _object(line: str, *, is_last: bool = False) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except msgspec.MsgspecError:
        if is_last or not line.endswith("}"):  # cut by a crash, and gone on after it
            return None
        raise ValueError("has a line that is no JSON object") from None


def problem_of(connection: OpenTransaction, entries: Iterable[RingEntry], kept: Iterable[KeptCheckpoint]) -> str | None:
    """Why the ledger, its journal included, does not continue one of these; None when it continues all.

    Raises TilesDamaged.
    """
    tree = _Whole(Tree(connection), [hashed for _, hashed in leaves_of(entries)])
    for one in kept:
        made = one.checkpoint
        where = f"{one.path.name}: the checkpoint of {made.time}"
        if made.size > tree.size:
            return f"{where} has {made.size} leaves, and the ledger has {tree.size}: it was cut, or is an earlier copy"
        if root(tree.node, made.size) != made.root:
            return f"{where} commits to {made.size} other leaves than the first of the ledger: it was rewritten"
    return None


class _Whole:
    """The tree with the leaves that are not in its tiles yet."""

    def __init__(self, tree: Tree, more: list[bytes]) -> None:
        self._tree, self._more = tree, more
        self.size = tree.size + len(more)

    def node(self, height: int, index: int) -> bytes:
        """Hash of a complete subtree."""
        if (index + 1) << height <= self._tree.size:
            return self._tree.node(height, index)
        if height == 0:
            return self._more[index - self._tree.size]
        return node_hash(self.node(height - 1, 2 * index), self.node(height - 1, 2 * index + 1))
