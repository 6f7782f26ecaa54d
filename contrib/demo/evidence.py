"""Checks that a stranger could make: with public keys and a copy of the ledger, without the gateway's code."""

import base64
import hashlib
import json
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from contrib.demo.cast import Cast, DemoOperator

UNSIGNED = ("result_hash", "receipt_signature", "signing_key_id", "signature_status")


def verify_receipts(operator: DemoOperator) -> int:
    """Verify the signature of every receipt that an event names; returns how many. Raises on the first bad one."""
    keys = {key["kid"]: key for key in operator.get("/v1/receipt-keys")["keys"]}
    events = operator.get("/v1/audit/events?event_type=ActionCall&limit=1000")["events"]
    receipt_ids = {event["receipt_id"] for event in events if event.get("receipt_id")}
    for receipt_id in receipt_ids:
        _verify(operator.get(f"/v1/receipts/{receipt_id}"), keys)
    return len(receipt_ids)


def _verify(receipt: dict[str, Any], keys: dict[str, dict[str, str]]) -> None:
    x = keys[receipt["signing_key_id"]]["x"]
    public = Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(x + "=" * (-len(x) % 4)))
    signed = rfc8785.dumps({name: value for name, value in receipt.items() if name not in UNSIGNED})
    public.verify(bytes.fromhex(receipt["receipt_signature"]), signed)
    if receipt["result_hash"] != "sha256:" + hashlib.sha256(signed).hexdigest():
        raise ValueError(f"{receipt['receipt_id']}: result_hash differs")


def tamper_with_a_copy(cast: Cast) -> str:
    """Change one byte of one event in a copy of the ledger and let `gateway ledger verify` find it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "ledger.sqlite3"
        with sqlite3.connect(f"file:{cast.state / 'ledger.sqlite3'}?mode=ro", uri=True) as source:
            with sqlite3.connect(copy) as target:
                source.backup(target)
            target.close()
        source.close()
        event_id = _change_one_byte(copy)
        keys = Path(folder) / "keys.json"
        keys.write_text(json.dumps(cast.operator.get("/v1/receipt-keys")))
        command = [str(Path(sys.executable).with_name("gateway")), "ledger", "verify", str(copy), "--keys", str(keys)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    said = (done.stdout + done.stderr).strip()
    if done.returncode != 8:
        raise ValueError(f"the change went unnoticed (exit {done.returncode}): {said}")
    return f"in a copy, event {event_id[:12]}… · found: exit {done.returncode}"


def _change_one_byte(copy: Path) -> str:
    ledger = sqlite3.connect(copy)
    seq, raw = ledger.execute("select seq, bytes from events order by seq limit 1 offset 4").fetchone()
    changed = bytearray(raw)
    at = bytes(changed).index(b'"decision":"') + len(b'"decision":"')
    changed[at] ^= 1
    ledger.execute("update events set bytes = ? where seq = ?", (bytes(changed), seq))
    ledger.commit()
    ledger.close()
    event_id: str = json.loads(raw)["event_id"]
    return event_id
