"""The file that a call is to leave, as its plan says: what `fs_hash` compares with, after the call and again later.

The notary keeps it with the intent (`Terms` in ipc/operations/calls.py): of a call without a receipt it is all that
is left to compare with. It holds a hash of what was to be written, never the content.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from ipc.plan import Plan

MAX_PATH_CHARACTERS = 4096


class NotExpected(Exception):
    """The plan names no file, or no content for it. The message is for receipts; it never holds a body."""


class ExpectedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`sha256` is `sha256:<hex>` of the whole file, `bytes` how many it has then."""

    root: str
    """Absolute path of the folder that is the provider's `/`."""
    path: str
    sha256: str
    bytes: int


def expected_file(plan: Plan, config: Mapping[str, Any]) -> ExpectedFile:
    """What the request asked to be written; `config` is the manifest's `verification_config`. Raises NotExpected.

    `{"path_pointer": "/path", "content_pointer": "/content"}` (the defaults) say where the request names it.
    """
    if plan.files is None:
        raise NotExpected("the plan has no files")
    request = msgspec.json.decode(plan.request)
    path = _text_at(request, config.get("path_pointer", "/path"))
    content = _text_at(request, config.get("content_pointer", "/content")).encode()
    return ExpectedFile(plan.files.root, path, "sha256:" + hashlib.sha256(content).hexdigest(), len(content))


def kept_file(plan: Plan) -> ExpectedFile | None:
    """What is kept with the intent of a call, so that its verifier can look again; None where no verifier can."""
    if plan.verifier_kind != "fs_hash":
        return None
    try:
        config = msgspec.json.decode(plan.verification_config or "{}", type=dict[str, Any])
        file = expected_file(plan, config)
    except (NotExpected, msgspec.ValidationError):
        return None
    return None if len(file.path) > MAX_PATH_CHARACTERS else file


def _text_at(document: object, pointer: object) -> str:
    """The string that a JSON pointer (RFC 6901) names. Raises NotExpected."""
    if not isinstance(pointer, str) or not pointer.startswith("/"):
        raise NotExpected("a pointer of verification_config is not a JSON pointer")
    value = document
    for token in pointer[1:].split("/"):
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isascii() and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            raise NotExpected(f"the request has nothing at {pointer}")
    if not isinstance(value, str):
        raise NotExpected(f"the request has no text at {pointer}")
    return value
