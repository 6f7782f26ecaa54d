"""Repeated events, reported once and then counted: a bounded table of windows, one for each key.

The first event of a key opens its window; later ones are counted until the window is over and is taken with `due`. A
key that has stayed quiet for a whole window is forgotten. Neither waits nor writes.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

import trio

Key = TypeVar("Key", bound=Hashable)


@dataclass(slots=True)
class Window:
    """The count of one key that is not reported yet. `until` is Trio's time."""

    until: float = field(init=False)
    count: int = 0


Kept = TypeVar("Kept", bound=Window)
MAX_KEYS: Final = 256
"""The most keys with a window of their own; further keys share one."""


class Windows(Generic[Key, Kept]):
    """Windows of `seconds`, each made by `new`; `others` is the key of all beyond `max_keys`."""

    def __init__(
        self, new: Callable[[], Kept], others: Callable[[Key], Key], seconds: float, max_keys: int = MAX_KEYS
    ) -> None:
        self._new = new
        self._others = others
        self._seconds = seconds
        self._max_keys = max_keys
        self._windows: dict[Key, Kept] = {}

    def __len__(self) -> int:
        return len(self._windows)

    def of(self, key: Key) -> tuple[Key, Kept, bool]:
        """The key that this one counts as, its window, and whether that was opened just now."""
        if key not in self._windows and len(self._windows) >= self._max_keys:
            key = self._others(key)
        window = self._windows.get(key)
        if window is not None:
            return key, window, False
        window = self._windows[key] = self._new()
        window.until = trio.current_time() + self._seconds
        return key, window, True

    def due(self, now: float) -> list[tuple[Key, Kept]]:
        """Windows that are over and have counted something: each begins anew, and is the caller's to tell."""
        windows = []
        for key, window in list(self._windows.items()):
            if now < window.until:
                continue
            if window.count == 0:
                del self._windows[key]
                continue
            window.until = trio.current_time() + self._seconds
            windows.append((key, window))
        return windows
