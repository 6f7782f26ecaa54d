"""RFC 8785: the one form of a JSON value that is hashed and signed."""

import hashlib
from typing import Any

import rfc8785


def canonical_bytes(value: Any) -> bytes:
    """The canonical form. Raises ValueError for what has none (integers beyond 2^53, lone surrogates, and so on)."""
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, ValueError, TypeError, RecursionError):
        raise ValueError("this value has no canonical form") from None


def sha256(data: bytes) -> str:
    """`sha256:` and the hash in hex."""
    return "sha256:" + hashlib.sha256(data).hexdigest()
