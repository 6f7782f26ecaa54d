"""The table of docs/evidence.md, with the row of it that a change of each column of a ledger belongs to."""

from typing import NamedTuple

from ipc.process.exits import Exit
from tests.notary.reading.tampering import Folder
from tests.notary.running import ROOT

EVENT = "a column or a byte of an event"
EVENT_ROWS = "an event deleted from the middle, inserted, or exchanged with another"
INTENT = "a column or a byte of an intent"
INTENT_ROWS = "an intent deleted from the middle, inserted, or exchanged with another"
RECEIPT = "a column or a byte of a receipt"
RECEIPT_ROWS = "a receipt deleted, inserted, or exchanged with another that is valid"
WAITS = "an intent said to wait that does not, or the reverse"
TILES = "hashes of the tree"
NOTE = "a checkpoint in the ledger: its columns, its text"
NOTE_SIGNATURE = "a checkpoint in the ledger: its signature"
NOTE_GONE = "a checkpoint in the ledger deleted, and not the newest"
HEAD = "the end of the chain as the ledger keeps it"
KEPT_GONE = "what the ledger keeps of its chain, journal or version: gone, or of before"
UNKNOWN = "what the ledger says that it is"
HISTORY = "what the ledger says of the time before it had a tree"
EPOCH_LOWERED, EPOCH_RAISED = "the epoch lowered", "the epoch raised"
PLANTED, HIDDEN = "a trigger or a view planted", "an index that leaves out a row"
TAIL = "the last events deleted"
FORGED = "everything computed anew: chain, tree, no checkpoints"
FORGED_FILE = "everything computed anew, and the file `checkpoints` removed"
EARLIER = "an earlier copy of the ledger put back"
EARLIER_FOLDER = "an earlier copy of the whole state directory put back"
FILE = "the file `checkpoints` removed, cut, or its last line changed"
FILE_LINE = "an earlier line of the file `checkpoints` changed"
OWN_KEY = "the gateway's checkpoint key exchanged"
RECEIPT_KEYS = "a key of receipts exchanged in the set that is given to the check"
IN_JOURNAL = "an event or a receipt that lies in the journal alone"
INTENT_IN_JOURNAL = "an intent that lies in the journal alone"
UNCOMMITTED = "what no checkpoint commits to yet, cut off whole"
KEPT = "a kept value: its row or its key changed, deleted, inserted, or exchanged with another"
KEPT_EMPTIED = "a kept value emptied as if it were erased"
KEPT_KIND = "whether a kept value is a masked one"
SPARE = "a page of the journal that holds nothing that waits"
NO_EVIDENCE = (
    "proofs, budgets, quotas, caps, keys of calls, approvals, standing approvals, deliveries, "
    "answers kept for a front, the ledger's own name"
)

OUTCOMES = {"found": Exit.CHECK_FAILED, "not found": Exit.OK, "nothing said": Exit.UNAVAILABLE}
STARTS = {"starts": Exit.OK, "exit 9": Exit.ROLLED_BACK, "exit 69": Exit.UNAVAILABLE}
DOCUMENT = (ROOT / "docs" / "evidence.md").read_text()
ROWS = {
    row[0]: tuple(row[1:])
    for line in DOCUMENT.splitlines()
    if len(row := [cell.strip() for cell in line.strip("|").split("|")]) == 5 and row[-1] in STARTS
}
"""The document's table: the change -> the results of the check alone, with the log's key, with a kept checkpoint, and
of the start."""
NEGATED = "-seq - 1"


class Case(NamedTuple):
    """A change of a column: the row of the document that it belongs to, and words of what is said."""

    row: str
    words: str = ""
    value: str = ""
    """SQL of the new value, where the usual one would not do."""


