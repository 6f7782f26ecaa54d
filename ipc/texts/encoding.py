"""The two encodings of compact JOSE texts, each with exactly one accepted spelling of a value.

base64url without padding (RFC 7515 §2) in its canonical form only, and JSON objects without duplicate members
(RFC 7515 §4, RFC 8725 §2.4). A text that a laxer parser could read differently is refused. Errors are ValueErrors
that never repeat the input.
"""

import binascii
import json
from typing import Any

import msgspec

from ipc.texts.json_values import names_in

_TO_STANDARD = bytes.maketrans(b"-_", b"+/")
_TO_URL = bytes.maketrans(b"+/", b"-_")
_decode_json = msgspec.json.Decoder().decode
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode_json = msgspec.json.Encoder().encode


def b64url_encode(data: bytes) -> str:
    """base64url without padding."""
    return binascii.b2a_base64(data, newline=False).translate(_TO_URL).rstrip(b"=\n").decode("ascii")


def b64url_decode(text: str) -> bytes:
    """The bytes of canonical, unpadded base64url.

    Raises ValueError for padding, white space, any other character, an impossible length, and for spare bits that are
    not zero: all of them are what encoding the result again would not give.
    """
    segment = text.encode("ascii")
    data = binascii.a2b_base64(segment.translate(_TO_STANDARD) + b"==")
    if binascii.b2a_base64(data, newline=False).translate(_TO_URL).rstrip(b"=") != segment:
        raise ValueError("not canonical base64url")
    return data


def _distinct_members(pairs: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("duplicate member")


def decode_object(data: bytes) -> dict[str, Any]:
    """The JSON object that `data` holds, in UTF-8.

    Raises ValueError for anything else: other values, trailing bytes, NaN, infinities, numbers out of range, lone
    surrogates, and a member named twice at any depth.
    """
    try:
        value = _decode_json(data)
        if type(value) is not dict:
            raise ValueError("not an object")
        # msgspec keeps the last of two equal names and says nothing. Text that is, byte for byte, what its own value
        # encodes to can't hold a name twice; that is how clients write, and it costs a quarter of the other way.
        if _encode_json(value) != data:
            json.loads(data.decode("utf-8"), object_pairs_hook=_distinct_members)
    except (msgspec.MsgspecError, RecursionError):
        raise ValueError("not JSON") from None
    return value


def decode_object_apart(data: bytes, apart: set[str]) -> dict[str, Any]:
    """As decode_object, but each member that `apart` names is bytes: its text as it stands there, for another reader.
    A null is None.

    Raises ValueError as decode_object does; of those texts only where they are not JSON at all.
    """
    try:
        members = _decode_members(data)
    except (msgspec.MsgspecError, RecursionError):
        raise ValueError("not JSON") from None
    texts = {name: bytes(text) for name, text in members.items()}
    if names_in(data) != len(texts) + sum(map(names_in, texts.values())):
        raise ValueError("duplicate member")
    others = [_encode_json(name) + b":" + text for name, text in texts.items() if name not in apart]
    kept = {name: None if text == b"null" else text for name, text in texts.items() if name in apart}
    return decode_object(b"{" + b",".join(others) + b"}") | kept
