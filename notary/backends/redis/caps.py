"""The amounts that caps count, in Redis, within one unit.

An amount is split into digits of nine places, each a field of its own: Redis adds them exactly, and what one gateway
adds, another one's undo leaves as it is. They are read back without a carry.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Final

import msgspec

from ipc.approvals import TTL_SECONDS
from notary.backends.redis.changes import Changes, milliseconds, number
from notary.backends.redis.keys import RedisKeys
from notary.store.caps import (
    HELD_SECONDS,
    KEPT_SECONDS,
    MAX_SUBJECTS,
    CapAmount,
    CapCounter,
    gone_at,
    longest_life,
)
from notary.store.contract import StoreGone

DIGITS: Final = 10**9
_TOTAL, _UNKNOWN, _CALLS = "t", "u", "n"


class _Step(msgspec.Struct):
    """One step of a counter. `calls`: amounts that were added and not taken back."""

    calls: int = 0
    total: int = 0
    unknown: int = 0


class RedisCaps:
    """See CapCounts."""

    def __init__(self, changes: Changes, keys: RedisKeys, clock: Callable[[], float]) -> None:
        self._changes = changes
        self._keys = keys
        self._clock = clock
        self._known: dict[CapCounter, dict[int, _Step]] = {}
        self._reserved: dict[str, str | None] = {}

    @property
    def is_used(self) -> bool:
        """True when the unit has read or changed an amount."""
        return bool(self._known or self._reserved)

    def amount(self, counter: CapCounter, now: float) -> CapAmount:
        """See CapCounts."""
        steps = [step for until, step in self._steps(counter).items() if gone_at(counter, until) > now]
        total = sum(max(0, step.total) for step in steps)
        return CapAmount(total, min(total, sum(max(0, step.unknown) for step in steps)))

    def add(self, counter: CapCounter, until: int, units: int) -> None:
        """See CapCounts."""
        self._change(counter, until, 1, _TOTAL, units)
        subjects, end = self._keys.cap_subjects(_name(counter[:-1])), str(gone_at(counter, until))
        self._changes.step("seen", subjects, counter.subject, end, repr(self._clock() - KEPT_SECONDS), _lives(counter))

    def take(self, counter: CapCounter, until: int, units: int) -> None:
        """See CapCounts."""
        self._change(counter, until, -1, _TOTAL, -units)

    def mark(self, counter: CapCounter, until: int, units: int) -> None:
        """See CapCounts."""
        self._change(counter, until, 0, _UNKNOWN, units)

    def has_room(self, counter: CapCounter, now: float) -> bool:
        """See CapCounts."""
        if any(step.calls > 0 and gone_at(counter, until) > now for until, step in self._steps(counter).items()):
            return True
        key = self._keys.cap_subjects(_name(counter[:-1]))
        return int(self._changes.look("ZCOUNT", key, f"({now!r}", "+inf")) < MAX_SUBJECTS

    def subjects(self, counter: CapCounter, now: float, after: str | None, limit: int) -> list[str]:
        """See CapCounts."""
        key = self._keys.cap_subjects(_name(counter[:-1]))
        found: list[str] = self._changes.look("ZRANGEBYSCORE", key, f"({now!r}", "+inf")
        return sorted(one for one in found if after is None or one > after)[:limit]

    def keep_reserved(self, approval_id: str, reserved: str, gone_at: int) -> None:
        """See CapCounts."""
        lives = milliseconds(gone_at - self._clock() + KEPT_SECONDS)
        self._changes.step("set", self._keys.cap_reserved(approval_id), reserved, lives)
        self._reserved[approval_id] = reserved

    def reserved(self, approval_id: str) -> str | None:
        """See CapCounts."""
        if approval_id not in self._reserved:
            self._reserved[approval_id] = self._changes.read("GET", self._keys.cap_reserved(approval_id))
        return self._reserved[approval_id]

    def drop_reserved(self, approval_id: str) -> None:
        """See CapCounts."""
        self._changes.step("del", self._keys.cap_reserved(approval_id))
        self._reserved[approval_id] = None

    def _change(self, counter: CapCounter, until: int, calls: int, what: str, units: int) -> None:
        steps = self._steps(counter)
        step = steps.get(until, _Step())
        if calls < 1 and step.calls < 1:
            return
        step.calls += calls
        if what == _TOTAL:
            step.total += units
        else:
            step.unknown += units
        steps[until] = step
        oldest = int(self._clock()) - counter.window_seconds - KEPT_SECONDS
        key = self._keys.cap(_name(counter))
        self._changes.step("cap", key, str(until), str(calls), str(oldest), _lives(counter), *_digits(what, units))

    def _steps(self, counter: CapCounter) -> dict[int, _Step]:
        if counter not in self._known:
            key = self._keys.cap(_name(counter))
            self._changes.read("HGET", key, "v")
            fields = self._changes.look("HGETALL", key)
            steps: dict[int, _Step] = defaultdict(_Step)
            for field, text in zip(fields[::2], fields[1::2], strict=True):
                if field != "v":
                    _read(steps, field, number(text))
            self._known[counter] = dict(steps)
        return self._known[counter]


def _read(steps: dict[int, _Step], field: str, value: int) -> None:
    until, _, what = field.partition(":")
    step = steps[number(until)]
    if what == _CALLS:
        step.calls += value
    elif what.startswith(_TOTAL):
        step.total += value * DIGITS ** number(what[1:])
    elif what.startswith(_UNKNOWN):
        step.unknown += value * DIGITS ** number(what[1:])
    else:
        raise StoreGone("Redis: an amount of a cap can't be read")


def _digits(what: str, units: int) -> list[str]:
    """The fields of an amount and their changes."""
    sign, rest, fields, place = "-" if units < 0 else "", abs(units), [], 0
    while rest:
        rest, digits = divmod(rest, DIGITS)
        if digits:
            fields += [f"{what}{place}", f"{sign}{digits}"]
        place += 1
    return fields


def _name(parts: tuple[str | int, ...]) -> str:
    return msgspec.json.encode(parts).decode()


def _lives(counter: CapCounter) -> str:
    return milliseconds(longest_life(counter, TTL_SECONDS + HELD_SECONDS))
