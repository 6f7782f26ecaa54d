"""Keys of a running gateway as a test sees them from outside: the command that rotates, public sets, receipts by hand.

Signs and verifies with `cryptography` and `rfc8785` alone, never with the gateway's own code.
"""

import base64
import hashlib
import json
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import rfc8785
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.support.gateway import Gateway, wait_for
from tests.support.processes import GATEWAY

PURPOSES = ("lease", "grant", "receipt", "checkpoint")
NOT_SIGNED = ("result_hash", "receipt_signature", "signing_key_id", "signature_status")


def keys_command(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """`gateway keys …` to its end."""
    command = [GATEWAY, "keys", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL)


def rotations(gate: Gateway, purpose: str | None = None) -> list[dict[str, Any]]:
    """Events of rotations that took effect, newest first."""
    events = gate.events(event_type="KeysRotated", limit=1000)
    return [event for event in events if purpose in (None, event["key_purpose"])]


def lease_key_ids(gate: Gateway) -> list[str]:
    """The keys of /.well-known/jwks.json, the current key first."""
    return [key["kid"] for key in gate.http.get("/.well-known/jwks.json").json()["keys"]]


def follow(gate: Gateway, purpose: str, before: int) -> list[dict[str, Any]]:
    """Wait until the gateway has followed a rotation; `before` events were there."""

    def found() -> list[dict[str, Any]] | None:
        events = rotations(gate, purpose)
        return events if len(events) > before else None

    return list(wait_for(found, f"the gateway to follow the rotation of the {purpose} key"))


def new_key(path: Path) -> None:
    """Put another P-256 key there as a person would: beside it first, then in its place."""
    beside = path.with_suffix(".new")
    beside.touch(mode=0o600)
    key = ec.generate_private_key(ec.SECP256R1())
    beside.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    beside.rename(path)


def signed_by(key: Ed25519PrivateKey, receipt: dict[str, Any]) -> dict[str, Any]:
    """The receipt with another key's signature."""
    envelope = rfc8785.dumps({name: value for name, value in receipt.items() if name not in NOT_SIGNED})
    x = base64.urlsafe_b64encode(key.public_key().public_bytes_raw()).rstrip(b"=").decode()
    thumbprint = hashlib.sha256(json.dumps({"crv": "Ed25519", "kty": "OKP", "x": x}, separators=(",", ":")).encode())
    return receipt | {
        "result_hash": "sha256:" + hashlib.sha256(envelope).hexdigest(),
        "receipt_signature": key.sign(envelope).hex(),
        "signing_key_id": base64.urlsafe_b64encode(thumbprint.digest()).rstrip(b"=").decode(),
    }


def smuggle(ledger: Path, receipt: dict[str, Any]) -> None:
    """Put a receipt into a ledger behind the back of the gateway that writes it."""
    stored = rfc8785.dumps({name: value for name, value in receipt.items() if name != "signature_status"})
    connection = sqlite3.connect(ledger, timeout=60)
    try:
        (last,) = connection.execute("SELECT coalesce(max(seq), 0) FROM receipts").fetchone()
        connection.execute(
            "INSERT INTO receipts (seq, receipt_id, approval_id, bytes) VALUES (?, ?, NULL, ?)",
            (max(last, 10**9) + 1, receipt["receipt_id"], stored),
        )
        connection.commit()
    finally:
        connection.close()
