"""How bytes cross the provider interface: as text, or as base64 in a text."""

import binascii

from workers.host.meter import HostError

UTF8, BASE64 = "utf8", "base64"


def to_bytes(text: str, encoding: str) -> bytes:
    """The bytes that a guest's text stands for. Raises HostError invalid-input."""
    if encoding == UTF8:
        return text.encode()
    try:
        return binascii.a2b_base64(text.encode(), strict_mode=True)
    except (binascii.Error, UnicodeEncodeError):
        raise HostError("invalid-input", "the data is not base64") from None


def to_text(data: bytes, encoding: str) -> str:
    """`data` for a guest that asked for `encoding`. Raises HostError invalid-input for bytes that are not
    UTF-8."""
    if encoding == BASE64:
        return binascii.b2a_base64(data, newline=False).decode("ascii")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise HostError("invalid-input", "the data is not UTF-8; ask for base64") from None
