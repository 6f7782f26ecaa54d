"""Bundles from the command line: fetched from a gateway, verified without one, refused when they were edited."""

import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from gateway_client import AgentClient, Executed, Held, ProofKey

from contrib.verify import oracle
from tests.contrib.verify.vectors import named
from tests.support.gatectl import Gatectl
from tests.support.gateway import Gateway


@pytest.fixture(scope="package")
def key(gatectl: Gatectl) -> str:
    keys = gatectl.done("audit", "checkpoint", "--json").json["keys"]
    assert len(keys) == 1
    return str(keys[0])


@pytest.fixture
def receipt_id(agent: AgentClient) -> str:
    done = agent.execute("text_digest", {"text": "bundle"})
    assert isinstance(done, Executed)
    return done.receipt_id


def verified(empty: Gatectl, file: Path, *arguments: str) -> dict[str, str]:
    """The verdict of gatectl on a bundle without a gateway, by its labels."""
    first, *lines = empty.done("verify", str(file), *arguments).out.splitlines()
    assert first == "proven"
    return {label.strip(): value for label, _, value in (line.partition("  ") for line in lines)}


def test_the_bundle_of_a_call_verifies_without_gateway_and_ledger(
    gatectl: Gatectl, empty: Gatectl, receipt_id: str, key: str, gate: Gateway, tmp_path: Path
) -> None:
    file, jwks, keys = tmp_path / "bundle.json", tmp_path / "jwks.json", tmp_path / "keys"
    file.write_text(gatectl.done("receipts", "bundle", receipt_id).out)
    jwks.write_text(gatectl.done("receipts", "keys").out)
    keys.write_text(f"{oracle.vkey(oracle.ORIGIN, oracle.LOG_KEY)}\n\n{key}\n")
    told = verified(empty, file, "--origin-key", key)
    assert told["who"].strip() == "dev:anonymous"
    assert told["what"].strip().startswith("text_digest ")
    assert told["result"].strip() == "success"
    assert told["approved by"].strip() == "none was needed"
    assert f"http://{told['log'].strip()}" == gate.base
    assert told["its signature"].strip().startswith("not checked")
    told = verified(empty, file, "--origin-key-file", str(keys), "--receipt-keys", str(jwks))
    assert told["its signature"].strip().startswith("valid, by the key ")
    ran = empty.process("verify", "-", "--origin-key", key, "--json", stdin=file.read_text())
    assert (ran.code, ran.json["proven"], ran.json["call"]["receipt_id"]) == (0, True, receipt_id)
    intent = ran.json["call"]["intent_id"]
    for arguments in (("--event", ran.json["call"]["event_id"]), ("--intent", intent)):
        file.write_text(gatectl.done("receipts", "bundle", *arguments).out)
        assert verified(empty, file, "--origin-key", key)["intent"].strip().startswith(intent)


