"""Evidence that a stranger can check: receipts against public keys, the chain against itself."""

import hashlib
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from tests.support.gateway import Bearer, Gateway

UNSIGNED = ("result_hash", "receipt_signature", "signing_key_id", "signature_status")


def verify_signature(receipt: dict[str, Any], keys: list[dict[str, str]]) -> None:
    import base64

    key = next(key for key in keys if key["kid"] == receipt["signing_key_id"])
    raw = base64.urlsafe_b64decode(key["x"] + "=" * (-len(key["x"]) % 4))
    signed = rfc8785.dumps({name: value for name, value in receipt.items() if name not in UNSIGNED})
    assert receipt["result_hash"] == "sha256:" + hashlib.sha256(signed).hexdigest()
    Ed25519PublicKey.from_public_bytes(raw).verify(bytes.fromhex(receipt["receipt_signature"]), signed)


def test_a_stranger_verifies_a_receipt_with_the_published_keys(agent: Bearer, operator: Bearer) -> None:
    keys = operator.get("/v1/receipt-keys").json()["keys"]
    assert [set(key) >= {"kty", "crv", "alg", "x", "kid", "use"} for key in keys]
    for action, body in (("text_digest", {"text": "é"}), ("spin", {"fuel": 10**11, "memory_mb": 0, "seconds": 0})):
        agent.execute(action, body)
    for event in operator.get(f"/v1/audit/events?session_id={agent.session_id}&event_type=ActionCall").json()["events"]:
        verify_signature(agent.get(f"/v1/receipts/{event['receipt_id']}").json(), keys)


def test_looking_at_the_receipt_keys_is_audited(gate: Gateway, operator: Bearer) -> None:
    before = len(gate.events(event_type="ReceiptKeysRead"))
    operator.get("/v1/receipt-keys")
    assert len(gate.events(event_type="ReceiptKeysRead")) == before + 1


def test_the_chain_links_each_event_to_the_bytes_before_it(gate: Gateway, agent: Bearer) -> None:
    for number in range(3):
        agent.execute("text_digest", {"text": str(number)})
    newest_first = gate.events(limit=1000)
    with sqlite3.connect(f"file:{gate.state / 'ledger.sqlite3'}?mode=ro", uri=True) as ledger:
        tables = {name for (name,) in ledger.execute("select name from sqlite_master where type='table'")}
    ledger.close()
    assert {"events", "intents", "receipts", "outbox", "meta"} <= tables
    for newer, older in pairwise(newest_first):
        assert newer["prev_hash"] == "sha256:" + hashlib.sha256(rfc8785.dumps(older)).hexdigest()


def test_verify_says_intact_and_counts(operator: Bearer) -> None:
    report = operator.get("/v1/audit/verify").json()
    assert report["intact"] is True
    assert report["broken_at"] is None
    assert report["events_checked"] == report["total_events"] > 0


def test_one_changed_byte_in_a_copy_is_found_offline(gate: Gateway, operator: Bearer, tmp_path: Path) -> None:
    with (
        closing(sqlite3.connect(f"file:{gate.state / 'ledger.sqlite3'}?mode=ro", uri=True)) as whole_ledger,
        closing(sqlite3.connect(tmp_path / "ledger.sqlite3")) as copy,
    ):
        whole_ledger.backup(copy)
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps(operator.get("/v1/receipt-keys").json()))
    command = [
        str(Path(sys.executable).with_name("gateway")), "ledger", "verify", str(tmp_path / "ledger.sqlite3"),
        "--keys", str(keys),
    ]  # fmt: skip
    whole = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert whole.returncode == 0, whole.stdout + whole.stderr
    ledger = sqlite3.connect(tmp_path / "ledger.sqlite3")
    holds = "instr(bytes, cast('\"allow\"' as blob))"
    (seq, raw) = ledger.execute(f"select seq, bytes from events where {holds} order by seq limit 1").fetchone()
    changed = bytes(raw).replace(b'"allow"', b'"deny!"', 1)
    assert changed != bytes(raw)
    ledger.execute("update events set bytes = ? where seq = ?", (changed, seq))
    ledger.commit()
    ledger.close()
    broken = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert broken.returncode == 8, broken.stdout + broken.stderr
    assert json.loads(raw)["event_id"] in broken.stdout + broken.stderr or "broken" in broken.stdout


def test_queries_filter_with_exclusive_bounds(gate: Gateway, agent: Bearer) -> None:
    for number in range(3):
        agent.execute("text_digest", {"text": str(number)})
    mine = gate.events(session_id=agent.session_id, event_type="ActionCall")
    assert [event["timestamp"] for event in mine] == sorted((e["timestamp"] for e in mine), reverse=True)
    bound = mine[1]["timestamp"]
    later = gate.events(session_id=agent.session_id, event_type="ActionCall", after=bound)
    earlier = gate.events(session_id=agent.session_id, event_type="ActionCall", before=bound)
    assert all(event["timestamp"] > bound for event in later)
    assert all(event["timestamp"] < bound for event in earlier)
    assert len(gate.events(limit=1)) == 1
    assert gate.events(principal="nobody") == []


def test_an_answer_for_an_unknown_receipt_is_404(agent: Bearer) -> None:
    assert agent.get("/v1/receipts/rcpt_none").status_code == 404
    assert agent.get("/v1/receipts/..%2Fetc").status_code == 404
