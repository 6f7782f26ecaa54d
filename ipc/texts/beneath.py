"""Whether one path lies below another, links seen through."""

import os
from collections.abc import Iterable


def holds(folder: str, paths: Iterable[str]) -> bool:
    """True if one of these lies in the folder, or is it."""
    around = os.path.join(os.path.realpath(folder), "")
    return any(os.path.join(os.path.realpath(path), "").startswith(around) for path in paths)
