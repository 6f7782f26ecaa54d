"""Proofs that must be refused: one row each, with the code it must get and the reason it must be refused for.

The reason keeps rows honest: a proof that is refused for something else than what it is about proves nothing. Over the
wire only the code can be seen.
"""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from tests.support.proofs import (
    ABSENT,
    ORDER,
    Key,
    assemble,
    b64,
    compact_json,
    header_of,
    payload_of,
    proof,
    raw_signature,
)


@dataclass(frozen=True)
class Scene:
    """The request that a proof is about, and the key that its token is bound to."""

    method: str
    url: str
    token: str
    now: float
    key: Key = field(default_factory=Key)

    def proof(self, *, header: dict[str, Any] | None = None, **changes: Any) -> str:
        """A proof for this request with some of it changed."""
        return proof(self.key, self.method, self.url, self.token, now=self.now, header=header, **changes)

    def header(self, **changes: Any) -> bytes:
        """The header's JSON."""
        return compact_json(header_of(self.key, **changes))

    def payload(self, **changes: Any) -> bytes:
        """The payload's JSON."""
        return compact_json(payload_of(self.method, self.url, self.token, now=self.now, **changes))

    def parts(self) -> list[str]:
        """The three parts of a good proof."""
        return self.proof().split(".")

    def jwk(self, **changes: Any) -> str:
        """A proof whose jwk has members changed, added or left out."""
        jwk = {name: value for name, value in {**self.key.jwk, **changes}.items() if value is not ABSENT}
        return self.proof(header={"jwk": jwk})

    def signed_with(self, sign: Callable[[bytes], bytes], **header: Any) -> str:
        """A good header and payload under another signature."""
        signed = f"{b64(self.header(**header))}.{b64(self.payload())}"
        return f"{signed}.{b64(sign(signed.encode('ascii')))}"


@dataclass(frozen=True)
class Hostile:
    """One row. `build` makes the proof; it must end in `code`, refused for `reason`."""

    name: str
    build: Callable[[Scene], str]
    reason: str
    code: str = "invalid_dpop"
    travels: bool = True
    """False: HTTP would refuse it or change it on the way."""