def test_an_approved_call_is_proven_to_be_signed_by_its_operators_own_key(
    gatectl: Gatectl, empty: Gatectl, held: Held, key: str, gate: Gateway, tmp_path: Path
) -> None:
    done = gatectl.done("approvals", "approve", held.approval_id, "--yes", "--json").json
    operator, other = ProofKey.load(gate.state / "operator.pem"), ProofKey.generate()
    bundle, jwk, pem, private = (tmp_path / name for name in ("bundle.json", "op.jwk", "op.pem", "private.pem"))
    bundle.write_text(gatectl.done("receipts", "bundle", done["receipt_id"]).out)
    jwk.write_text(json.dumps(operator.jwk))
    loaded = load_pem_private_key((gate.state / "operator.pem").read_bytes(), None)
    pem.write_bytes(loaded.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    verify = ("--origin-key", key)
    assert verified(empty, bundle, *verify)["signed"].strip() == (
        f"by the key {operator.thumbprint}, not compared (--operator-jkt)"
    )
    for trusted in (
        ("--operator-jkt", operator.thumbprint),
        ("--operator-key", str(jwk)),
        ("--operator-key", str(pem)),
    ):
        told = verified(empty, bundle, *verify, "--operator-jkt", other.thumbprint, *trusted)
        assert told["signed"].strip() == f"by the key {operator.thumbprint}, the operator's own"
    ran = empty.here("verify", str(bundle), *verify, "--operator-jkt", other.thumbprint)
    assert (ran.code, "approval_signature" in ran.err) == (8, True)
    private.write_text("no key")
    for wrong in (("--operator-jkt", "short"), ("--operator-key", str(private)), ("--operator-key", str(bundle))):
        assert empty.here("verify", str(bundle), *verify, *wrong).code == 2


def test_an_edited_bundle_is_exit_8_with_the_first_thing_that_does_not_fit(
    gatectl: Gatectl, empty: Gatectl, receipt_id: str, key: str, tmp_path: Path
) -> None:
    proven = gatectl.done("receipts", "bundle", receipt_id).json
    file = tmp_path / "bundle.json"

    def refused(bundle: dict[str, Any], trusted: str = key) -> tuple[str, str]:
        file.write_text(json.dumps(bundle))
        ran = empty.here("verify", str(file), "--origin-key", trusted, "--json")
        assert (ran.code, ran.error["error"]) == (8, "bundle_not_proven")
        assert (ran.json["proven"], ran.json["call"]) == (False, None)
        said = empty.here("verify", str(file), "--origin-key", trusted)
        assert (said.code, said.out, said.err.count("\n")) == (8, "", 1)
        return str(ran.json["reason"]), said.err

    first, *others = proven["leaves"]
    assert refused(proven | {"leaves": [first | {"index": first["index"] - 1}, *others]})[0] in {"root", "proof_length"}
    other = named("proven-success").bundle
    assert refused(proven | {"receipt": other["receipt"]})[0] == "receipt_hash"
    reason, said = refused(proven, oracle.vkey(oracle.ORIGIN, oracle.LOG_KEY))
    assert reason == "note_origin"
    assert said.startswith("gatectl: bundle_not_proven: note_origin: The checkpoint is of the log '127.0.0.1")
    assert refused(proven | {"checkpoint": "\x1b[31m\n\n\N{EM DASH} x AAAA\n"})[0] == "note_malformed"


def test_a_command_line_that_names_no_key_or_no_bundle_is_usage(
    gatectl: Gatectl, empty: Gatectl, key: str, tmp_path: Path
) -> None:
    file, keys = tmp_path / "bundle.json", tmp_path / "keys"
    file.write_text("[]")
    keys.write_text("no key\n")
    assert "--origin-key VKEY" in empty.here("verify", str(file)).err
    for arguments in (
        ("verify", str(file)),
        ("verify", str(file), "--origin-key", "x"),
        ("verify", str(file), "--origin-key-file", str(keys)),
        ("verify", str(file), "--origin-key", key),
        ("verify", str(file), "--origin-key", key, "--receipt-keys", str(file)),
        ("verify", str(file), "--origin-key", key, "--witness-key", key),
        ("verify", str(tmp_path / "none"), "--origin-key", key),
        ("receipts", "bundle"),
        ("receipts", "bundle", "rcpt_1", "--event", "evt_1"),
    ):
        ran = gatectl.here(*arguments)
        assert (ran.code, ran.out) == (2, ""), arguments
    assert gatectl.here("receipts", "bundle", "rcpt_none").code == 4


def test_a_required_witness_is_reported(empty: Gatectl, tmp_path: Path) -> None:
    vector = named("proven-one-witness")
    file = tmp_path / "bundle.json"
    file.write_bytes(vector.data)
    told = verified(empty, file, "--origin-key", vector.origin_key, "--witness-key", vector.witness_keys[0])
    assert told["witness"].strip() == "witness.example.org, 2026-11-23T05:00:05Z"


def test_at_least_so_many_witnesses_may_be_asked_for(empty: Gatectl, tmp_path: Path) -> None:
    vector = named("proven-one-witness")
    stranger = oracle.vkey("witness.example.com", oracle.STRANGER, oracle.WITNESS)
    file = tmp_path / "bundle.json"
    file.write_bytes(vector.data)
    keys = ["--origin-key", vector.origin_key, "--witness-key", vector.witness_keys[0], "--witness-key", stranger]
    assert verified(empty, file, *keys, "--witnesses", "1")["witness"].split(",")[0].strip() == "witness.example.org"
    for more, code in ((("--witnesses", "2"), 8), ((), 8), (("--witnesses", "3"), 2), (("--witnesses", "0"), 2)):
        assert empty.here("verify", str(file), *keys, *more).code == code, more
