"""P-256 public keys as clients send them: checked whole, and a cache of parsed ones.

Guarantees that a key which left this module is a point on the curve, written in the one canonical way
(ipc/keys/jwk.py). Never reads a file, never holds a private key.
"""

from cryptography.hazmat.primitives.asymmetric import ec

from ipc.keys.jwk import KeyRefused, PublicKey, coordinates, p256_thumbprint
from ipc.texts.encoding import b64url_decode

CACHED_KEYS = 2048
"""Parsed keys kept, at about 2 kB each."""


def parse_point(x: str, y: str) -> ec.EllipticCurvePublicKey:
    """The key at these coordinates. Raises KeyRefused when they are not canonical base64url or not on the curve."""
    try:
        point = b"\x04" + b64url_decode(x) + b64url_decode(y)
    except ValueError:
        raise KeyRefused("", "x and y must be canonical base64url without padding") from None
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    except ValueError:
        raise KeyRefused("", "x and y are not a point on P-256") from None


def parse_jwk(jwk: object) -> PublicKey:
    """A client's key, checked whole. Raises KeyRefused."""
    x, y = coordinates(jwk)
    parse_point(x, y)
    return PublicKey(x, y, p256_thumbprint(x, y))


class KeyCache:
    """Parsed keys by coordinates, the least recently used leaving first.

    SECURITY: this saves the arithmetic of finding a point on the curve and nothing else. The coordinates asked for are
    always those that the proof's own header names.
    """

    def __init__(self, capacity: int = CACHED_KEYS) -> None:
        self._capacity = capacity
        self._keys: dict[tuple[str, str], ec.EllipticCurvePublicKey] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def public_key(self, x: str, y: str) -> ec.EllipticCurvePublicKey:
        """The key at these coordinates. Raises KeyRefused; what is refused is not kept."""
        place = (x, y)
        key = self._keys.pop(place, None)
        if key is None:
            key = parse_point(x, y)
            if len(self._keys) >= self._capacity:
                del self._keys[next(iter(self._keys))]
        self._keys[place] = key
        return key
