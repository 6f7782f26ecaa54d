"""Writes the test vectors of the verifiers: python -m contrib.verify.make_vectors [FOLDER]

Each vector is a bundle, the keys that an auditor trusts, and "proven" or the class of the refusal. Guarantees the same
bytes each time; never uses the verifiers, whose oracle the vectors are (contrib/verify/oracle.py).
"""

import base64
import json
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from contrib.verify.approval_vectors import of_several_approvals, of_the_approval
from contrib.verify.kept_vectors import of_kept_values
from contrib.verify.oracle import (
    APPROVED_EVENT,
    APPROVED_INTENT,
    APPROVED_RECEIPT,
    LOG,
    LOG_KEY,
    NOT_IN_VERSION_1,
    ORIGIN,
    RECEIPT_KEY,
    STRANGER,
    WITNESS,
    WITNESSES,
    Fields,
    b64,
    cosignature_line,
    event_of,
    jwk,
    note,
    note_text,
    signed_receipt,
    some_hash,
    vkey,
)
from contrib.verify.standing_vectors import of_standing_approvals
from contrib.verify.vector import Edit, put, vector

# The vectors.


def what_is_proven() -> Iterator[Fields]:
    approved: Fields = {"receipt": APPROVED_RECEIPT, "event": APPROVED_EVENT, "intent": APPROVED_INTENT}
    failed = {"normalized_result": {"kind": "timeout"}, "failure_class": "timeout", "effect_evidence": []}
    one, other = (vkey(name, key, WITNESS) for name, key in WITNESSES.items())
    both = tuple(WITNESSES)
    yield vector("proven-success", "proven")
    yield vector("proven-approved", "proven", **approved)
    yield vector("proven-timeout", "proven", receipt=failed)
    yield vector("proven-one-witness", "proven", witnesses=both[:1], witness_keys=(one,))
    yield vector("proven-two-witnesses", "proven", witnesses=both, witness_keys=(one, other))
    yield vector("proven-witness-not-asked-for", "proven", witnesses=both)
    yield vector("proven-tree-of-one", "proven", **alone(), size=1, index=0)
    yield vector("proven-tree-of-two", "proven", size=2, before=0, index=1)
    yield vector("proven-last-leaf-of-a-ragged-tree", "proven", size=21, before=19, index=20)
    yield vector("proven-big-tree", "proven", size=10_007, before=4_095, index=10_006)
    yield vector("proven-without-receipt-keys", "proven", trusted=None)
    yield vector("proven-receipt-of-version-1", "proven", receipt=dict.fromkeys(NOT_IN_VERSION_1, ...))
    yield vector("proven-from-before-the-tree", "proven", **from_before())
    yield vector("proven-origin-with-port-and-path", "proven", origin="gate.example.com:8443/log",
                 origin_key=vkey("gate.example.com:8443/log", LOG_KEY))  # fmt: skip
    yield vector("proven-unknown-members", "proven", put("later", {"x": [1]}), event={"later": 1})


def alone() -> Fields:
    """An event that names no intent."""
    return {"event": {"intent_id": ...}, "without_intent": True}


def from_before() -> Fields:
    """A call from before there was a tree: events are the first leaves, then intents, and no event has a hash."""
    receipt = dict.fromkeys(NOT_IN_VERSION_1, ...)
    return {"receipt": receipt, "event": {"receipt_hash": ...}, "before": 12, "index": 11}


def leaf(number: int, name: str, change: Callable[[Any], object]) -> Edit:
    """Change a member of the event's leaf (0) or the intent's (1)."""

    def edit(bundle: Fields) -> None:
        bundle["leaves"][number][name] = change(bundle["leaves"][number][name])

    return edit


def replaced(old: str, new: str) -> Callable[[str], str]:
    """Change the bytes in a base64 text."""
    return lambda text: b64(base64.b64decode(text).replace(old.encode(), new.encode()))


def checkpoint(change: Callable[[str], str]) -> Edit:
    return lambda bundle: put("checkpoint", change(bundle["checkpoint"]))(bundle)


def noted(old: str, new: str) -> Edit:
    """Change the note."""
    return checkpoint(lambda whole: whole.replace(old, new))


def of_malformed_notes() -> Iterator[Fields]:
    text = note_text(ORIGIN, 21, sha256(b"").digest())
    changes = {
        "without-empty-line": noted("\n\n", "\n"),
        "without-end-of-line": checkpoint(lambda whole: whole[:-1]),
        "without-extension": checkpoint(lambda _: note(text.partition("time=")[0])),
        "without-signature": checkpoint(lambda whole: whole.partition("—")[0]),
        "with-a-leading-zero": noted("\n21\n", "\n021\n"),
        "with-a-sign": noted("\n21\n", "\n+21\n"),
        "with-a-huge-size": checkpoint(lambda _: note(text.replace("21", "9" * 30))),
        "with-a-control-character": noted("=3\n", "=3\n\t\n"),
        "with-a-line-that-signs-nothing": checkpoint(lambda whole: whole + "-- a stranger\n"),
        "with-loose-base64": checkpoint(lambda whole: whole[:-2] + "\n"),
        "of-nothing": checkpoint(lambda _: ""),
    }
    for name, change in changes.items():
        yield vector(f"note-{name}", "note_malformed", change)


