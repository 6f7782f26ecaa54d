"""Operators' signatures of decisions, good by default and spoilt where a test says so."""

import base64
import json
import time
from typing import Any

from tests.support.proofs import ABSENT, Key, assemble, compact_json

BASE = "http://gateway.test"


def claims_of(detail: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The claims of a good signature of an approval, with some changed, added, or left out (ABSENT)."""
    claims = {
        "aud": BASE, "decision": "approve", "iat": int(time.time()),
        **{name: detail[name] for name in ("approval_id", "action_id", "plan_hash", "shown_hash")},
    }  # fmt: skip
    return {name: value for name, value in (claims | changes).items() if value is not ABSENT}


def signature_of(key: Key, detail: dict[str, Any], header: dict[str, Any] | None = None, **changes: Any) -> str:
    """A compact JWS of these claims; `header` are other members of it."""
    members = {"typ": "approval+jws", "alg": "ES256", "jwk": key.jwk, **(header or {})}
    members = {name: value for name, value in members.items() if value is not ABSENT}
    return assemble(key, compact_json(members), compact_json(claims_of(detail, **changes)))


def tampered(signature: str, **claims: Any) -> str:
    """The same with other claims, which the signature does not know of."""
    header, payload, end = signature.split(".")
    stated = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))) | claims
    encoded = base64.urlsafe_b64encode(compact_json(stated)).decode().rstrip("=")
    return f"{header}.{encoded}.{end}"
