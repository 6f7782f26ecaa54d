"""DPoP proofs (RFC 9449 §4.2): one for each request that is sent, never a second use.

A proof holds for method, URI and token, and for about a minute. The library keeps no proof.
"""

import hashlib
import json
import secrets
from collections.abc import Callable

from gateway_client.keys import ProofKey, b64url
from gateway_client.wire.exchange import Headers, UnprovenCall


class Prover:
    """Signs for one key and one `public_base_url`. `now` in Unix seconds."""

    def __init__(self, key: ProofKey, public_base_url: str, now: Callable[[], float]) -> None:
        self._key = key
        self._base = public_base_url
        self._now = now
        self._header = _part({"typ": "dpop+jwt", "alg": "ES256", "jwk": key.jwk})

    def headers(self, call: UnprovenCall, token: str) -> Headers:
        """Authorization and DPoP for one sending of this call."""
        return (("Authorization", f"DPoP {token}"), ("DPoP", self.proof(call, token)))

    def proof(self, call: UnprovenCall, token: str) -> str:
        """A fresh proof. The query is no part of it (RFC 9449 §4.2)."""
        now = self._now()
        claims = {
            "jti": uuid7(now),
            "htm": call.method,
            "htu": self._base + call.path,
            "iat": int(now),
            "ath": b64url(hashlib.sha256(token.encode()).digest()),
        }
        signed = f"{self._header}.{_part(claims)}"
        return f"{signed}.{b64url(self._key.sign(signed.encode()))}"


def uuid7(now: float) -> str:
    """A UUID of version 7 (RFC 9562 §5.7): milliseconds, then 74 random bits."""
    number = (int(now * 1000) & (1 << 48) - 1) << 80 | secrets.randbits(80)
    number = number & ~(0xF << 76) | 7 << 76
    number = number & ~(0x3 << 62) | 2 << 62
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _part(value: object) -> str:
    return b64url(json.dumps(value, separators=(",", ":")).encode())
