"""The grant: the front's signed word that this very plan may run, checked before anything of it does.

A compact JWS (ES256) over the plan's hash. Guarantees that the plan received is the plan that was decided about,
field for field, that the grant was made for this module and trace, and that its time has not passed. Holds public
keys only.
"""

import binascii
import time

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from ipc.plan import Plan, plan_hash

MAX_GRANT_CHARACTERS = 8192
MAX_KEYS = 64
CLOCK_SKEW_SECONDS = 60.0
"""How far in the future a grant may have been made: front and worker read one clock, at different moments."""
_PART_BYTES = 32
_TYPE = "gateway-grant+jwt"
_ALGORITHM = ec.ECDSA(hashes.SHA256())
# RFC 7515, appendix A.3.1: key, signed text and signature.
_KNOWN_X = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"
_KNOWN_Y = "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"
_KNOWN_SIGNED = (
    "eyJhbGciOiJFUzI1NiJ9."
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
)
_KNOWN_SIGNATURE = "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
_BASE64URL = bytes.maketrans(b"-_", b"+/")


class GrantRefused(Exception):
    """Nothing may run. The message says which check failed, for the log and the receipt."""


class Grant(msgspec.Struct, frozen=True):
    """What a checked grant says beyond the plan."""

    grant_id: str
    is_approved: bool
    """A person approved this plan; who, is in the grant's signature."""


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    alg: str
    typ: str
    kid: str


class _Claims(msgspec.Struct):
    grant_id: str
    plan_hash: str
    module_digest: str
    trace_id: str
    epoch: int
    iat: float
    exp: float
    approval: dict[str, object] | None = None


class _Key(msgspec.Struct):
    kid: str
    kty: str
    x: str
    y: str
    crv: str = ""


class _KeySet(msgspec.Struct):
    keys: list[_Key]


_read_header = msgspec.json.Decoder(_Header).decode
_read_claims = msgspec.json.Decoder(_Claims).decode
_read_keys = msgspec.json.Decoder(_KeySet).decode


class GrantVerifier:
    """Checks grants against the public keys of a Welcome."""

    def __init__(self, jwks: str) -> None:
        """Raises ValueError for a key set without a usable P-256 key."""
        try:
            found = _read_keys(jwks).keys
        except msgspec.DecodeError as error:
            raise ValueError(f"no key set: {error}") from None
        self._keys = {key.kid: _public_key(key) for key in found[:MAX_KEYS] if (key.kty, key.crv) == ("EC", "P-256")}
        if not self._keys:
            raise ValueError("the key set holds no P-256 key")

    def check(self, grant: str, plan: Plan) -> Grant:
        """Raises GrantRefused unless `grant` is signed by a known key, for this plan, and in force now."""
        claims = self._claims(grant)
        now = time.time()
        if claims.exp <= now:
            raise GrantRefused("the grant has expired")
        if claims.iat > now + CLOCK_SKEW_SECONDS:
            raise GrantRefused("the grant is from the future")
        if claims.plan_hash != plan_hash(plan):
            raise GrantRefused("the grant is for another plan")
        if claims.module_digest != plan.provider_module_digest:
            raise GrantRefused("the grant is for another module")
        if claims.trace_id != plan.trace_id:
            raise GrantRefused("the grant is for another call")
        if claims.epoch != plan.epoch:
            raise GrantRefused("the grant is of another epoch")
        return Grant(claims.grant_id, is_approved=bool(claims.approval))

    def _claims(self, grant: str) -> _Claims:
        parts = grant.split(".") if len(grant) <= MAX_GRANT_CHARACTERS else []
        if len(parts) != 3:
            raise GrantRefused("the grant is not a compact JWS")
        try:
            header = _read_header(_decoded(parts[0]))
        except ValueError:
            raise GrantRefused("the grant's header can't be read") from None
        key = self._keys.get(header.kid)
        if header.alg != "ES256" or header.typ != _TYPE or key is None:
            raise GrantRefused("the grant's header names another algorithm, type or key")
        # SECURITY: claims are read only once the signature over their exact bytes holds.
        _check_signature(key, f"{parts[0]}.{parts[1]}", parts[2])
        try:
            return _read_claims(_decoded(parts[1]))
        except ValueError:
            raise GrantRefused("the grant's claims can't be read") from None


def check_known_answer() -> None:
    """Verify the signature of RFC 7515's example. Raises GrantRefused when this installation's cryptography is wrong.

    Done in the template: what the library builds at its first use is then shared by all workers.
    """
    key = _public_key(_Key(kid="", kty="EC", x=_KNOWN_X, y=_KNOWN_Y))
    _check_signature(key, _KNOWN_SIGNED, _KNOWN_SIGNATURE)


def _check_signature(key: ec.EllipticCurvePublicKey, signed: str, signature: str) -> None:
    try:
        raw = _decoded(signature)
        if len(raw) != 2 * _PART_BYTES:
            raise GrantRefused("the grant's signature has the wrong length")
        r, s = (int.from_bytes(raw[start : start + _PART_BYTES], "big") for start in (0, _PART_BYTES))
        key.verify(encode_dss_signature(r, s), signed.encode("ascii"), _ALGORITHM)
    except (InvalidSignature, ValueError):
        raise GrantRefused("the grant's signature does not hold") from None


def _public_key(key: _Key) -> ec.EllipticCurvePublicKey:
    x, y = (int.from_bytes(_decoded(part), "big") for part in (key.x, key.y))
    return ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()


def _decoded(text: str) -> bytes:
    """base64url without padding. Raises ValueError."""
    segment = text.encode("ascii")
    if b"=" in segment or b"+" in segment or b"/" in segment:
        raise ValueError("not base64url")
    # A text is translated a character at a time, bytes by a table: a tenth of the time.
    return binascii.a2b_base64(segment.translate(_BASE64URL) + b"=" * (-len(segment) % 4), strict_mode=True)
