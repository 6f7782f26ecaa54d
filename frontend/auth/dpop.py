"""DPoP proofs (RFC 9449 §4.3): that the sender of this request holds the key its token is bound to.

Guarantees that an accepted proof was signed by that key, for this method, this URI and this token, and not long ago.
SECURITY: every check is made on every proof, `typ`, `alg` and `jwk` of the header included. The cache of headers keeps
the outcome of all those checks, for exactly these bytes: a header that differs in a character is read whole, no matter
which key it names. The key is compared with the token's binding every time. The store ensures that a proof is used
once: see `replay_key`. Never reads `Host`.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from frontend.auth.keys import KeyCache, parse_point
from frontend.errors import GateError
from ipc.keys.jwk import KeyRefused, coordinates, p256_thumbprint
from ipc.keys.jws import MAX_AHEAD_SECONDS, es256_numbers, is_recent, split
from ipc.network.htu import normalise_htu, without_query
from ipc.texts.encoding import b64url_decode, b64url_encode, decode_object

MAX_PROOF_CHARACTERS = 4096
MAX_JTI_CHARACTERS = 128
CACHED_HEADERS = 2048
"""Headers remembered, at about a kilobyte each."""
MAX_CACHED_CHARACTERS = 768
"""A longer header is read whole every time: no known client needs as much, and the cache stays small."""
_ES256 = ec.ECDSA(hashes.SHA256())


class Proof(msgspec.Struct, frozen=True):
    """A proof that holds. `iat` in Unix seconds; `jkt` is the thumbprint of the key that signed it."""

    jti: str
    iat: float
    jkt: str


def replay_key(jkt: str, jti: str) -> str:
    """The key under which the store remembers a proof: 43 characters, for any `jti`."""
    return b64url_encode(hashlib.sha256(f"{jkt}.{jti}".encode()).digest())


def _refuse(cause: str) -> NoReturn:
    raise GateError("invalid_dpop", cause=cause)


class _NamedKey(NamedTuple):
    """The key that a header names: coordinates, and their thumbprint."""

    x: str
    y: str
    jkt: str


def _read_header(segment: str) -> _NamedKey:
    """The key that a header names, once all else in it is as it must be. Raises GateError."""
    try:
        header = decode_object(b64url_decode(segment))
    except ValueError:
        _refuse("header is not base64url of a JSON object")
    if header.get("typ") != "dpop+jwt":
        _refuse("typ is not dpop+jwt")
    if header.get("alg") != "ES256":
        _refuse("alg is not ES256")
    if "crit" in header or "b64" in header:
        _refuse("header asks for an extension")
    try:
        x, y = coordinates(header.get("jwk"))
    except KeyRefused as error:
        _refuse(f"jwk: {error}")
    return _NamedKey(x, y, p256_thumbprint(x, y))


def _number(value: object) -> float | None:
    """A NumericDate (RFC 7519 §2), which may have a fraction; None for any other JSON value, booleans included."""
    return value if type(value) is int or type(value) is float else None


def _check_times(payload: dict[str, Any], now: float) -> float:
    """`iat`, which must be recent. Raises GateError.

    `exp` and `nbf` are not part of a proof, but a client that sets them means them (RFC 7519 §4.1.4).
    """
    iat = _number(payload.get("iat"))
    if iat is None:
        _refuse("iat is not a number")
    if not is_recent(iat, now):
        _refuse("iat is outside the window")
    if "exp" in payload:
        exp = _number(payload["exp"])
        if exp is None or now >= exp:
            _refuse("exp has passed")
    if "nbf" in payload:
        nbf = _number(payload["nbf"])
        if nbf is None or now + MAX_AHEAD_SECONDS < nbf:
            _refuse("nbf has not come")
    return iat


def _jti(payload: dict[str, Any]) -> str:
    jti = payload.get("jti")
    if type(jti) is not str or not 0 < len(jti) <= MAX_JTI_CHARACTERS:
        _refuse("jti is not a text of 1 to 128 characters")
    return jti


def _der_signature(segment: str) -> bytes:
    """The signature in the form that `cryptography` wants. Raises GateError."""
    try:
        return encode_dss_signature(*es256_numbers(segment))
    except ValueError as error:
        _refuse(str(error))


class DpopVerifier:
    """Checks proofs for requests to one `public_base_url`, the only place a request's URI comes from.

    `aliases` are other base URLs of the same address (ipc/network/loopback.py `loopback_aliases`). Raises ValueError
    when one of them is not an absolute http or https URI.
    """

    def __init__(self, public_base_url: str, aliases: Sequence[str] = ()) -> None:
        self._base = normalise_htu(public_base_url).rstrip("/")
        self._aliases = tuple(normalise_htu(one).rstrip("/") for one in aliases)
        self.keys = KeyCache()
        self.headers: dict[str, _NamedKey] = {}
        """By exact header segment, least recently used first: only headers of proofs whose signature held."""

    def verify(
        self, proof: str, *, method: str, path: str, access_token: str, expected_jkt: str | None, now: float
    ) -> Proof:
        """The proof, if it holds for this request. Raises GateError invalid_dpop with the cause.

        `path` is the request's path as it was received, not decoded. `expected_jkt` None accepts any key, and is for an
        operator without `dpop_jkt`, which exists in dev mode only. Cheap checks come before the signature; keys that
        nothing is bound to never reach the cache.
        """
        if len(proof) > MAX_PROOF_CHARACTERS:
            _refuse("proof is too long")
        try:
            signed, header_segment, payload_segment, signature = split(proof)
        except ValueError:
            _refuse("proof does not have three parts")
        named = self.headers.get(header_segment) or _read_header(header_segment)
        if expected_jkt is not None and named.jkt != expected_jkt:
            _refuse("key is not the one that the token is bound to")
        try:
            payload = decode_object(b64url_decode(payload_segment))
        except ValueError:
            _refuse("payload is not base64url of a JSON object")
        self._check_request(payload, method, path, access_token)
        iat = _check_times(payload, now)
        jti = _jti(payload)
        self._check_signature(signed, signature, named)
        self._remember(header_segment, named)
        return Proof(jti, iat, named.jkt)

    def signer_of(self, proof: str) -> str | None:
        """Thumbprint of the key that has signed a proof, for any request and token; None if none has."""
        signed, _, signature = proof.rpartition(".")
        try:
            if len(proof) > MAX_PROOF_CHARACTERS:
                return None
            named = _read_header(signed.partition(".")[0])
            # No token may be bound to this key, so its header is not cached.
            parse_point(named.x, named.y).verify(_der_signature(signature), signed.encode(), _ES256)
        except (GateError, KeyRefused, InvalidSignature):
            return None
        return named.jkt

    def _remember(self, segment: str, named: _NamedKey) -> None:
        if len(segment) > MAX_CACHED_CHARACTERS:
            return
        self.headers.pop(segment, None)
        if len(self.headers) >= CACHED_HEADERS:
            del self.headers[next(iter(self.headers))]
        self.headers[segment] = named

    def _check_request(self, payload: dict[str, Any], method: str, path: str, access_token: str) -> None:
        if payload.get("htm") != method:
            _refuse("htm is not the request's method")
        htu = payload.get("htu")
        if type(htu) is not str:
            _refuse("htu is not a text")
        expected = self._base + without_query(path)
        if htu != expected:
            try:
                htu = normalise_htu(htu)
            except ValueError:
                _refuse("htu is not an absolute URI")
            if htu != expected and htu not in [alias + without_query(path) for alias in self._aliases]:
                _refuse(f"htu is not the request's URI, which begins with {self._base}/")
        if payload.get("ath") != b64url_encode(hashlib.sha256(access_token.encode()).digest()):
            _refuse("ath is not the token's hash")

    def _check_signature(self, signed: str, signature: str, named: _NamedKey) -> None:
        der = _der_signature(signature)
        try:
            self.keys.public_key(named.x, named.y).verify(der, signed.encode(), _ES256)
        except KeyRefused as error:
            _refuse(f"jwk: {error}")
        except InvalidSignature:
            _refuse("signature does not hold")