def of_the_note() -> Iterator[Fields]:
    name, _, public = vkey(ORIGIN, LOG_KEY).split("+", 2)
    yield vector("note-of-another-origin-than-the-bundle", "note_origin", put("origin", "gate.example.org"))
    yield vector("note-of-another-origin-than-the-key", "note_origin", origin_key=vkey("gate.example.org", LOG_KEY))
    yield vector("note-of-another-log", "note_origin", origin="gate.example.org")
    yield vector("note-and-another-key", "note_signature", origin_key=vkey(ORIGIN, STRANGER))
    yield vector("note-by-a-stranger", "note_signature", key=STRANGER)
    yield vector("note-and-a-key-with-a-false-id", "unreadable", origin_key=f"{name}+00000000+{public}")
    yield vector("note-with-edited-extension", "note_signature", noted("unresolved=3", "unresolved=0"))
    yield vector("note-with-edited-time", "note_signature", noted("05:00:00", "05:00:01"))
    yield vector("note-with-edited-size", "note_signature", noted("\n21\n", "\n22\n"))
    yield vector("note-with-an-added-line", "note_signature", noted("=3\n", "=3\nmore\n"))
    yield vector("note-signed-twice", "note_signature", checkpoint(lambda whole: whole + whole.splitlines(True)[-1]))


def of_witnesses() -> Iterator[Fields]:
    (name, key), (other, other_key) = WITNESSES.items()
    wanted = (vkey(name, key, WITNESS),)
    elsewhere = cosignature_line(note_text(ORIGIN, 22, sha256(b"").digest()), name, key)
    yield vector("witness-missing", "witness_signature", witness_keys=wanted)
    yield vector("witness-another-one", "witness_signature", witnesses=(other,), witness_keys=wanted)
    yield vector("witness-one-of-two", "witness_signature", witnesses=(name,),
                 witness_keys=(*wanted, vkey(other, other_key, WITNESS)))  # fmt: skip
    yield vector("witness-of-another-checkpoint", "witness_signature", checkpoint(lambda whole: whole + elsewhere),
                 witness_keys=wanted)  # fmt: skip
    yield vector("witness-with-the-key-of-a-log", "unreadable", witness_keys=(vkey(name, key, LOG),))


def of_the_tree() -> Iterator[Fields]:
    some = b64(sha256(b"some").digest())
    yield vector("edited-event", "root", leaf(0, "bytes", replaced("agent:invoices", "agent:innocent")))
    yield vector("edited-intent", "root", leaf(1, "bytes", replaced("payment_transfer", "payment_estimate")))
    yield vector("wrong-index", "root", leaf(0, "index", lambda index: index - 1))
    yield vector("wrong-index-of-intent", "root", leaf(1, "index", lambda index: index + 1))
    yield vector("index-beyond-the-tree", "leaf_index", leaf(0, "index", lambda _: 21))
    yield vector("index-negative", "leaf_index", leaf(0, "index", lambda _: -1))
    yield vector("index-a-text", "bundle_malformed", leaf(0, "index", str))
    yield vector("proof-too-short", "proof_length", leaf(0, "proof", lambda proof: proof[:-1]))
    yield vector("proof-empty", "proof_length", leaf(1, "proof", lambda _: []))
    yield vector("proof-too-long", "proof_length", leaf(0, "proof", lambda proof: [*proof, some]))
    yield vector("proof-too-long-in-a-tree-of-one", "proof_length", leaf(0, "proof", lambda _: [some]), **alone(),
                 size=1, index=0)  # fmt: skip
    yield vector("proof-of-another-order", "root", leaf(0, "proof", lambda proof: proof[::-1]))
    yield vector("proof-with-a-short-hash", "root", leaf(0, "proof", lambda proof: ["AAAA", *proof[1:]]))
    yield vector("proof-with-loose-base64", "bundle_malformed",
                 leaf(0, "proof", lambda proof: [proof[0].rstrip("="), *proof[1:]]))  # fmt: skip
    yield vector("wrong-root", "root", root=sha256(b"another tree").digest())
    yield vector("wrong-root-of-another-length", "root", root=b"short")


