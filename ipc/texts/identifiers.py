"""Identifiers of everything the gateway names: a prefix and a UUIDv7 (RFC 9562 §5.7).

Guarantees: within a process each one is greater than all before it, whatever the wall clock does; 62 bits of each are
fresh from the operating system, so knowing one says nothing about the next. Prefixes of the interface: `ses_`, `lea_`,
`grant_`, `rcpt_`, `apr_`, `trc_`, `intent_`, `evt_`.
"""

import os
import re
import threading
import time

_DRAW_BYTES = 10
_POOL_BYTES = _DRAW_BYTES * 512
_COUNTER_BITS = 12
_COUNTER_MASK = (1 << _COUNTER_BITS) - 1
_COUNTER_SEED_MASK = _COUNTER_MASK >> 1
_TAIL_BITS = 62
_TAIL_MASK = (1 << _TAIL_BITS) - 1
_VERSION = 0x7 << _COUNTER_BITS
_VARIANT = 0b10 << _TAIL_BITS


_FORM = re.compile(r"[a-z]+_([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


class _Sequence:
    """Hands out UUIDv7 values. The 48-bit time and the 12-bit counter are one number that only grows."""

    def __init__(self) -> None:
        self._last = 0
        self.forget()

    def forget(self) -> None:
        """Drop random bytes that a forked copy of this process holds too, and a lock that may be held there."""
        self._lock = threading.Lock()
        self._pool = b""
        self._used = 0

    def next(self) -> tuple[int, int]:
        """The two halves of the next value, 64 bits each."""
        with self._lock:
            begin = self._used
            if begin == len(self._pool):
                # One system call for many identifiers: one for each would cost more than all the rest here.
                self._pool = os.urandom(_POOL_BYTES)
                begin = 0
            end = self._used = begin + _DRAW_BYTES
            drawn = int.from_bytes(self._pool[begin:end], "big")
            # A new millisecond starts in the lower half of the counter, so that at least 2048 more fit behind it;
            # past that the counter carries into the time, as RFC 9562 §6.2 allows.
            seed = drawn >> _TAIL_BITS & _COUNTER_SEED_MASK
            fresh = time.time_ns() // 1_000_000 << _COUNTER_BITS | seed
            count = self._last = max(fresh, self._last + 1)
        # The version stands between time and counter, the variant before the tail.
        first = count >> _COUNTER_BITS << 16 | _VERSION | count & _COUNTER_MASK
        return first, _VARIANT | drawn & _TAIL_MASK


_sequence = _Sequence()
os.register_at_fork(after_in_child=_sequence.forget)


def new(prefix: str) -> str:
    """`prefix` and a fresh UUIDv7 in its usual text form: `ses_019a9a3b-…`. Safe from any thread."""
    first, last = _sequence.next()
    text, tail = f"{first:016x}", f"{last:016x}"
    return f"{prefix}{text[:8]}-{text[8:12]}-{text[12:]}-{tail[:4]}-{tail[4:]}"


def made_at(identifier: str) -> float | None:
    """The time that an identifier says it was made at (Unix seconds); None for one of another form."""
    form = _FORM.fullmatch(identifier)
    return None if form is None else int(form[1] + form[2], 16) / 1000
