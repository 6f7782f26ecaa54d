"""Texts that others wrote, as far as they may become evidence or an answer."""

import re

MAX_REASON = 500
"""Characters of a reason (docs/contract.md, "Limits")."""
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def clean_reason(reason: str) -> str:
    """Control and bidirectional characters stripped, cut to MAX_REASON characters."""
    return _UNPRINTABLE.sub("", reason)[:MAX_REASON]