def of_the_leaves() -> Iterator[Fields]:
    stored = signed_receipt({})
    event = event_of(stored, {})
    old = signed_receipt(dict.fromkeys(NOT_IN_VERSION_1, ...))
    yield vector("intent-missing", "leaves", lambda bundle: bundle["leaves"].pop())
    yield vector("event-missing", "leaves", lambda bundle: bundle["leaves"].pop(0))
    yield vector("event-twice", "leaves", lambda bundle: bundle["leaves"].append(bundle["leaves"][0]))
    yield vector("leaf-of-another-kind", "leaves", leaf(1, "kind", lambda _: "receipt"))
    yield vector("intent-after-event", "leaf_order", before=12, index=11)
    yield vector("from-before-the-tree-without-receipt-keys", "receipt_hash", trusted=None, **from_before())
    yield vector("event-given-as-intent", "intent_malformed", stored=old, intent_bytes=event_of(old, {}))
    yield vector("event-of-another-type", "event_malformed", event={"event_type": "ApprovalDenied"})
    yield vector("event-with-a-name-twice", "event_malformed", stored=stored,
                 event_bytes=event.replace(b'"decision":', b'"decision":"deny","decision":'))  # fmt: skip
    yield vector("event-not-canonical", "event_malformed", stored=stored, event_bytes=event.replace(b'":"', b'": "'))
    yield vector("event-names-another-intent", "disagreement", event={"intent_id": "intent_02"})
    yield vector("event-names-no-intent", "disagreement", event={"intent_id": ...})
    yield vector("intent-of-another-grant", "disagreement", intent={"grant_id": "grant_02"})
    for name in ("trace_id", "action_id", "principal"):
        yield vector(f"intent-of-another-{name}", "disagreement", intent={name: "other"})
    yield vector("intent-of-another-plan", "disagreement", intent={"plan_hash": some_hash("another plan")})
    yield vector("intent-of-another-module", "disagreement", intent={"provider_module": some_hash("another module")})
    yield vector("intent-of-another-approval", "disagreement", intent={"approval_id": "apr_02"})


def of_the_receipt() -> Iterator[Fields]:
    stored = signed_receipt({})
    other = signed_receipt({"receipt_id": "rcpt_02", "normalized_result": {"kind": "provider_failure"}})
    yield vector("receipt-exchanged", "receipt_hash", put("receipt", b64(other)))
    yield vector("receipt-hash-mismatch", "receipt_hash", event={"receipt_hash": some_hash("another receipt")})
    yield vector("receipt-of-another-id", "disagreement", event={"receipt_id": "rcpt_02"})
    yield vector("receipt-of-another-grant", "disagreement", receipt={"grant_id": "grant_02"})
    for name in ("principal", "action_id", "action_version", "request_hash", "trace_id", "policy_rule",
                 "policy_version", "provider_module_digest"):  # fmt: skip
        yield vector(f"receipt-of-another-{name}", "disagreement", receipt={name: "other"})
    yield vector("receipt-of-another-plan", "disagreement", receipt={"plan_hash": "other"})
    yield vector("receipt-with-an-approval-of-its-own", "disagreement", receipt=APPROVED_RECEIPT)
    yield vector("receipt-without-the-approval", "disagreement", event=APPROVED_EVENT, intent=APPROVED_INTENT)
    for name in APPROVED_EVENT:
        yield vector(f"receipt-of-another-{name}", "disagreement", receipt=APPROVED_RECEIPT,
                     event=APPROVED_EVENT | {name: "other"}, intent=APPROVED_INTENT)  # fmt: skip
    yield vector("receipt-of-an-unknown-version", "receipt_malformed", receipt={"receipt_version": 3})
    yield vector("receipt-with-a-name-twice", "receipt_malformed",
                 stored=stored.replace(b'{"evidence"', b'{"status":"skipped","evidence"'))  # fmt: skip
    yield vector("receipt-signature-of-stranger", "receipt_signature", stored=signed_receipt({}, STRANGER))
    yield vector("receipt-signature-of-other-bytes", "receipt_signature",
                 stored=signed_receipt({}, later={"receipt_signature": "0" * 128}))  # fmt: skip
    yield vector("receipt-without-signature", "receipt_malformed",
                 stored=signed_receipt({}, later={"receipt_signature": ...}))  # fmt: skip
    yield vector("receipt-result-hash", "result_hash", stored=signed_receipt({}, later={"result_hash": some_hash("x")}))
    yield vector("receipt-of-an-unknown-key", "receipt_key",
                 trusted={"keys": [jwk("receipts-2025", RECEIPT_KEY)]})  # fmt: skip
    yield vector("bundle-of-another-version", "bundle_malformed", put("bundle_version", 2))
    yield vector("bundle-without-receipt", "bundle_malformed", lambda bundle: bundle.pop("receipt"))


def vectors() -> Iterator[Fields]:
    for group in (
        what_is_proven,
        of_malformed_notes,
        of_the_note,
        of_witnesses,
        of_the_tree,
        of_the_leaves,
        of_the_receipt,
        of_the_approval,
        of_several_approvals,
        of_standing_approvals,
        of_kept_values,
    ):
        yield from group()


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for made in vectors():
        text = json.dumps(made, indent=1, ensure_ascii=False) + "\n"
        (folder / f"{made['name']}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("vectors"))
