"""The file that a call is to write, as its plan says: `fs_hash` compares with it, after the call and again later.

The notary keeps it with the intent (`GrantTerms` in ipc/operations/calls.py): it is all that is left to compare with
when a call has no receipt. It holds a hash of the content, never the content.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from ipc.plan import Plan
from ipc.texts.pointers import value_at

PATH_POINTER, CONTENT_POINTER = "/path", "/content"


class NotExpected(Exception):
    """The plan names no file, or no content for it. The message is for receipts; it never holds a body."""


class FileToLeave(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`sha256` is `sha256:<hex>` of the whole file, `bytes` how many it has then."""

    root: str
    """Absolute path of the folder that is the provider's `/`."""
    path: str
    sha256: str
    bytes: int


def expected_file(plan: Plan, config: Mapping[str, Any]) -> FileToLeave:
    """The file that the request asks to write; `config` is the manifest's `verification_config`. Raises NotExpected."""
    if plan.files is None:
        raise NotExpected("the plan has no files")
    request = msgspec.json.decode(plan.request)
    path = _text_at(request, config.get("path_pointer", PATH_POINTER))
    content = _text_at(request, config.get("content_pointer", CONTENT_POINTER)).encode()
    return FileToLeave(plan.files.root, path, "sha256:" + hashlib.sha256(content).hexdigest(), len(content))


def _text_at(document: object, pointer: object) -> str:
    """The string that a JSON pointer (RFC 6901) names. Raises NotExpected."""
    if not isinstance(pointer, str) or not pointer.startswith("/"):
        raise NotExpected("a pointer of verification_config is not a JSON pointer")
    try:
        value = value_at(document, pointer)
    except LookupError:
        raise NotExpected(f"the request has nothing at {pointer}") from None
    if not isinstance(value, str):
        raise NotExpected(f"the request has no text at {pointer}")
    return value
