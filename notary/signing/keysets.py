"""Sets of public keys (JWKS files): the key in use and those before it that something may have to be checked with.

Guarantees that what is read is whole: known members alone, usable keys, each under its own thumbprint and once. When
a key came and went is kept beside it and never published. Decides which keys stay; knows nothing of private ones.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ipc.keys.jwk import COORDINATE_BYTES, KeyRefused, PublicKey, p256_thumbprint, thumbprint
from ipc.process.clock import iso, parse_iso
from ipc.process.exits import Exit
from ipc.process.private_files import MAX_FILE_BYTES, PrivateFileError, read_private, write_private
from ipc.texts.encoding import b64url_decode, b64url_encode

_TIMES = ("created_at", "retired_at")


class ListedKey(msgspec.Struct, frozen=True):
    """One key of a set. Times as ISO 8601, None where they are unknown: in sets from before they were kept."""

    jwk: dict[str, str]
    """The members that are published."""
    created_at: str | None = None
    retired_at: str | None = None
    """Since when another key signs; None for the one in use."""

    @property
    def kid(self) -> str:
        """RFC 7638 thumbprint."""
        return self.jwk["kid"]

    def is_over(self, now: float, keep_seconds: float | None) -> bool:
        """Whether nothing that the key signed can still be in force. Never, without `keep_seconds`."""
        if keep_seconds is None or self.retired_at is None:
            return False
        return parse_iso(self.retired_at) + keep_seconds <= now


class SetKind(msgspec.Struct, frozen=True):
    """Common members of the keys of one set: those with a fixed value, and those that are numbers in base64url."""

    fixed: Mapping[str, str]
    numbers: tuple[str, ...]
    check: Callable[[dict[str, str]], object]
    """Raises ValueError for numbers that are no key."""


def _check_ed25519(jwk: dict[str, str]) -> object:
    return Ed25519PublicKey.from_public_bytes(b64url_decode(jwk["x"]))


def _check_p256(jwk: dict[str, str]) -> object:
    return EllipticCurvePublicKey.from_encoded_point(
        SECP256R1(), b"\x04" + b64url_decode(jwk["x"]) + b64url_decode(jwk["y"])
    )


ED25519_SET = SetKind({"crv": "Ed25519", "kty": "OKP", "use": "sig", "alg": "EdDSA"}, ("x",), _check_ed25519)
P256_SET = SetKind({"crv": "P-256", "kty": "EC", "use": "sig", "alg": "ES256"}, ("x", "y"), _check_p256)


def public_key_of(key: EllipticCurvePrivateKey) -> PublicKey:
    """The public half of one of our own keys. Raises KeyRefused for another curve."""
    if not isinstance(key.curve, SECP256R1):
        raise KeyRefused("crv", 'must be "P-256"')
    numbers = key.public_key().public_numbers()
    x, y = (b64url_encode(number.to_bytes(COORDINATE_BYTES, "big")) for number in (numbers.x, numbers.y))
    return PublicKey(x, y, p256_thumbprint(x, y))


def public_jwk(key: Ed25519PrivateKey | EllipticCurvePrivateKey) -> dict[str, str]:
    """The public half as a JWK (RFC 7517, RFC 8037) with its thumbprint as `kid`."""
    if isinstance(key, Ed25519PrivateKey):
        members = {"crv": "Ed25519", "kty": "OKP", "x": b64url_encode(key.public_key().public_bytes_raw())}
        return {**members, "kid": thumbprint(members), "use": "sig", "alg": "EdDSA"}
    public = public_key_of(key)
    return {**public.jwk(), "kid": public.jkt, "use": "sig", "alg": "ES256"}


def read_set(path: Path, kind: SetKind) -> tuple[ListedKey, ...]:
    """The keys in a private file, oldest first; none where there is no file. Raises KeyFileError with the place."""
    if not os.path.lexists(path):
        return ()
    try:
        keys = msgspec.json.decode(read_private(path), type=dict[str, list[dict[str, Any]]])["keys"]
    except (ValueError, RecursionError, KeyError):
        raise PrivateFileError(f"{path}: is not a JWKS, an object with an array named keys.", Exit.CONFIG) from None
    listed: dict[str, ListedKey] = {}
    for number, members in enumerate(keys):
        try:
            one = _listed(members, kind)
            if listed.setdefault(one.kid, one) is not one:
                raise ValueError("is listed twice")
        except ValueError as error:
            raise PrivateFileError(f"{path}: keys[{number}] {error}. Mend or remove this entry.", Exit.CONFIG) from None
    return tuple(listed.values())


def _listed(members: dict[str, Any], kind: SetKind) -> ListedKey:
    if "d" in members:
        raise ValueError("holds a private key (d), and this set is published")
    wanted = (*kind.fixed, *kind.numbers, "kid")
    for name in (*wanted, *(time for time in _TIMES if time in members)):
        if not isinstance(members.get(name), str):
            raise ValueError(f"has no {name} that is a text")
    for name, value in kind.fixed.items():
        if members[name] != value:
            raise ValueError(f'is foreign: its {name} must be "{value}"')
    if unknown := members.keys() - {*wanted, *_TIMES}:
        raise ValueError(f"has a member that does not belong here: {ascii(min(unknown))[:40]}")
    try:
        kind.check(members)
    except ValueError:
        raise ValueError(f"is no key: {' and '.join(kind.numbers)} make none") from None
    if members["kid"] != thumbprint({name: members[name] for name in ("crv", "kty", *kind.numbers)}):
        raise ValueError("has another kid than its thumbprint (RFC 7638)")
    for name in _TIMES:
        if name in members:
            _check_time(name, members[name])
    return ListedKey({name: members[name] for name in wanted}, members.get("created_at"), members.get("retired_at"))


def _check_time(name: str, text: str) -> None:
    try:
        parse_iso(text)
    except ValueError as error:
        raise ValueError(f"has a {name} that is {error}") from None


def write_set(path: Path, listed: Iterable[ListedKey], *, max_bytes: int = MAX_FILE_BYTES) -> None:
    """Put these keys into the file, durably and at once. Raises KeyFileError; then the file is as it was."""
    if path.is_symlink():
        raise PrivateFileError(f"{path}: is a link. Name the file that it leads to.", Exit.CONFIG)
    keys = [
        one.jwk | {name: time for name in _TIMES if (time := getattr(one, name)) is not None} for one in listed
    ]  # fmt: skip
    write_private(path, msgspec.json.format(msgspec.json.encode({"keys": keys}), indent=2) + b"\n", max_bytes=max_bytes)


def settled(
    listed: Iterable[ListedKey], current: ListedKey, now: float, keep_seconds: float | None
) -> tuple[ListedKey, ...]:  # fmt: skip
    """The set as it must be while `current` signs: that one in use, all others retired, those that are over gone.

    Applied to its own result it changes nothing. `keep_seconds` None: keys stay for ever.
    """
    kept, is_listed = [], False
    for one in listed:
        if one.kid == current.kid:
            is_listed = True
            one = msgspec.structs.replace(one, retired_at=None)
        elif one.retired_at is None and (one.created_at is not None or keep_seconds is not None):
            one = msgspec.structs.replace(one, retired_at=iso(now))
        if not one.is_over(now, keep_seconds):
            kept.append(one)
    return tuple(kept) if is_listed else (*kept, current)


def published(listed: Iterable[ListedKey], current_kid: str) -> dict[str, list[dict[str, str]]]:
    """The set as the interface shows it: the key in use first, then the others, the latest first."""
    latest_first = [one.jwk for one in reversed(tuple(listed))]
    return {"keys": sorted(latest_first, key=lambda jwk: jwk["kid"] != current_kid)}
