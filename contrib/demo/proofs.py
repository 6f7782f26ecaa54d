"""DPoP proofs in thirty lines, for the demo's operator and for the replay it tries (RFC 9449 §4.2)."""

import base64
import hashlib
import json
import time
import uuid

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature


def b64(data: bytes) -> str:
    """base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def public_jwk(key: ec.EllipticCurvePrivateKey) -> dict[str, str]:
    """The public half of a P-256 key as a JWK."""
    numbers = key.public_key().public_numbers()
    x, y = (b64(number.to_bytes(32, "big")) for number in (numbers.x, numbers.y))
    return {"kty": "EC", "crv": "P-256", "x": x, "y": y}


def signed_headers(key: ec.EllipticCurvePrivateKey, token: str, method: str, url: str) -> dict[str, str]:
    """Authorization and DPoP headers of one request; `url` is public_base_url and path."""
    claims = {
        "jti": str(uuid.uuid4()),
        "htm": method,
        "htu": url.split("?")[0],
        "iat": int(time.time()),
        "ath": b64(hashlib.sha256(token.encode()).digest()),
    }
    header = {"typ": "dpop+jwt", "alg": "ES256", "jwk": public_jwk(key)}
    text = ".".join(b64(json.dumps(part).encode()) for part in (header, claims))
    r, s = decode_dss_signature(key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
    return {"Authorization": f"DPoP {token}", "DPoP": f"{text}.{b64(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"}
