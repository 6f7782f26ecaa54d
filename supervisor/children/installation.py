"""The installation that the gateway was started from: whether its files are still the same.

A child is an interpreter that reads the gateway's files anew. After an update it would be of another version than the
processes that it talks to, and no message says which version its sender is of. Installers write
every file anew, so one of them tells.
"""

import os
from pathlib import Path

Identity = tuple[int, int, int, int]
"""Device, inode, modification time in nanoseconds, and size."""


class Installation:
    """A file of the installation, as it was when this object was made."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._first = _identity(file)

    @property
    def is_replaced(self) -> bool:
        """True if another file is there by now, or none."""
        return _identity(self._file) != self._first


def _identity(file: Path) -> Identity | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size
