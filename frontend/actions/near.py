"""Registered names that are close to an unknown one, for callers who misspelt it. Pure, and bounded.

Every registered name is public (`GET /v1/actions`): a suggestion tells nothing that discovery does not.
"""

from collections.abc import Iterable
from difflib import get_close_matches

MOST = 3
_MAX_CHARACTERS = 64
"""The longest name that is compared: the time grows with the square of the length."""
_MAX_COMPARED = 16
_MAX_DIFFERENCE = 4
"""In length, of a name that is misspelt."""


def near(name: str, names: Iterable[str]) -> list[str]:
    """At most MOST of `names`, the closest first; of many only those that begin alike are compared."""
    if len(name) > _MAX_CHARACTERS:
        return []
    alike = [one for one in names if abs(len(one) - len(name)) <= _MAX_DIFFERENCE]
    alike.sort(key=lambda one: _same_beginning(one, name), reverse=True)
    return get_close_matches(name, alike[:_MAX_COMPARED], n=MOST, cutoff=0.7)


def _same_beginning(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (mine, its) in pairs if mine != its), min(len(one), len(other)))
