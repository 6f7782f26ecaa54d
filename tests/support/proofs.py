"""Keys and DPoP proofs for tests: good ones in one call, and every part of one replaceable.

Written against RFC 9449 and RFC 7515 with `cryptography` and the standard library alone, so that a test does not judge
the gateway's code by itself.
"""

import base64
import hashlib
import json
import time
import uuid
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import load_pem_private_key

ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""Number of points on P-256: r and s lie below it."""

ABSENT: Any = object()
"""As the value of a member: leave it out."""


YOUNG_SECONDS = 50.0
"""A proof is good for a minute: what is older may be refused for its age as well."""


def used_codes(signed_at: float) -> set[str]:
    """The codes that a used proof of that time may be refused with now, even on a slow machine."""
    return {"replay_detected"} if time.time() - signed_at < YOUNG_SECONDS else {"replay_detected", "invalid_dpop"}


def b64(data: bytes) -> str:
    """base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def compact_json(value: object) -> bytes:
    """JSON without white space, members in the order given."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8")


def ath(token: str) -> str:
    """The `ath` claim for a token."""
    return b64(hashlib.sha256(token.encode("ascii")).digest())


class Key:
    """A P-256 key pair with its public JWK and thumbprint."""

    def __init__(self, private: ec.EllipticCurvePrivateKey | None = None) -> None:
        self.private = private or ec.generate_private_key(ec.SECP256R1())
        numbers = self.private.public_key().public_numbers()
        self.x = b64(numbers.x.to_bytes(32, "big"))
        self.y = b64(numbers.y.to_bytes(32, "big"))

    @classmethod
    def from_pem_file(cls, path: str | Path) -> "Key":
        """The key in an unencrypted PEM file, such as an operator's."""
        private = load_pem_private_key(Path(path).read_bytes(), password=None)
        assert isinstance(private, ec.EllipticCurvePrivateKey)
        return cls(private)

    @property
    def jwk(self) -> dict[str, Any]:
        """The public key; a fresh dict each time, free to be spoilt."""
        return {"kty": "EC", "crv": "P-256", "x": self.x, "y": self.y}

    @property
    def jkt(self) -> str:
        """RFC 7638 thumbprint."""
        return b64(hashlib.sha256(json.dumps(self.jwk, sort_keys=True, separators=(",", ":")).encode()).digest())

    def der_signature(self, data: bytes) -> bytes:
        """ES256 as DER."""
        return self.private.sign(data, ec.ECDSA(hashes.SHA256()))

    def numbers(self, data: bytes) -> tuple[int, int]:
        """r and s of a fresh ES256 signature."""
        return decode_dss_signature(self.der_signature(data))

    def signature(self, data: bytes) -> bytes:
        """ES256 as JOSE wants it: r and s, 32 bytes each."""
        return raw_signature(*self.numbers(data))


def raw_signature(r: int, s: int) -> bytes:
    """r and s as 64 bytes."""
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def _without_absent(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not ABSENT}


def header_of(key: Key, **changes: Any) -> dict[str, Any]:
    """The header of a good proof, with members changed, added, or left out (ABSENT)."""
    return _without_absent({"typ": "dpop+jwt", "alg": "ES256", "jwk": key.jwk, **changes})


def payload_of(method: str, url: str, token: str, *, now: float | None = None, **changes: Any) -> dict[str, Any]:
    """The claims of a good proof, with claims changed, added, or left out (ABSENT)."""
    iat = int(time.time() if now is None else now)
    claims = {"jti": str(uuid.uuid4()), "htm": method, "htu": url, "iat": iat, "ath": ath(token)}
    return _without_absent({**claims, **changes})


def assemble(key: Key, header: bytes, payload: bytes) -> str:
    """A compact JWS over these very bytes, properly signed."""
    signed = f"{b64(header)}.{b64(payload)}"
    return f"{signed}.{b64(key.signature(signed.encode('ascii')))}"


def proof(
    key: Key, method: str, url: str, token: str, *, now: float | None = None, header: dict[str, Any] | None = None,
    **changes: Any,
) -> str:  # fmt: skip
    """A signed proof. `header` and further keywords change its header and its claims; ABSENT leaves one out."""
    return assemble(
        key,
        compact_json(header_of(key, **(header or {}))),
        compact_json(payload_of(method, url, token, now=now, **changes)),
    )
