"""The secrets cache's rule: 30 seconds, and not beyond a change of the file (docs/contract.md, "Limits").

A value is kept under the file's modification time, inode, size and mode; any difference, or age, reads again.
Guarantees that a repr shows no kept value. Never keeps a failure.
"""

import os
from collections.abc import Callable
from typing import Final, Generic, TypeVar

T = TypeVar("T")

KEPT_SECONDS: Final = 30.0
FileKey = tuple[int, int, int, int, int]


def file_key(status: os.stat_result) -> FileKey:
    """The identity of a file's content and permissions: device, inode, modification time in ns, size, mode."""
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size, status.st_mode


class FileCache(Generic[T]):
    """One value read from one file. `monotonic` gives seconds and never goes back."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._key: FileKey | None = None
        self._value: T | None = None
        self._read_at = 0.0

    def get(self, key: FileKey) -> T | None:
        """The value read from the file `key` less than 30 seconds ago."""
        if key == self._key and self._monotonic() - self._read_at < KEPT_SECONDS:
            return self._value
        self.clear()
        return None

    def put(self, key: FileKey, value: T) -> None:
        """Keep the values just read from the file `key`."""
        self._key, self._value, self._read_at = key, value, self._monotonic()

    def clear(self) -> None:
        """Forget the value."""
        self._key = self._value = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"
