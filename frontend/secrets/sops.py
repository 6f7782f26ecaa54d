"""SOPS files of JSON: one data key, encrypted to age recipients, and every value encrypted by it.

The format is that of getsops/sops (README, "Encryption Protocol"; `aes/cipher.go`, `sops.go` of v3): a value is
`ENC[AES256_GCM,data:…,iv:…,tag:…,type:str]`, authenticated with its path; the MAC, a SHA-512 of all values in their
order, is encrypted with the time of the last change. Opened here and not by `sops` from the PATH, since a front may run
no program (frontend/walls.py). Guarantees that a file in which anything was changed, cut, moved or added is refused
whole, and that what is refused shows no value: what is wrong is returned as a sentence, never raised.
"""

import hashlib
import hmac
import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Sequence
from typing import Any, Final

import pyrage
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MEMBER: Final = "sops"
"""Where a file keeps how it is encrypted: no name of a secret."""
MAX_RECIPIENTS: Final = 64
_BASE64 = r"([A-Za-z0-9+/]*={0,2})"
_ENCRYPTED = re.compile(rf"ENC\[AES256_GCM,data:{_BASE64},iv:{_BASE64},tag:{_BASE64},type:(\w+)\]")
_KEY_BYTES = 32
_ONLY_ENCRYPTED = hashlib.sha256(b"sops").digest()
"""The start of a MAC that covers encrypted values only (`MACOnlyEncryptedInitialization`)."""


def opened(document: dict[str, Any], identities: Sequence[pyrage.x25519.Identity]) -> dict[str, str] | str:
    """The values of a parsed SOPS file, or what is wrong with it."""
    told = document.get(MEMBER)
    if not isinstance(told, dict):
        return "the member sops is not an object"
    if told.get("key_groups") or told.get("shamir_threshold"):
        return "SOPS key groups are not supported; encrypt it to age recipients alone"
    changed, mac = told.get("lastmodified"), told.get("mac")
    if not isinstance(changed, str) or not isinstance(mac, str):
        return "the SOPS file has no lastmodified or no mac"
    key = _data_key(told.get("age"), identities)
    if isinstance(key, str):
        return key
    values: dict[str, str] = {}
    digest = hashlib.sha512(_ONLY_ENCRYPTED if told.get("mac_only_encrypted") is True else b"")
    for name, sealed in document.items():
        if name == MEMBER:
            continue
        value = _value(sealed, key, f"{name}:")
        if value is None:
            return f"the value of {name!r} is not a text that was encrypted by SOPS for this place"
        digest.update(value.encode())
        values[name] = value
    signed = _value(mac, key, changed)
    if signed is None or not hmac.compare_digest(signed.encode(), digest.hexdigest().upper().encode()):
        return "the SOPS MAC does not fit: the file was changed without sops, or is cut"
    return values


def _data_key(rows: object, identities: Sequence[pyrage.x25519.Identity]) -> bytes | str:
    """The key of the values, or what is wrong."""
    if not isinstance(rows, list) or not rows or len(rows) > MAX_RECIPIENTS:
        return "the SOPS file names no age recipient, or too many"
    for row in rows:
        sealed = row.get("enc") if isinstance(row, dict) else None
        if not isinstance(sealed, str):
            continue
        try:
            key = bytes(pyrage.decrypt(sealed.encode(), identities))
        except (pyrage.DecryptError, UnicodeEncodeError):
            continue
        if len(key) == _KEY_BYTES:
            return key
    return "the SOPS file is not encrypted to the identity of age_identity_file"


def _value(sealed: object, key: bytes, place: str) -> str | None:
    """The text in one `ENC[…]`; None if the value has none."""
    match = _ENCRYPTED.fullmatch(sealed) if isinstance(sealed, str) else None
    if match is None or match[4] != "str":
        return None
    try:
        data, nonce, tag = (b64decode(part, validate=True) for part in match.groups()[:3])
        return AESGCM(key).decrypt(nonce, data + tag, place.encode()).decode()
    except (NotBase64, InvalidTag, ValueError):
        return None
