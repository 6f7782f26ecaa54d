"""Values of a request that are kept as evidence: the rules of an action, what a front reads by them, commitments to it.

An event has a commitment to each value, which tells nothing of it. The values stand in rows beside the ledger
(notary/ledger/kept_values.py) and can be erased there without a change to any event.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ipc.texts.canonical import MAX_SAFE_INTEGER, NotCanonical, canonical_bytes
from ipc.texts.pointers import value_at
from ipc.texts.visible import visible

MAX_KEPT: Final = 32
"""Values of one call, masked ones among them."""
MAX_VALUE_BYTES: Final = 1024
"""Canonical bytes of one value. A larger one is not kept, and the event has no commitment to it."""
SALT_BYTES: Final = 16
MAX_SUMMARY: Final = 256
"""Characters of a summary, and of its template."""
KEPT, MASKED = "kept", "masked"
ERASED_SUMMARY: Final = "erased"
PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")
"""`{amount_cents}` or `{invoice/currency}` in a summary: a pointer without its first slash."""
_SHOWN_OF_MASKED: Final = 4
_SHORTEST_MASKED: Final = 8
_ABSENT: Final = "-"


class KeptRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Sections `evidence` and `summary` of a manifest: JSON pointers into the request, and the text made from them."""

    keep: tuple[str, ...] = ()
    mask: tuple[str, ...] = ()
    summary: str | None = None


class KeptValue(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One value: `text` is its canonical JSON. `kind` is KEPT or MASKED, and then the text is the shown form."""

    pointer: str
    text: str
    kind: str = KEPT


class KeptValues(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The values that a call keeps, and the template of its summary."""

    values: tuple[KeptValue, ...] = ()
    summary: str | None = None


def values_of(rules: KeptRules | None, request: Any) -> KeptValues | None:
    """The values of a request, as far as it has them; None without rules.

    Lists, objects and values beyond MAX_VALUE_BYTES are left out: evidence refuses no call that is otherwise fine.
    """
    if rules is None:
        return None
    found = [_read(request, pointer, KEPT) for pointer in rules.keep]
    found += [_read(request, pointer, MASKED) for pointer in rules.mask]
    return KeptValues(tuple(one for one in found if one is not None), rules.summary)


def _read(request: Any, pointer: str, kind: str) -> KeptValue | None:
    try:
        value = value_at(request, pointer)
        if value is None or isinstance(value, dict | list):
            return None
        data = canonical_bytes(masked(value) if kind == MASKED else value)
    except (LookupError, NotCanonical):
        return None
    return KeptValue(pointer, data.decode(), kind) if len(data) <= MAX_VALUE_BYTES else None


def masked(value: Any) -> str:
    """The shown form of a masked value: the last four characters of a text of at least eight, else none."""
    return value[-_SHOWN_OF_MASKED:] if isinstance(value, str) and len(value) >= _SHORTEST_MASKED else ""


def texts_of(value: str) -> tuple[str, ...]:
    """The canonical texts that a value may have that people write as `value`: a text, and a number or a flag."""
    found = {canonical_bytes(value).decode(): None}
    try:
        read = msgspec.json.decode(value)
        if isinstance(read, bool | int | float):
            found[canonical_bytes(read).decode()] = None
    except (msgspec.DecodeError, NotCanonical, RecursionError):
        pass
    return tuple(found)


def is_kept_text(text: str) -> bool:
    """True for what `values_of` may have made of a value: the canonical JSON of a text, a number or a flag."""
    try:
        value = msgspec.json.decode(text)
        if type(value) is int and abs(value) > MAX_SAFE_INTEGER:
            value = float(value)  # RFC 8785 writes a float of that size like an integer
        return isinstance(value, str | int | float) and canonical_bytes(value).decode() == text
    except (msgspec.DecodeError, NotCanonical, OverflowError, RecursionError):
        return False


def commitment(salt: bytes, value: bytes) -> str:
    """The commitment to a value, canonical bytes: `sha256:<hex>`."""
    return "sha256:" + hashlib.sha256(salt + value).hexdigest()


def summary_text(template: str | None, values: Mapping[str, Any], *, is_whole: bool = True) -> str | None:
    """The summary of a call, from its kept values; ERASED_SUMMARY when these are not `is_whole`. None without one.

    Characters that could hide or reorder are escaped.
    """
    if template is None:
        return None
    if not is_whole:
        return ERASED_SUMMARY
    text = PLACEHOLDER.sub(lambda found: _shown(values.get("/" + found[1])), template)
    return text if len(text) <= MAX_SUMMARY else text[: MAX_SUMMARY - 1] + "…"


def summary_of(kept: KeptValues | None) -> str | None:
    """The summary of a call whose values are at hand."""
    if kept is None:
        return None
    return summary_text(kept.summary, {one.pointer: msgspec.json.decode(one.text) for one in kept.values})


def _shown(value: Any) -> str:
    if value is None:
        return _ABSENT
    return str(visible(value)) if isinstance(value, str) else canonical_bytes(value).decode()
