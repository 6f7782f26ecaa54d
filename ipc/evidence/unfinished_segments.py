"""Unfinished files of sealed segments in a folder: those of a `gateway ledger seal` that works, or was killed.

They may have kept values. The process that removes them has the folder to itself: the command holds a lock on it.
"""

from pathlib import Path
from typing import Final

PATTERNS: Final = (".segment-*.sqlite3.partial*", "..segment-*.sqlite3.partial.*")
"""Names of the file and its journal, and of the empty file that it begins as."""


def unfinished_in(folder: Path) -> list[Path]:
    """These files, in the order of their names."""
    return sorted(path for pattern in PATTERNS for path in folder.glob(pattern))


def forget_unfinished(folder: Path) -> None:
    """Remove them. Raises OSError."""
    for path in unfinished_in(folder):
        path.unlink(missing_ok=True)
