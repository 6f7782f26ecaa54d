"""Receipt: GET /v1/receipts/{receipt_id}."""

import contextlib
import hashlib
import json
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from jwt.utils import base64url_decode
from latchgate import ExecutionReceipt

from tests.conformance.deployment import Deployment
from tests.conformance.marks import row, rows
from tests.conformance.scene import PATIENCE
from tests.conformance.shapes import UUID7, is_id, is_sha256, seconds_of
from tests.conformance.stories import Restart
from tests.conformance.underway import still_workers
from tests.support.gateway import wait_for

Receipt = dict[str, Any]
UNSIGNED = {"result_hash", "receipt_signature", "signing_key_id", "signature_status"}


@pytest.fixture(scope="module")
def receipt(gate: Deployment) -> Receipt:
    """The receipt of a file that was written, and found as it should be."""
    agent = gate.agent()
    answer = agent.execute("file_write", {"path": "receipt.txt", "content": "evidence"})
    assert answer.status_code == 200, answer.text
    return dict(agent.get(f"/v1/receipts/{answer.json()['receipt_id']}").json())


def is_computing(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "R"


@pytest.fixture(scope="module")
def killed(gate: Deployment) -> Receipt:
    """The receipt of a call whose worker died."""
    agent = gate.agent()
    with still_workers(gate) as workers:
        call, _ = workers.begin(lambda: agent.execute("spin", {"seconds": PATIENCE}))

    def is_over() -> bool:
        """A worker that is killed before it began did not have the call, so the next worker has it."""
        for one in gate.gateway.children("worker compute"):
            with contextlib.suppress(psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
                if is_computing(one.pid):
                    one.send_signal(signal.SIGKILL)
        return not call.is_under_way()

    wait_for(is_over, "the end of its worker")
    assert call.status() == 502
    return gate.receipt_of(agent)


# ------------------------------------------------------------------------------------------------ fields


@rows(
    "receipt",
    {
        "receipt_id": lambda one: is_id("rcpt_", one["receipt_id"]) and re.search(UUID7, one["receipt_id"]),
        "grant_id": lambda one: is_id("grant_", one["grant_id"]),
        "provider_receipt": lambda one: one["provider_receipt"]["bytes"] == 8,
        "normalized_result": lambda one: isinstance(one["normalized_result"]["kind"], str),
        "kind-success": lambda one: (
            one["normalized_result"]["kind"] == "success" and isinstance(one["normalized_result"]["summary"], str)
        ),
        "effect_evidence": lambda one: isinstance(one["effect_evidence"], list) and one["effect_evidence"],
        "started_at": lambda one: seconds_of(one["started_at"]) > 0,
        "finished_at": lambda one: seconds_of(one["finished_at"]) >= seconds_of(one["started_at"]),
        "failure_class-null": lambda one: "failure_class" in one and one["failure_class"] is None,
    },
)
def test_the_receipt_has_it(receipt: Receipt, case: Callable[[Receipt], Any]) -> None:
    assert case(receipt)


@row("receipt/provider_module_digest")
def test_the_digest_is_that_of_the_module_that_ran(gate: Deployment, receipt: Receipt) -> None:
    assert is_sha256(receipt["provider_module_digest"])
    shown = gate.client.get("/v1/actions/file_write").json()["provider_module_digest"]
    assert receipt["provider_module_digest"] == shown


@row("receipt/verification_outcome", "receipt/failure_class-verification_failed")
def test_the_outcome_is_tagged_by_status(gate: Deployment, receipt: Receipt) -> None:
    assert receipt["verification_outcome"]["status"] == "verified"
    assert receipt["verification_outcome"]["evidence"]
    agent = gate.agent()
    agent.execute("unseen", {"text": "x"})
    failed = gate.receipt_of(agent)
    assert failed["verification_outcome"]["status"] == failed["failure_class"] == "verification_failed"
    assert failed["verification_outcome"]["reason"]


def envelope(receipt: Receipt) -> bytes:
    """The bytes that are signed."""
    return rfc8785.dumps({name: value for name, value in receipt.items() if name not in UNSIGNED})


@row("receipt/result_hash")
def test_the_hash_is_that_of_the_canonical_envelope(receipt: Receipt) -> None:
    assert receipt["result_hash"] == f"sha256:{hashlib.sha256(envelope(receipt)).hexdigest()}"


@row("receipt/receipt_signature", "receipt/signing_key_id")
def test_the_signature_holds_for_a_stranger(gate: Deployment, receipt: Receipt) -> None:
    keys = {key["kid"]: key for key in gate.operator().get("/v1/receipt-keys").json()["keys"]}
    key = Ed25519PublicKey.from_public_bytes(base64url_decode(keys[receipt["signing_key_id"]]["x"]))
    key.verify(bytes.fromhex(receipt["receipt_signature"]), envelope(receipt))


# ------------------------------------------------------------------------------------------------ failures


@row("receipt/kind-internal_error", "receipt/failure_class-internal_error")
def test_a_worker_that_died_is_our_failure(killed: Receipt) -> None:
    assert (killed["normalized_result"]["kind"], killed["failure_class"]) == ("internal_error", "internal_error")


@row("receipt/kind-cancelled")
def test_a_call_that_was_cut_leaves_a_receipt(restart: Restart) -> None:
    assert restart.cut_receipt["normalized_result"]["kind"] == "cancelled"
    assert restart.cut_receipt["signature_status"] == "verified"


# ------------------------------------------------------------------------------------------------ signature status


def stored(gate: Deployment, receipt_id: str) -> Receipt:
    ((data,),) = gate.select("select bytes from receipts where receipt_id = ?", receipt_id)
    return dict(json.loads(bytes(data)))


CHANGES: dict[str, Callable[[Receipt], Receipt]] = {
    "unsigned": lambda one: {k: v for k, v in one.items() if k not in {"receipt_signature", "signing_key_id"}},
    "unknown_kid": lambda one: one | {"signing_key_id": "a-key-of-somebody-else"},
    "signature_invalid": lambda one: one | {"provider_receipt": {"bytes": 0}},
}


@rows("receipt", {f"status-{name}": name for name in CHANGES}, {"status-unsigned": ["versioning/5-unsigned"]})
def test_a_receipt_that_was_changed_says_so(gate: Deployment, case: str) -> None:
    receipt_id = gate.agent().execute("text_digest", {"text": "x"}).json()["receipt_id"]
    changed = CHANGES[case](stored(gate, receipt_id))
    data = json.dumps(changed).encode()
    assert gate.change("update receipts set bytes = ? where receipt_id = ?", data, receipt_id) == 1
    answer = gate.receipt(receipt_id)
    assert answer["signature_status"] == case
    kept = {"receipt_signature", "signing_key_id"} & set(answer)
    assert len(kept) == (0 if case == "unsigned" else 2)


@row("receipt/status-verified", "receipt/status-not-stored")
def test_a_good_receipt_is_verified_which_is_no_part_of_what_is_stored(gate: Deployment, receipt: Receipt) -> None:
    assert receipt["signature_status"] == "verified"
    assert set(receipt) - set(stored(gate, receipt["receipt_id"])) == {"signature_status"}


@row("receipt/sdk-is_fully_successful")
def test_the_public_client_derives_full_success(receipt: Receipt, killed: Receipt) -> None:
    assert ExecutionReceipt._from_json(receipt).is_fully_successful is True
    assert ExecutionReceipt._from_json(killed).is_fully_successful is False
