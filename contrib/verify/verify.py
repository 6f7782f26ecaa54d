"""Verifies one evidence bundle offline: python verify.py BUNDLE.json --origin-key VKEY

Owns the whole way from a trusted log key to what one call did, and imports nothing of the gateway: the standard library
and `cryptography` are enough. Formats: RFC 9162 inclusion proofs, C2SP signed notes, checkpoints and cosignatures.
Guarantees that "proven" is said only after every check; never trusts a key that stands in the bundle, and never opens a
connection. What an operator has signed is for approval.py beside it. Exit code 0: proven; 1: not proven, with the first
thing that does not fit; 2: usage, or nothing to read.
"""

import argparse
import base64
import json
import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

MAX_BYTES = 16 * 1024 * 1024
LOG, WITNESS = 1, 4  # signature types of C2SP signed notes: Ed25519, and Ed25519 of a cosignature
NUMBER = "0|[1-9][0-9]{0,17}"
EXTENSION = re.compile(r"time=([0-9T:.-]+Z) unresolved=([0-9]+)")
SIGNATURE_LINE = re.compile(r"— ([^ +]+) ([A-Za-z0-9+/]+={0,2})")
NOT_SIGNED = ("result_hash", "receipt_signature", "signing_key_id", "signature_status")
BOUND = ("principal", "action_id", "action_version", "request_hash", "trace_id", "policy_rule", "policy_version")
APPROVAL = ("approval_id", "approved_by", "operator_jkt", "operator_proof_jti")
"""What a receipt of version 2, and its `approval`, have in common with the event."""
EVENT_NAMES = {"operator_jkt": "operator_sender_binding"}


class Refusal(Exception):
    """Not proven: a class for programs and a sentence for people. The class "unreadable" is exit code 2."""


def require(holds: bool, reason: str, sentence: str) -> None:
    if not holds:
        raise Refusal(reason, sentence)


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose member names differ. Raises ValueError."""
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a member name stands twice in one object")
    return dict(pairs)


JSON = json.JSONDecoder(object_pairs_hook=unique, parse_constant=int)  # int refuses NaN and Infinity


def json_object(data: bytes, what: str) -> dict[str, Any]:
    require(len(data) <= MAX_BYTES, "unreadable", f"{what} is larger than 16 MB.")
    try:
        return dict(JSON.decode(data.decode()).items())
    except (ValueError, RecursionError, AttributeError) as error:
        raise Refusal("unreadable", f"{what} is not a readable JSON object: {error}.") from None


def unbase64(text: str, reason: str, what: str) -> bytes:
    """Standard base64, in the one form that an encoder writes."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        data = b""
    require(base64.b64encode(data).decode() == text, reason, f"{what} is not standard base64.")
    return data


def member(holder: object, name: str, kind: type[Any]) -> Any:
    """A member of the bundle, of this type."""
    value = holder.get(name) if isinstance(holder, dict) else None
    require(type(value) is kind, "bundle_malformed", f"The bundle has no {name} of the right type.")
    return value


def require_signed(key: bytes, signature: bytes, message: bytes, reason: str, sentence: str) -> None:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        raise Refusal(reason, sentence) from None


class Record:
    """A canonical JSON object (a leaf, a receipt) with the exact text of each member, which is what is compared."""

    def __init__(self, given: str | bytes, what: str) -> None:
        self.what, self.fault, self.texts, at = what, f"{what}_malformed", dict[str, str](), 1
        try:
            text = given.decode() if isinstance(given, bytes) else given
            for name in JSON.decode(text).keys():  # noqa: SIM118 - AttributeError where it is no object
                start = at + len(f'"{name}":')
                at = JSON.raw_decode(text, start)[1] + 1
                self.texts[name] = text[start : at - 1]
        except (ValueError, RecursionError, AttributeError) as error:
            raise Refusal(self.fault, f"The {what} is not a readable JSON object: {error}.") from None
        is_sorted = sorted(self.texts) == list(self.texts)
        require(is_sorted and self.joined() == text, self.fault, f"The {what} is not in canonical form.")

    def joined(self, *without: str) -> str:
        """The object again, without these members."""
        return "{" + ",".join(f'"{name}":{text}' for name, text in self.texts.items() if name not in without) + "}"

    def text(self, name: str) -> str:
        """The exact JSON of a member; an absent one is null."""
        return self.texts.get(name, "null")

    def string(self, name: str) -> str:
        value = json.loads(self.text(name))
        require(isinstance(value, str), self.fault, f"The {self.what} has no text named {name}.")
        return str(value)

    def shown(self, name: str) -> str:
        """A member for the terminal: it may not write lines or control characters of its own there."""
        return "none" if self.text(name) == "null" else ascii(json.loads(self.text(name)))

    def match(self, name: str, other: "Record", other_name: str = "") -> None:
        is_same = self.text(name) == other.text(other_name or name)
        require(is_same, "disagreement", f"The {self.what} has another {name} than the {other.what}.")