def _spare_bits(segment: str) -> str:
    """The same bytes, with a bit set that base64 does not use."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    assert len(segment) % 4
    return segment[:-1] + alphabet[alphabet.index(segment[-1]) | 1]


def _spare_bits_in_header(scene: Scene) -> str:
    # A header whose length leaves spare bits, whatever the key.
    header = next(text for pad in range(3) if len(text := scene.header(kid="k" * pad)) % 3)
    signed = f"{_spare_bits(b64(header))}.{b64(scene.payload())}"
    return f"{signed}.{b64(scene.key.signature(signed.encode()))}"


def _segment(scene: Scene, place: int, change: Callable[[str], str]) -> str:
    """A good proof with one part rewritten, signed again where the signature covers it."""
    parts = scene.parts()
    parts[place] = change(parts[place])
    if place < 2:
        parts[2] = b64(scene.key.signature(".".join(parts[:2]).encode("utf-8")))
    return ".".join(parts)


def _on_curve(curve: ec.EllipticCurve, name: str, size: int, alg: str) -> Callable[[Scene], str]:
    def build(scene: Scene) -> str:
        private = ec.generate_private_key(curve)
        numbers = private.public_key().public_numbers()
        jwk = {
            "kty": "EC",
            "crv": name,
            "x": b64(numbers.x.to_bytes(size, "big")),
            "y": b64(numbers.y.to_bytes(size, "big")),
        }

        def sign(data: bytes) -> bytes:
            r, s = decode_dss_signature(private.sign(data, ec.ECDSA(hashes.SHA256())))
            return r.to_bytes(size, "big") + s.to_bytes(size, "big")

        return scene.signed_with(sign, alg=alg, jwk=jwk)

    return build


def _rsa(scene: Scene) -> str:
    private = rsa.generate_private_key(65537, 2048)
    n = private.public_key().public_numbers().n
    jwk = {"kty": "RSA", "n": b64(n.to_bytes(256, "big")), "e": "AQAB"}
    return scene.signed_with(lambda data: private.sign(data, PKCS1v15(), hashes.SHA256()), alg="RS256", jwk=jwk)


def _hs256(secret: Callable[[Scene], bytes]) -> Callable[[Scene], str]:
    def build(scene: Scene) -> str:
        def sign(data: bytes) -> bytes:
            mac = hmac.HMAC(secret(scene), hashes.SHA256())
            mac.update(data)
            return mac.finalize()

        return scene.signed_with(sign, alg="HS256")

    return build


def _shifted_point(scene: Scene) -> str:
    y = int.from_bytes(_unb64(scene.key.y), "big")
    return scene.jwk(y=b64((y ^ 1).to_bytes(32, "big")))


def _unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")


def _text(scene: Scene, header: bytes | None = None, payload: bytes | None = None) -> str:
    return assemble(scene.key, header or scene.header(), payload or scene.payload())


def _twice(data: bytes, name: str, value: object) -> bytes:
    """The JSON object with `name` put in once more, in front."""
    return b"{" + compact_json({name: value})[1:-1] + b"," + data[1:]


def _escaped_twice(data: bytes) -> bytes:
    return b'{"\\u0068tm":"GET",' + data[1:]


_BASE64 = "is not base64url of a JSON object"
_SIGNATURE = "signature does not hold"

SHAPE = (
    Hostile("empty", lambda s: "", "three parts"),
    Hostile("one part", lambda s: s.parts()[0], "three parts"),
    Hostile("two parts", lambda s: ".".join(s.parts()[:2]), "three parts"),
    Hostile("four parts", lambda s: s.proof() + ".x", "three parts"),
    Hostile("empty payload", lambda s: f"{s.parts()[0]}..{s.parts()[2]}", "three parts"),
    Hostile("empty header", lambda s: "." + ".".join(s.parts()[1:]), _BASE64),
    Hostile("empty signature", lambda s: ".".join(s.parts()[:2]) + ".", "64 bytes"),
    Hostile("two proofs in one header", lambda s: f"{s.proof()}, {s.proof()}", "three parts"),
    Hostile("leading space", lambda s: " " + s.proof(), _BASE64, travels=False),
    Hostile("trailing newline", lambda s: s.proof() + "\n", "signature is not base64url", travels=False),
    Hostile("too long", lambda s: s.proof(note="n" * 4096), "too long"),
    Hostile("padding on the header", lambda s: _segment(s, 0, lambda p: p + "=" * (-len(p) % 4 or 4)), _BASE64),
    Hostile("padding on the payload", lambda s: _segment(s, 1, lambda p: p + "=" * (-len(p) % 4 or 4)), _BASE64),
    Hostile("padding on the signature", lambda s: _segment(s, 2, lambda p: p + "=="), "signature is not base64url"),
    Hostile("white space in the payload", lambda s: _segment(s, 1, lambda p: p[:8] + " " + p[8:]), _BASE64),
    Hostile("newline in the header", lambda s: _segment(s, 0, lambda p: p[:8] + "\n" + p[8:]), _BASE64),
    Hostile("standard alphabet", lambda s: _segment(s, 2, lambda p: "+/" * 43), "signature is not base64url"),
    Hostile("beyond ASCII", lambda s: s.parts()[0] + ".é." + s.parts()[2], _BASE64, travels=False),
    Hostile("spare bits in the header", _spare_bits_in_header, _BASE64),
    Hostile("spare bits in the signature", lambda s: _segment(s, 2, _spare_bits), "signature is not base64url"),
)

HEADER = (
    Hostile("header is an array", lambda s: _text(s, header=b"[" + s.header() + b"]"), _BASE64),
    Hostile("header is a string", lambda s: _text(s, header=b'"ES256"'), _BASE64),
    Hostile("header is null", lambda s: _text(s, header=b"null"), _BASE64),
    Hostile("header is not JSON", lambda s: _text(s, header=b"{typ:dpop}"), _BASE64),
    Hostile("garbage after the header", lambda s: _text(s, header=s.header() + b"{}"), _BASE64),
    Hostile("byte order mark", lambda s: _text(s, header=b"\xef\xbb\xbf" + s.header()), _BASE64),
    Hostile("header in UTF-16", lambda s: _text(s, header=s.header().decode().encode("utf-16")), _BASE64),
    Hostile("header not UTF-8", lambda s: _text(s, header=s.header(kid="K").replace(b"K", b"\xff")), _BASE64),
    Hostile(
        "header nested beyond the cap",
        lambda s: _text(s, header=b'{"a":' + b"[" * 2000 + b"]" * 2000 + b"}"),
        "too long",
    ),
    Hostile("header nested deep", lambda s: _text(s, header=b'{"a":' + b"[" * 1100 + b"]" * 1100 + b"}"), _BASE64),
    Hostile("typ missing", lambda s: s.proof(header={"typ": ABSENT}), "typ"),
    Hostile("typ JWT", lambda s: s.proof(header={"typ": "JWT"}), "typ"),
    Hostile("typ in another case", lambda s: s.proof(header={"typ": "DPoP+JWT"}), "typ"),
    Hostile("typ in an array", lambda s: s.proof(header={"typ": ["dpop+jwt"]}), "typ"),
    Hostile("typ twice", lambda s: _text(s, header=_twice(s.header(), "typ", "JWT")), _BASE64),
    Hostile("alg missing", lambda s: s.proof(header={"alg": ABSENT}), "alg"),
    Hostile("alg none", lambda s: s.signed_with(lambda d: b"", alg="none"), "alg"),
    Hostile("alg none, signed", lambda s: s.proof(header={"alg": "none"}), "alg"),
    Hostile("alg NONE", lambda s: s.proof(header={"alg": "NONE"}), "alg"),
    Hostile("alg es256", lambda s: s.proof(header={"alg": "es256"}), "alg"),
    Hostile("alg twice", lambda s: _text(s, header=_twice(s.header(), "alg", "none")), _BASE64),
    Hostile("HS256 with the JWK as secret", _hs256(lambda s: compact_json(s.key.jwk)), "alg"),
    Hostile("HS256 with x as secret", _hs256(lambda s: _unb64(s.key.x)), "alg"),
    Hostile("RS256", _rsa, "alg"),
    Hostile("ES384 on P-384", _on_curve(ec.SECP384R1(), "P-384", 48, "ES384"), "alg"),
    Hostile("ES256K", _on_curve(ec.SECP256K1(), "secp256k1", 32, "ES256K"), "alg"),
    Hostile("EdDSA", lambda s: s.proof(header={"alg": "EdDSA"}), "alg"),
    Hostile("crit", lambda s: s.proof(header={"crit": ["exp"], "exp": 0}), "extension"),
    Hostile("crit, empty", lambda s: s.proof(header={"crit": []}), "extension"),
    Hostile("payload not encoded (b64)", lambda s: s.proof(header={"b64": False}), "extension"),
)

KEYS = (
    Hostile("jwk missing", lambda s: s.proof(header={"jwk": ABSENT}), "jwk"),
    Hostile("jwk missing, kid instead", lambda s: s.proof(header={"jwk": ABSENT, "kid": s.key.jkt}), "jwk"),
    Hostile("jwk null", lambda s: s.proof(header={"jwk": None}), "jwk"),
    Hostile("jwk is text", lambda s: s.proof(header={"jwk": json.dumps(s.key.jwk)}), "jwk"),
    Hostile("jwk is an array", lambda s: s.proof(header={"jwk": [s.key.jwk]}), "jwk"),
    Hostile("jwk twice", lambda s: _text(s, header=_twice(s.header(), "jwk", Key().jwk)), _BASE64),
    Hostile("x twice in the jwk", lambda s: _text(s, header=s.header().replace(b'"x":', b'"x":"AA","x":')), _BASE64),
    Hostile("private member d", lambda s: s.jwk(d=s.key.x), "private member"),
    Hostile("private member k", lambda s: s.jwk(k=s.key.x), "private member"),
    Hostile("kty RSA", lambda s: s.jwk(kty="RSA"), "kty"),
    Hostile("kty oct", lambda s: s.jwk(kty="oct", k="AA"), "private member"),
    Hostile("kty missing", lambda s: s.jwk(kty=ABSENT), "kty"),
    Hostile("crv P-384 named", lambda s: s.jwk(crv="P-384"), "crv"),
    Hostile("crv missing", lambda s: s.jwk(crv=ABSENT), "crv"),
    Hostile("secp256k1 under ES256", _on_curve(ec.SECP256K1(), "secp256k1", 32, "ES256"), "crv"),
    Hostile("P-384 key under ES256", _on_curve(ec.SECP384R1(), "P-384", 48, "ES256"), "crv"),
    Hostile("x missing", lambda s: s.jwk(x=ABSENT), "jwk: x"),
    Hostile("y missing", lambda s: s.jwk(y=ABSENT), "jwk: y"),
    Hostile("x is a number", lambda s: s.jwk(x=7), "jwk: x"),
    Hostile("x padded", lambda s: s.jwk(x=s.key.x + "="), "jwk: x"),
    Hostile("x of 31 bytes", lambda s: s.jwk(x=b64(_unb64(s.key.x)[1:])), "jwk: x"),
    Hostile("y of 33 bytes", lambda s: s.jwk(y=b64(b"\0" + _unb64(s.key.y))), "jwk: y"),
    Hostile("x beyond ASCII", lambda s: s.jwk(x="é" * 43), "jwk: x"),
    Hostile("spare bits in x", lambda s: s.jwk(x=_spare_bits(s.key.x)), "bound to"),
    Hostile("a point off the curve", _shifted_point, "bound to"),
    Hostile("a certificate beside the key", lambda s: s.jwk(x5c=["AAAA"]), "does not belong"),
    Hostile("jwk for encryption", lambda s: s.jwk(use="enc"), "does not belong"),
    Hostile("jwk for another alg", lambda s: s.jwk(alg="ES384"), "does not belong"),
    Hostile("another's key", lambda s: Scene(s.method, s.url, s.token, s.now).proof(), "bound to"),
    Hostile("another's key under our jwk", lambda s: s.signed_with(Key().signature), _SIGNATURE),
)

CLAIMS = (
    Hostile("payload is an array", lambda s: _text(s, payload=b"[" + s.payload() + b"]"), _BASE64),
    Hostile("payload is a number", lambda s: _text(s, payload=b"1"), _BASE64),
    Hostile("garbage after the payload", lambda s: _text(s, payload=s.payload() + b" x"), _BASE64),
    Hostile("NaN in the payload", lambda s: _text(s, payload=s.payload().replace(b"{", b'{"n":NaN,', 1)), _BASE64),
    Hostile("htm twice", lambda s: _text(s, payload=_twice(s.payload(), "htm", "GET")), _BASE64),
    Hostile("htm twice, once escaped", lambda s: _text(s, payload=_escaped_twice(s.payload())), _BASE64),
    Hostile(
        "duplicate in a nested claim", lambda s: _text(s, payload=b'{"o":{"a":1,"a":1},' + s.payload()[1:]), _BASE64
    ),
    Hostile("htm missing", lambda s: s.proof(htm=ABSENT), "htm"),
    Hostile("htm of another method", lambda s: s.proof(htm="PUT"), "htm"),
    Hostile("htm in lower case", lambda s: s.proof(htm=s.method.lower()), "htm"),
    Hostile("htm in an array", lambda s: s.proof(htm=[s.method]), "htm"),
    Hostile("htu missing", lambda s: s.proof(htu=ABSENT), "htu"),
    Hostile("htu in an array", lambda s: s.proof(htu=[s.url]), "htu"),
    Hostile("htu empty", lambda s: s.proof(htu=""), "htu"),
    Hostile("htu a path only", lambda s: s.proof(htu="/v1/actions/a/execute"), "htu"),
    Hostile("htu of another host", lambda s: s.proof(htu=s.url.replace("://", "://evil.")), "htu"),
    Hostile("htu with user information", lambda s: s.proof(htu=s.url.replace("://", "://user@")), "htu"),
    Hostile("htu of another port", lambda s: s.proof(htu="http://127.0.0.1:1/v1/actions/a/execute"), "htu"),
    Hostile("htu of another scheme", lambda s: s.proof(htu="ftp" + s.url[s.url.index(":") :]), "htu"),
    Hostile("htu of another action", lambda s: s.proof(htu=s.url + "x"), "htu"),
    Hostile("htu with a trailing slash", lambda s: s.proof(htu=s.url + "/"), "htu"),
    Hostile("htu in another case of the path", lambda s: s.proof(htu=s.url.replace("/v1", "/V1")), "htu"),
    Hostile("htu percent-encoded", lambda s: s.proof(htu=s.url.replace("/v1", "/%761")), "htu"),
    Hostile("htu with dots", lambda s: s.proof(htu=s.url.replace("/v1", "/x/../v1")), "htu"),
    Hostile("htu with a space", lambda s: s.proof(htu=s.url + " "), "htu"),
    Hostile("htu with a foreign letter", lambda s: s.proof(htu=s.url.replace("/v1", "/\u212a1")), "htu"),
    Hostile("ath missing", lambda s: s.proof(ath=ABSENT), "ath"),
    Hostile("ath of another token", lambda s: s.proof(ath=b64(bytes(32))), "ath"),
    Hostile("ath padded", lambda s: s.proof(ath=json.loads(s.payload())["ath"] + "="), "ath"),
    Hostile("ath null", lambda s: s.proof(ath=None), "ath"),
    Hostile("jti missing", lambda s: s.proof(jti=ABSENT), "jti"),
    Hostile("jti empty", lambda s: s.proof(jti=""), "jti"),
    Hostile("jti of 129 characters", lambda s: s.proof(jti="j" * 129), "jti"),
    Hostile("jti a number", lambda s: s.proof(jti=7), "jti"),
    Hostile("jti null", lambda s: s.proof(jti=None), "jti"),
    Hostile(
        "jti half a character", lambda s: _text(s, payload=s.payload(jti="J").replace(b'"J"', b'"\\ud800"')), _BASE64
    ),
)

TIMES = (
    Hostile("iat missing", lambda s: s.proof(iat=ABSENT), "iat"),
    Hostile("iat as text", lambda s: s.proof(iat=str(int(s.now))), "iat is not a number"),
    Hostile("iat true", lambda s: s.proof(iat=True), "iat is not a number"),
    Hostile("iat null", lambda s: s.proof(iat=None), "iat is not a number"),
    Hostile("iat in milliseconds", lambda s: s.proof(iat=int(s.now * 1000)), "window"),
    Hostile("iat 90 s ago", lambda s: s.proof(iat=int(s.now) - 90), "window"),
    Hostile("iat 30 s ahead", lambda s: s.proof(iat=int(s.now) + 30), "window"),
    Hostile("iat negative", lambda s: s.proof(iat=-1), "window"),
    Hostile("iat of 400 digits", lambda s: s.proof(iat=10**400), "window"),
    Hostile("iat beyond floats", lambda s: _text(s, payload=b'{"iat":1e400,' + s.payload(iat=ABSENT)[1:]), _BASE64),
    Hostile("exp passed", lambda s: s.proof(exp=int(s.now) - 1), "exp"),
    Hostile("exp as text", lambda s: s.proof(exp="never"), "exp"),
    Hostile("nbf not come", lambda s: s.proof(nbf=int(s.now) + 60), "nbf"),
)

SIGNATURES = (
    Hostile("signature of another proof", lambda s: ".".join([*s.parts()[:2], s.parts()[2]]), _SIGNATURE),
    Hostile(
        "payload changed after signing", lambda s: ".".join([s.parts()[0], b64(s.payload()), s.parts()[2]]), _SIGNATURE
    ),
    Hostile("DER signature", lambda s: s.signed_with(s.key.der_signature), "64 bytes"),
    Hostile("signature of 63 bytes", lambda s: s.signed_with(lambda d: s.key.signature(d)[:-1]), "64 bytes"),
    Hostile("signature of 65 bytes", lambda s: s.signed_with(lambda d: s.key.signature(d) + b"\0"), "64 bytes"),
    Hostile("r zero", lambda s: s.signed_with(lambda d: raw_signature(0, s.key.numbers(d)[1])), "out of range"),
    Hostile("s zero", lambda s: s.signed_with(lambda d: raw_signature(s.key.numbers(d)[0], 0)), "out of range"),
    Hostile("r and s zero", lambda s: s.signed_with(lambda d: bytes(64)), "out of range"),
    Hostile("r the group's order", lambda s: s.signed_with(lambda d: raw_signature(ORDER, 1)), "out of range"),
    Hostile("s the group's order", lambda s: s.signed_with(lambda d: raw_signature(1, ORDER)), "out of range"),
    Hostile("all ones", lambda s: s.signed_with(lambda d: b"\xff" * 64), "out of range"),
    Hostile("r and s one", lambda s: s.signed_with(lambda d: raw_signature(1, 1)), _SIGNATURE),
    Hostile(
        "r and s exchanged", lambda s: s.signed_with(lambda d: raw_signature(*reversed(s.key.numbers(d)))), _SIGNATURE
    ),
    Hostile(
        "signed without the header", lambda s: s.signed_with(lambda d: s.key.signature(d.split(b".")[1])), _SIGNATURE
    ),
)

KINDS = (SHAPE, HEADER, KEYS, CLAIMS, TIMES, SIGNATURES)
HOSTILE_PROOFS = tuple(row for kind in KINDS for row in kind)
ONE_OF_EACH_KIND = tuple(next(row for row in kind if row.travels and row.name != "empty") for kind in KINDS)
"""For tests over the wire: `tests/frontend/auth/test_dpop_hostile.py` tries every row."""
