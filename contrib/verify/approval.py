"""Verifies an operator's own signature in an evidence bundle: python approval.py BUNDLE.json [--operator-jkt JKT]...

The receipt of a call that a person approved may hold what that person has signed: a JWS (RFC 7515) about one plan. This
proves that the key has signed it, and that the receipt tells of the same plan; verify.py beside it proves that the
receipt is in the log. Imports nothing of the gateway; opens no connection. Exit code 0: proven; 1: not proven, with the
first thing that does not fit; 2: usage, or nothing to read.
"""

import argparse
import base64
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

MAX_BYTES = 16 * 1024 * 1024
JWS = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{86})", re.ASCII)


class Refusal(Exception):
    """Not proven: a class for programs and a sentence for people. The class "unreadable" is exit code 2."""


def require(holds: bool, sentence: str) -> None:
    if not holds:
        raise Refusal("approval_signature", sentence)


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose member names differ. Raises ValueError."""
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a member name stands twice in one object")
    return dict(pairs)


def json_object(data: bytes) -> dict[str, Any]:
    """Raises ValueError for anything else."""
    try:
        document = json.loads(data.decode(), object_pairs_hook=unique, parse_constant=int)  # int refuses NaN
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(document, dict):
        raise ValueError("no object")
    return document


def unbase64url(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def opened(text: object) -> tuple[str, dict[str, Any]]:
    """The thumbprint (RFC 7638) of the key that has signed a JWS, and its claims."""
    try:
        parts = JWS.fullmatch(text) if isinstance(text, str) else None
        head, body, pair = (unbase64url(part) for part in (parts.groups() if parts else ()))
        header, claims = json_object(head), json_object(body)
        if (header["typ"], header["alg"]) != ("approval+jws", "ES256"):
            raise ValueError("another type or algorithm")
        x, y = (unbase64url(header["jwk"][name]) for name in "xy")
        key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), b"\x04" + x + y)
        signature = encode_dss_signature(int.from_bytes(pair[:32], "big"), int.from_bytes(pair[32:], "big"))
        key.verify(signature, str(text).rpartition(".")[0].encode(), ec.ECDSA(SHA256()))
    except (InvalidSignature, ValueError, TypeError, KeyError):
        raise Refusal("approval_signature", "The signature of the approval is invalid.") from None
    jwk = f'{{"crv":"P-256","kty":"EC","x":"{base64url(x)}","y":"{base64url(y)}"}}'
    return base64url(sha256(jwk.encode()).digest()), claims


def verify(data: bytes, operators: Sequence[str] = ()) -> list[str]:
    """What an operator has signed, in sentences. Raises Refusal. `operators` are thumbprints of trusted keys."""
    try:
        if len(data) > MAX_BYTES:
            raise ValueError("larger than 16 MB")
        receipt = json_object(base64.b64decode(str(json_object(data)["receipt"]), validate=True))
    except (ValueError, KeyError) as error:
        raise Refusal("unreadable", f"There is no bundle with a receipt: {error!a}.") from None
    given = receipt.get("approval")
    approval: dict[str, Any] = given if isinstance(given, dict) else {}
    require("signature" in approval, "The receipt has no operator's signature.")
    jkt, claims = opened(approval["signature"])
    require(jkt == approval.get("operator_jkt"), "Another key than the one that the receipt names has signed it.")
    require(not operators or jkt in operators, f"The key {jkt} is none of those that were given.")
    told = {
        "approval_id": approval.get("approval_id"), "action_id": receipt.get("action_id"),
        "plan_hash": receipt.get("plan_hash"), "decision": "approve",
    }  # fmt: skip
    for name, value in told.items():
        require(claims.get(name) == value, f"What was signed has another {name} than the receipt.")
    by = approval.get("approved_by")
    require(claims.get("operator", by) == by, "What was signed names another operator than the receipt.")
    try:
        moment = datetime.fromtimestamp(claims["iat"], UTC).isoformat()
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        raise Refusal("approval_signature", "What was signed has no possible time.") from None
    return [
        f"The key {jkt} signed, at {moment}, that it approves {claims['approval_id']!a} of {claims['action_id']!a}.",
        f"The receipt {receipt.get('receipt_id')!a} says that it is the key of {by!a}." if not operators
        else f"It is a key that you trust; the receipt {receipt.get('receipt_id')!a} names its owner {by!a}.",
        f"The plan has the hash {claims['plan_hash']!a}; what was shown has the hash {claims.get('shown_hash')!a}.",
        f"It may teach the action: {claims.get('learn_domain')!a}, {claims.get('learn_path')!a}.",
        "Not checked here: that the receipt is in a log (verify.py).",
    ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description="Verifies an operator's signature in a bundle.", allow_abbrev=False)
    parser.add_argument("bundle", metavar="BUNDLE.json")
    parser.add_argument("--operator-jkt", action="append", default=[], metavar="JKT", help="a trusted thumbprint")
    given = parser.parse_args()
    try:
        with open(given.bundle, "rb") as bundle:
            said = verify(bundle.read(MAX_BYTES + 1), given.operator_jkt)
    except (OSError, Refusal) as error:
        reason, sentence = error.args if isinstance(error, Refusal) else ("unreadable", str(error))
        print(f"not proven ({reason}): {sentence}")
        return 2 if reason == "unreadable" else 1
    print("proven", *said, sep="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