class NoteKey:
    """A key that the auditor trusts, from its text NAME+ID+KEY."""

    def __init__(self, text: str, algorithm: int) -> None:
        self.name, key_id, encoded = [*text.split("+", 2), "", ""][:3]
        data = unbase64(encoded, "unreadable", f"The verifier key {text!a}")
        self.key_id, self.public = sha256(self.name.encode(errors="replace") + b"\n" + data).digest()[:4], data[1:]
        is_key = self.name != "" and len(data) == 33 and data[0] == algorithm and self.key_id.hex() == key_id
        require(is_key, "unreadable", f"{text!a} is not a verifier key of type {algorithm} with its own id.")


class Checkpoint:
    """What a signed note says (C2SP tlog-checkpoint), before any signature is checked."""

    def __init__(self, note: str) -> None:
        fault, body = "note_malformed", note.partition("\n\n")[0]
        self.origin, size, root, extension = (body.split("\n") + [""] * 4)[:4]
        says, lines = EXTENSION.fullmatch(extension), note[len(body) + 2 :].split("\n")
        signed = [match for match in map(SIGNATURE_LINE.fullmatch, lines) if match]
        is_text = self.origin != "" and re.search("[\x00-\x09\x0b-\x1f\ud800-\udfff]", note) is None
        if says is None or not is_text or not re.fullmatch(NUMBER, size):
            raise Refusal(fault, "The checkpoint's lines of origin, size, root and time have another form.")
        require(lines[-1] == "" and 0 < len(signed) == len(lines) - 1, fault, "The checkpoint's end has another form.")
        self.text, self.size, self.time, self.unresolved = f"{body}\n".encode(), int(size), says[1], says[2]
        self.root = unbase64(root, fault, "The root of the checkpoint")
        self.signatures = [(one[1], unbase64(one[2], fault, "A signature of the checkpoint")) for one in signed]

    def check_signature(self, key: NoteKey, reason: str, *, is_witness: bool = False) -> str:
        """Check what this key signed; returns the time of a cosignature."""
        own = [data[4:] for name, data in self.signatures if (name, data[:4]) == (key.name, key.key_id)]
        require(len(own) == 1, reason, f"The checkpoint needs one signature by the trusted key of {key.name!a}.")
        seconds, signature, message = 0, own[0], self.text
        if is_witness:
            seconds, signature = int.from_bytes(signature[:8], "big"), signature[8:]
            message = f"cosignature/v1\ntime {seconds}\n".encode() + message
        require_signed(key.public, signature, message, reason, f"The signature by {key.name!a} is invalid.")
        require(seconds < 1 << 37, reason, f"The signature by {key.name!a} has no possible time.")
        return datetime.fromtimestamp(seconds, UTC).isoformat()


def root_of(leaf: bytes, index: int, size: int, proof: list[bytes], kind: str) -> bytes:
    """The root that an inclusion proof leads to (RFC 9162 §2.1.3.2)."""
    require(0 <= index < size, "leaf_index", f"The {kind} has no place in a tree of {size} leaves.")
    number, last, root = index, size - 1, sha256(b"\x00" + leaf).digest()
    for sibling in proof:
        require(last > 0, "proof_length", f"The inclusion proof of the {kind} is too long.")
        if number & 1 or number == last:
            root = sha256(b"\x01" + sibling + root).digest()
            while number and not number & 1:
                number, last = number >> 1, last >> 1
        else:
            root = sha256(b"\x01" + root + sibling).digest()
        number, last = number >> 1, last >> 1
    require(last == 0, "proof_length", f"The inclusion proof of the {kind} is too short.")
    return root


