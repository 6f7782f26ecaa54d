"""Leases that must be refused: one row each, made from a good lease and, where it needs that, by the gateway's own key.

`Mint` signs any claims with any key, so that every single check of a lease is met by a lease that fails only that one.
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.support.proofs import ABSENT, Key, b64, compact_json


def parts_of(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """(header, claims) of a token, unverified."""
    header, claims, _ = token.split(".")
    return _decoded(header), _decoded(claims)


def _decoded(segment: str) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4)))
    return fields


def signed(key: Key, header: dict[str, Any], claims: dict[str, Any]) -> str:
    """A compact JWS with a proper ES256 signature, whatever the header says."""
    text = ".".join(b64(compact_json(_without_absent(part))) for part in (header, claims))
    return f"{text}.{b64(key.signature(text.encode()))}"


def _without_absent(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not ABSENT}


@dataclass(frozen=True)
class Mint:
    """A good lease and the key that the gateway signs leases with."""

    good: str
    gateway_key: Key

    @classmethod
    def of(cls, state_dir: Path, good: str) -> "Mint":
        """The mint of a dev gateway, whose lease key lies in its state directory."""
        return cls(good, Key.from_pem_file(state_dir / "keys" / "lease.pem"))

    def claims(self, **changes: Any) -> str:
        """A lease with changed claims that the gateway itself would have signed."""
        header, claims = parts_of(self.good)
        return signed(self.gateway_key, header, claims | changes)

    def header(self, *, key: Key | None = None, **changes: Any) -> str:
        """A lease with a changed header, signed by the gateway's key or another."""
        header, claims = parts_of(self.good)
        return signed(key or self.gateway_key, header | changes, claims)

    def unsigned_change(self, **changes: Any) -> str:
        """Changed claims under the signature of the good lease."""
        header, _, signature = self.good.split(".")
        _, claims = parts_of(self.good)
        return ".".join([header, b64(compact_json(_without_absent(claims | changes))), signature])

    def hmac(self, secret: bytes) -> str:
        """HS256 over the good claims: what a verifier that believes `alg` would check with a public key."""
        header, claims = parts_of(self.good)
        text = ".".join(b64(compact_json(part)) for part in (header | {"alg": "HS256"}, claims))
        return f"{text}.{b64(hmac.new(secret, text.encode(), hashlib.sha256).digest())}"

    def without_signature(self, alg: str, signature: str) -> str:
        """The good claims under `alg`, with this text for a signature."""
        header, claims = parts_of(self.good)
        return ".".join([b64(compact_json(header | {"alg": alg})), b64(compact_json(claims)), signature])

    def public_pem(self) -> bytes:
        """The gateway's public lease key as PEM."""
        return self.gateway_key.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@dataclass(frozen=True)
class Forged:
    """One row: `build` makes a token that must end in `code`."""

    name: str
    build: Callable[[Mint], str]
    code: str = "invalid_lease"


_HALF = 10**9


FORGED_LEASES = (
    # signatures
    Forged("alg none, no signature", lambda m: m.without_signature("none", "")),
    Forged("alg None over 64 zero bytes", lambda m: m.without_signature("None", b64(bytes(64)))),
    Forged("HS256 with the public PEM as secret", lambda m: m.hmac(m.public_pem())),
    Forged("signed by a stranger", lambda m: m.header(key=Key())),
    Forged("zero signature", lambda m: m.without_signature("ES256", b64(bytes(64)))),
    # headers
    Forged("the attacker's key in the header", lambda m: m.header(key=(k := Key()), jwk=k.jwk)),
    Forged("the attacker's key under a URL", lambda m: m.header(key=Key(), jku="http://127.0.0.1:1/jwks.json")),
    Forged("kid a path", lambda m: m.header(kid="../../../../dev/null")),
    Forged("typ of a proof", lambda m: m.header(typ="dpop+jwt")),
    Forged("an extension that must be understood", lambda m: m.header(crit=["exp"])),
    # claims under the old signature
    Forged("another principal", lambda m: m.unsigned_change(sub="admin")),
    Forged("a longer life", lambda m: m.unsigned_change(exp=_HALF * 4)),
    # claims that only the gateway's own key could sign
    Forged("for several audiences", lambda m: m.claims(aud=["action-gateway", "another-service"])),
    Forged("without expiry", lambda m: m.claims(exp=ABSENT)),
    Forged("key binding null", lambda m: m.claims(cnf={"jkt": None})),
    Forged("of an epoch to come", lambda m: m.claims(epoch=7)),
    Forged("of a negative epoch", lambda m: m.claims(epoch=-1)),
    Forged("expired", lambda m: m.claims(iat=_HALF, nbf=_HALF, exp=_HALF + 300), "lease_expired"),
    Forged("expired, for another audience", lambda m: m.claims(aud="x", exp=_HALF)),
    Forged("expired, signed by a stranger", lambda m: signed(Key(), *_aged(m.good))),
    # no tokens
    Forged("nine kilobytes", lambda m: "A" * 9000 + m.good),
    Forged("padded", lambda m: m.good + "=="),
)


def _aged(good: str) -> tuple[dict[str, Any], dict[str, Any]]:
    header, claims = parts_of(good)
    return header, claims | {"exp": _HALF}