COLUMN = "does not say what the event says"
NOT_LEAF = "its bytes are not those of leaf"
COLUMNS: dict[str, dict[str, Case]] = {
    "events": {
        "seq": Case(EVENT, "event number 1 is missing before it", NEGATED),
        **{name: Case(EVENT, f"column {name} {COLUMN}") for name in (
            "event_id", "event_type", "time", "trace_id", "principal", "session_id", "action_id", "decision",
        )},
        "bytes": Case(EVENT, "are not those of an event", "x'7b7d'"),
        "leaf": Case(EVENT, "it has no place in the tree"),
    },
    "receipts": {
        "seq": Case(RECEIPT, "and the one beside it is None"),
        "receipt_id": Case(RECEIPT, "and the one beside it is "),
        "approval_id": Case(RECEIPT, "the columns of its receipt"),
        "bytes": Case(RECEIPT, "not have the content that was signed", "CAST(replace(bytes, 'finished_at\":\"2', "
                      "'finished_at\":\"1') AS BLOB)"),
    },
    "intents": {
        "seq": Case(INTENT, "intent number 1 is missing before it", NEGATED),
        **{name: Case(INTENT, NOT_LEAF) for name in (
            "intent_id", "trace_id", "action_id", "principal", "dispatched_at", "grant_id", "provider_module",
            "plan_hash", "approval_id", "grant_jws", "context",
        )},
        "leaf": Case(INTENT, "it has no place in the tree"),
    },
    "unresolved": {
        "intent_id": Case(WAITS, "no intent with its number has this id"),
        "seq": Case(WAITS, "no intent with its number has this id"),
    },
    "tiles": {
        "level": Case(TILES, "it has no place in the tree"),
        "number": Case(TILES, "tile 0 of level 0 is missing"),
        "hashes": Case(TILES, NOT_LEAF, "zeroblob(length(hashes))"),
    },
    "checkpoints": {
        "size": Case(NOTE, "does not say what its columns say"),
        "time": Case(NOTE, "does not say what its columns say"),
        "note": Case(NOTE, "makes no sense"),
    },
    "kept_values": {
        "key": Case(KEPT, "is missing, and no event erased it"),
        "pointer": Case(KEPT, "is missing, and no event erased it"),
        "seq": Case(KEPT, "of another event"),
        "kind": Case(KEPT_KIND, value="'masked'"),
        "value": Case(KEPT, "not the one that it commits to", "CAST('2501' AS BLOB)"),
        "salt": Case(KEPT, "not the one that it commits to"),
        "erased_by": Case(KEPT, "not the one that it commits to"),
    },
    "kept_keys": {
        "page": Case(KEPT, "not the one that it commits to"),
        "room": Case(NO_EVIDENCE),
        "keys": Case(KEPT, "not the one that it commits to", "randomblob(length(keys))"),
    },
    "epochs": {"id": Case(NO_EVIDENCE), "epoch": Case(EPOCH_LOWERED, "it raised the epoch to 1", "0")},
    "journal": {"slot": Case(SPARE), "bytes": Case(SPARE)},
    "last_unit": {"id": Case(NO_EVIDENCE), "answers": Case(NO_EVIDENCE)},
    **{table: dict.fromkeys(names, Case(NO_EVIDENCE)) for table, names in {
        "proofs": ("bucket", "key", "expires_at"),
        "budgets": ("session_id", "max_calls", "remaining", "expires_at"),
        "quota_calls": ("principal", "minute", "calls"),
        "quota_holds": ("approval_id", "principal", "minute"),
        "quota_sessions": ("principal", "expires_at", "session_id", "epoch"),
        "last_sessions": ("holder", "session_id", "epoch", "expires_at"),
        "kept_approvals": ("seq", "approval_id", "principal", "ended_at", "bytes", "room", "record"),
        "kept_bytes": ("principal", "bytes"),
        "cap_amounts": (
            "action_id", "pointer", "per", "window", "subject", "until", "total", "unknown", "gone_at",
        ),
        "cap_reserved": ("approval_id", "reserved", "gone_at"),
        "call_keys": ("name", "principal", "call", "expires_at"),
        "call_key_counts": ("principal", "number"),
        "sealed_intents": ("covers", "intent_id"),
        "call_ends": ("call_id", "ended", "expires_at"),
        "standing_approvals": ("standing_id", "action_id", "principal", "until", "calls", "record"),
        "kept_outputs": ("seq", "call_id", "principal", "ended_at", "bytes", "room", "record"),
        "kept_output_bytes": ("principal", "bytes"),
        "activity": ("step", "hour", "kind", "name", "count"),
        "activity_sums": ("step", "hour", "action_id", "pointer", "sum"),
        "activity_keys": ("page", "room", "keys"),
        "approvals": (
            "seq", "approval_id", "session_id", "action_id", "request_hash", "state", "created_at", "expires_at",
            "body", "holder", "outcome", "principal", "epoch", "bytes", "room", "summary",
        ),
        "outbox": ("seq", "event_id", "kind", "endpoint", "attempts", "due", "payload"),
        "given_up": ("seq", "event_id", "kind", "endpoint", "attempts", "at", "error", "payload"),
    }.items()},
    "meta": {
        "key": Case(KEPT_GONE, "does not say where its chain ends"),
        "value": Case(HEAD, "do not have the hash that", "replace(value, 'sha256:', 'sha256:0')"),
    },
}  # fmt: skip
META = {
    # key -> its value changed, its row gone
    "head": (COLUMNS["meta"]["value"], COLUMNS["meta"]["key"]),
    "settled": (Case(KEPT_GONE, "is missing before it", "0"), Case(KEPT_GONE, "the journal makes no sense")),
    "schema": (Case(KEPT_GONE, "which had no tree, and it has one", "4"), Case(UNKNOWN, "not a ledger")),
    "history": (Case(HISTORY, "it has no place in the tree", "'[1,0]'"), Case(HISTORY, "where its tree begins")),
    "ledger_id": (Case(NO_EVIDENCE), Case(NO_EVIDENCE)),
    "answers_without_tokens": (Case(NO_EVIDENCE), Case(NO_EVIDENCE)),
    "counted": (Case(NO_EVIDENCE), Case(NO_EVIDENCE)),
}  # fmt: skip


def agrees(folder: Folder, row: str, words: str = "") -> None:
    """The checks say what the document says of this row, and with these words."""
    verdicts = folder.judged()
    alone, with_key, with_kept, start = ROWS[row]
    expected = (OUTCOMES[alone], OUTCOMES[with_key], OUTCOMES[with_kept], STARTS[start])
    assert verdicts[:4] == expected, (row, verdicts)
    assert words in verdicts.words