def read_leaves(bundle: dict[str, Any], log: Checkpoint) -> dict[str, tuple[Record, int]]:
    """The leaves by kind, each with its index, all in the tree of the checkpoint."""
    records: dict[str, tuple[Record, int]] = {}
    for leaf in member(bundle, "leaves", list):
        kind, index = member(leaf, "kind", str), member(leaf, "index", int)
        require(kind in ("event", "intent") and kind not in records, "leaves", "A leaf is not the one event or intent.")
        data = unbase64(member(leaf, "bytes", str), "bundle_malformed", f"The {kind} in the bundle")
        proof = [unbase64(str(one), "bundle_malformed", "A hash of a proof") for one in member(leaf, "proof", list)]
        is_there = root_of(data, index, log.size, proof, kind) == log.root
        require(is_there, "root", f"The {kind} is not at index {index} of the tree that the checkpoint signs.")
        records[kind] = Record(data, kind), index
    require("event" in records, "leaves", "The bundle has no event.")
    return records


def check_agreement(event: Record, intent: Record | None, receipt: Record) -> None:
    """Check that all tell of the same call."""
    require(event.string("event_type") == "ActionCall", event.fault, "The event is not that of a call of an action.")
    receipt.match("receipt_id", event)
    receipt.match("grant_id", event)
    if intent is None:
        require(event.text("intent_id") == "null", "leaves", "The event names an intent, and the bundle has none.")
    else:
        intent.string("dispatched_at")  # an event has none: it can't stand for its own intent
        for name in ("intent_id", "grant_id", "trace_id", "action_id", "principal"):
            event.match(name, intent)
    if (version := receipt.text("receipt_version")) == "null":
        return
    require(version == "2", receipt.fault, "The receipt has a version that is not known here.")
    for name in (*BOUND, "provider_module_digest"):
        receipt.match(name, event)
    approval = Record("{}" if receipt.text("approval") == "null" else receipt.text("approval"), "receipt")
    for name in APPROVAL:
        approval.match(name, event, EVENT_NAMES.get(name, name))
    if intent is not None:
        receipt.match("plan_hash", intent)
        receipt.match("provider_module_digest", intent, "provider_module")
        approval.match("approval_id", intent)


def check_receipt_signature(receipt: Record, jwks: dict[str, Any]) -> str:
    """Check the receipt's own signature by a key of this set; returns the key's id."""
    kid, signature = receipt.string("signing_key_id"), receipt.string("receipt_signature")
    kinds = {"kid": kid, "kty": "OKP", "crv": "Ed25519"}.items()
    listed = jwks.get("keys")
    keys = [jwk for jwk in listed if isinstance(jwk, dict) and kinds <= jwk.items()] if isinstance(listed, list) else []
    require(len(keys) == 1, "receipt_key", f"The receipt keys have no Ed25519 key {kid!a}.")
    x = unbase64(str(keys[0].get("x")).translate({45: "+", 95: "/"}) + "=", "receipt_key", f"The receipt key {kid!a}")
    envelope = receipt.joined(*NOT_SIGNED).encode()
    is_hash = receipt.string("result_hash") == "sha256:" + sha256(envelope).hexdigest()
    require(is_hash, "result_hash", "The result_hash is not the hash of what the receipt signs.")
    signed = bytes.fromhex(signature) if re.fullmatch("[0-9a-f]{128}", signature) else b""
    require_signed(x, signed, envelope, "receipt_signature", "The signature of the receipt is invalid.")
    return kid


