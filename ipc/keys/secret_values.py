"""Which secret values can be looked for in what comes back: the one rule that `gateway check` and workers hold."""

from typing import Final

MIN_SECRET_CHARACTERS: Final = 8
"""Spaces not counted. A shorter value stands in many answers by chance."""


def is_searchable(value: str) -> bool:
    """True for a value so long that an answer does not contain it by chance."""
    return len(value.replace(" ", "")) >= MIN_SECRET_CHARACTERS
