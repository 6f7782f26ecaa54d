"""An agent's key with the lease that is bound to it, and the bytes of its requests, signed before any clock runs."""

import base64
import hashlib
import time
import uuid

import msgspec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Identity:
    """A key and the token that is bound to it; the token is a stand-in of the usual size until a lease is taken."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        numbers = self._key.public_key().public_numbers()
        x, y = (_b64(number.to_bytes(32, "big")) for number in (numbers.x, numbers.y))
        self.jwk = {"kty": "EC", "crv": "P-256", "x": x, "y": y}
        self._head = _b64(msgspec.json.encode({"typ": "dpop+jwt", "alg": "ES256", "jwk": self.jwk}))
        self.token = _b64(hashlib.sha512(self._head.encode()).digest() * 8)

    def proof(self, method: str, url: str) -> str:
        """A fresh proof of possession (RFC 9449 §4.2)."""
        ath = _b64(hashlib.sha256(self.token.encode()).digest())
        claims = {"jti": str(uuid.uuid4()), "htm": method, "htu": url, "iat": int(time.time()), "ath": ath}
        text = f"{self._head}.{_b64(msgspec.json.encode(claims))}"
        r, s = decode_dss_signature(self._key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{text}.{_b64(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"

    def post(self, base_url: str, path: str, body: str, more: tuple[str, ...] = ()) -> bytes:
        """The bytes of one POST with a proof of its own, and more lines of its head."""
        lines = (
            f"POST {path} HTTP/1.1", "Host: localhost", f"Authorization: DPoP {self.token}",
            f"DPoP: {self.proof('POST', base_url + path)}", "Content-Type: application/json",
            f"Content-Length: {len(body)}", *more,
        )  # fmt: skip
        return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()