def verify(data: bytes, origin_key: str, receipt_keys: bytes | None = None, witnesses: Sequence[str] = ()) -> list[str]:
    """What a bundle proves, in sentences. Raises Refusal."""
    key, witness_keys = NoteKey(origin_key, LOG), [NoteKey(one, WITNESS) for one in witnesses]
    jwks = None if receipt_keys is None else json_object(receipt_keys, "The set of receipt keys")
    bundle = json_object(data, "The bundle")
    require(member(bundle, "bundle_version", int) == 1, "bundle_malformed", "The bundle is not of version 1.")
    log = Checkpoint(member(bundle, "checkpoint", str))
    for origin in (member(bundle, "origin", str), key.name):
        require(origin == log.origin, "note_origin", f"The checkpoint is of the log {log.origin!a}, not of {origin!a}.")
    log.check_signature(key, "note_signature")
    cosigned = [(one.name, log.check_signature(one, "witness_signature", is_witness=True)) for one in witness_keys]
    leaves = read_leaves(bundle, log)
    (event, index), (intent, before) = leaves["event"], leaves.get("intent", (None, -1))
    stored = unbase64(member(bundle, "receipt", str), "bundle_malformed", "The receipt in the bundle")
    receipt = Record(stored, "receipt")
    is_old = receipt.text("receipt_version") == "null"  # its event may be from before there was a tree
    require(is_old or before < index, "leaf_order", "The intent does not come before the event in the log.")
    bound = event.text("receipt_hash")
    is_bound = bound == f'"sha256:{sha256(stored).hexdigest()}"' or (is_old and bound == "null" and jwks is not None)
    require(is_bound, "receipt_hash", "The receipt is not bound by the event: it has not its hash.")
    check_agreement(event, intent, receipt)
    signer = None if jwks is None else check_receipt_signature(receipt, jwks)
    says, has, is_signed = event.shown, receipt.shown, '"signature":' in receipt.text("approval")
    result, checked = (Record(receipt.text(name), "receipt") for name in ("normalized_result", "verification_outcome"))
    return [
        f"The log {log.origin!a} signed its checkpoint of size {log.size} at {log.time}.",
        f"It counted {log.unresolved} intents that had no receipt by then.",
        *(f"The witness {name!a} cosigned it at {time}." for name, time in cosigned),
        f"Entry {index} of that log is the event {says('event_id')} of {says('timestamp')}.",
        f"In it {says('principal')} called {says('action_id')}, version {says('action_version')}.",
        f"Decision {says('decision')}, policy rule {says('policy_rule')}, approved by {says('approved_by')}.",
        *(["The operator's own signature of that was not checked: approval.py does."] if is_signed else []),
        "It names no intent." if intent is None
        else f"Entry {before} is its intent {intent.shown('intent_id')}, of {intent.shown('dispatched_at')}.",
        f"The event has the hash of the receipt {has('receipt_id')}, finished at {has('finished_at')}.",
        f"Result {result.shown('kind')}, verification {checked.shown('status')}, failure {has('failure_class')}.",
        "The receipt's own signature was not checked: the checkpoint alone binds it." if signer is None
        else f"The receipt's own signature, by the key {signer!a}, is valid.",
    ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description="Verifies an evidence bundle offline.", allow_abbrev=False)
    parser.add_argument("bundle", metavar="BUNDLE.json")
    parser.add_argument("--origin-key", required=True, metavar="VKEY", help="key of the log, NAME+ID+KEY")
    parser.add_argument("--receipt-keys", metavar="JWKS.json", help="check the receipt's own signature too")
    parser.add_argument("--witness-key", action="append", default=[], metavar="VKEY", help="who must have cosigned")
    given = parser.parse_args()
    try:
        keys_file = os.devnull if given.receipt_keys is None else given.receipt_keys
        with open(given.bundle, "rb") as bundle, open(keys_file, "rb") as keys:
            files = bundle.read(MAX_BYTES + 1), None if given.receipt_keys is None else keys.read(MAX_BYTES + 1)
        said = verify(files[0], given.origin_key, files[1], given.witness_key)
    except (OSError, Refusal) as error:
        reason, sentence = error.args if isinstance(error, Refusal) else ("unreadable", str(error))
        print(f"not proven ({reason}): {sentence}")
        return 2 if reason == "unreadable" else 1
    print("proven", *said, sep="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
