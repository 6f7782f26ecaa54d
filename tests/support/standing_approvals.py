"""Standing approvals as operators sign them, good by default and spoilt where a test says so."""

import time
from typing import Any
from uuid import uuid4

from tests.support.proofs import ABSENT, Key, assemble, compact_json


def standing_terms(**changes: Any) -> dict[str, Any]:
    """The claims of a good one for calls of `text_digest` by `uid:1000`, some changed, added or left out (ABSENT)."""
    now = changes.pop("now", time.time())
    terms = {
        "aud": ["http://localhost", "localhost"], "standing_id": f"sta_{uuid4()}", "action_id": "text_digest",
        "principal": "uid:1000", "until": int(now) + 3600, "iat": int(now), "operator": "ann",
    }  # fmt: skip
    return {name: value for name, value in (terms | changes).items() if value is not ABSENT}


def signed_standing(key: Key, header: dict[str, Any] | None = None, **changes: Any) -> str:
    """A compact JWS of these terms; `header` are other members of it."""
    members = {"typ": "standing+jws", "alg": "ES256", "jwk": key.jwk, **(header or {})}
    return assemble(key, compact_json(members), compact_json(standing_terms(**changes)))
