"""Texts that others wrote, as far as they may become evidence or an answer."""

import re

MAX_REASON = 500
"""Characters of a reason (docs/contract.md, "Limits")."""
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff"
    "\U000e0000-\U000e0fff]"
)


def clean_reason(reason: str) -> str:
    """Control and bidirectional characters stripped, and those without looks that no script needs; cut to MAX_REASON
    characters."""
    return _UNPRINTABLE.sub("", reason)[:MAX_REASON]
