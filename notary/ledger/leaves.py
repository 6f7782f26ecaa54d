"""Leaves of the tree: the bytes of events and intents, in the order in which they were written.

An event's leaf is its stored bytes. An intent's leaf is the canonical JSON of its row; what only recovery needs
(`context`) is in it as a hash.
"""

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, Final

import msgspec

from ipc.texts.canonical import NotCanonical, canonical_bytes, sha256_hex
from notary.ledger.page_ring import IntentRow, RingEntry
from notary.tree.merkle import leaf_hash

INTENT_COLUMNS: Final = (
    "intent_id", "trace_id", "action_id", "principal", "dispatched_at", "grant_id", "provider_module", "plan_hash",
    "approval_id", "grant_jws", "context",
)  # fmt: skip
_MEMBERS: Final = (*INTENT_COLUMNS[:-2], "grant", "context_hash")
_SORTED: Final = tuple(sorted(_MEMBERS))
_in_order = itemgetter(*map(_MEMBERS.index, _SORTED))
_TEXTS: Final = frozenset({str, type(None)})
_encode = msgspec.json.Encoder().encode


def intent_leaf(row: IntentRow | Sequence[Any]) -> bytes:
    """The leaf of an intent, from its row (INTENT_COLUMNS). Raises NotCanonical."""
    context = row[-1]
    values = (*row[:-1], None if context is None else sha256_hex(context))
    fields: dict[str, Any] = dict(zip(_SORTED, _in_order(values), strict=True))
    if not _TEXTS.issuperset(map(type, values)):
        return canonical_bytes(fields)
    try:
        return _encode(fields)  # texts under sorted names: that is their canonical form
    except UnicodeEncodeError as error:
        raise NotCanonical(str(error)) from None


def leaves_of(entries: Iterable[RingEntry]) -> list[tuple[int, bytes]]:
    """(place in the tree, hash of the leaf) of everything in these entries, in the tree's order."""
    leaves: list[tuple[int, bytes]] = []
    for entry in entries:
        leaves += [(at, leaf_hash(row[9])) for at, row in zip(entry.event_leaves, entry.events, strict=True)]
        leaves += [
            (at, leaf_hash(intent_leaf(row))) for at, row in zip(entry.intent_leaves, entry.intents, strict=True)
        ]
    return sorted(leaves)
