"""The table of sessions: what each has drawn and been refused lately, in memory that all fronts share.

A session lies in one of the ways of the set that its hash names; a set that is full forgets the session that has been
silent longest. Its bucket is full by then, unless a flood of sessions fills the set within seconds: every session is a
lease of its own, which is limited too, so that nothing is won by it.
"""

import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import Final

from frontend.limits.bucket import drawn
from frontend.shared.memory import SharedMemory
from ipc.channel import front_memory as at

_RECORD: Final = struct.Struct("<ddddq")
_KEYS: Final = struct.Struct(f"{at.KEY_BYTES}s" * at.SESSION_WAYS)
_EMPTY: Final = bytes(at.SESSION_BYTES)
assert _RECORD.size == at.SESSION_BYTES


class SessionUse:
    """The state of one session while its set is locked; changes are written back."""

    __slots__ = ("counted_at", "refused", "seen", "spent", "told")

    def __init__(self, record: tuple[float, float, float, float, int]) -> None:
        self.spent, self.counted_at, self.seen, self.told, self.refused = record

    def record(self) -> tuple[float, float, float, float, int]:
        """As it lies in memory."""
        return self.spent, self.counted_at, self.seen, self.told, self.refused


class SessionTable:
    """All sessions with requests lately; `sets` fewer than there is room for are a test's."""

    def __init__(
        self, memory: SharedMemory, clock: Callable[[], float] = time.monotonic, sets: int = at.SESSION_SETS
    ) -> None:  # fmt: skip
        self._memory = memory
        self._clock = clock
        self._sets = sets
        self._table = memory.part(at.SESSIONS, at.SESSION_SETS * at.SET_BYTES)

    @contextmanager
    def session(self, session_id: str) -> Iterator[SessionUse]:
        """One session, for a block that does not wait; `seen` now. Raises MemoryLocked."""
        key, start = self._set_of(session_id)
        with self._memory.lock(at.SESSIONS + start):
            place = self._place(start, key)
            session = SessionUse(_RECORD.unpack_from(self._table, place))
            session.seen = self._clock()
            try:
                yield session
            finally:
                _RECORD.pack_into(self._table, place, *session.record())

    def draw(self, session_id: str, rate: float) -> float | None:
        """Take one token of this session's bucket, which gains and holds `rate`: as `drawn`. Each request does so.
        Raises MemoryLocked."""
        key, start = self._set_of(session_id)
        with self._memory.lock(at.SESSIONS + start):
            place = self._place(start, key)
            spent, counted_at, _, told, refused = _RECORD.unpack_from(self._table, place)
            seen = self._clock()
            spent, seconds = drawn(spent, counted_at, seen, rate, rate)
            _RECORD.pack_into(self._table, place, spent, max(counted_at, seen), seen, told, refused)
        return seconds

    def _set_of(self, session_id: str) -> tuple[bytes, int]:
        """The session's key, and where its set begins."""
        key = blake2b(session_id.encode(), digest_size=at.KEY_BYTES).digest()
        return key, int.from_bytes(key[:4], "little") % self._sets * at.SET_BYTES

    def _place(self, start: int, key: bytes) -> int:
        """Where the session's record lies: one of zeros, if the set did not have it."""
        keys = _KEYS.unpack_from(self._table, start)
        if key in keys:
            return start + _KEYS.size + keys.index(key) * at.SESSION_BYTES
        records = [start + _KEYS.size + way * at.SESSION_BYTES for way in range(at.SESSION_WAYS)]
        way = min(range(at.SESSION_WAYS), key=lambda way: _RECORD.unpack_from(self._table, records[way])[2])
        self._table[records[way] : records[way] + at.SESSION_BYTES] = _EMPTY
        self._table[start + way * at.KEY_BYTES : start + (way + 1) * at.KEY_BYTES] = key
        return records[way]
