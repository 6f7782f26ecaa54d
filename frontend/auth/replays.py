"""Proofs that the notary has said were used before, by the keys of frontend/auth/dpop.py `replay_key`.

A proof that was used once is used for good. So a caller that repeats a recorded request is refused without an
operation of the notary, and a flush of the disk, each time. Bounded: the oldest leaves first, and is asked for again.
"""

from typing import Final

MAX_REPLAYS: Final = 4096


class Replays:
    """The known replays of one front. Only the notary adds one; a proof that is not in it may be a replay all the
    same."""

    def __init__(self, max_replays: int = MAX_REPLAYS) -> None:
        self._max_replays = max_replays
        self._keys: dict[str, None] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, key: str) -> None:
        """Remember one."""
        if key not in self._keys and len(self._keys) >= self._max_replays:
            del self._keys[next(iter(self._keys))]
        self._keys[key] = None
