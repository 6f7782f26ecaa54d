"""The one kind of clock: Unix seconds, and the one text form of an instant.

Every expiry, window and timestamp of front and notary comes from here. A clock that is known to be wrong is an error,
never a guess: it refuses to tell a time before the newest evidence, or one from which the wall clock has stepped back.
The front answers that with 503 `clock_error` (fail closed). Never sleeps, never sets anything.
"""

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol

STEP_TOLERANCE_SECONDS = 5.0
"""A backward correction by a time service up to this size is accepted. A proof's `iat` may be as far in the future."""

_ISO = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:[Zz]|[+-]\d{2}:\d{2})?",
    re.ASCII,
)


class ClockWrong(Exception):
    """The wall clock contradicts what is known; no time can be told. `until`: the Unix time from which on it can be,
    None where only a correction of the clock, or a restart, helps."""

    def __init__(self, cause: str, until: float | None = None) -> None:
        super().__init__(cause)
        self.until = until


class TimeSource(Protocol):
    """A source of the time."""

    def now(self) -> float:
        """Unix seconds. Raises ClockWrong."""

    def follow(self, floor: float) -> None:
        """There is evidence of this time."""

    def iso(self, t: float | None = None) -> str:
        """`t`, or now, as `2026-11-21T11:12:13.123Z`. Raises ClockWrong when it has to ask for the time."""


def iso(t: float) -> str:
    """Unix seconds as UTC with milliseconds and `Z`; the nearest millisecond, so that parse_iso gives it back."""
    whole, fraction = divmod(round(t * 1000), 1000)
    return f"{_to_the_second(whole)}.{fraction:03d}Z"


@lru_cache(maxsize=16)
def _to_the_second(t: int) -> str:
    # A call tells the time six times, and nearly always within the same second.
    moment = time.gmtime(t)
    return (
        f"{moment.tm_year:04d}-{moment.tm_mon:02d}-{moment.tm_mday:02d}"
        f"T{moment.tm_hour:02d}:{moment.tm_min:02d}:{moment.tm_sec:02d}"
    )


def parse_iso(text: str) -> float:
    """An ISO 8601 date and time as Unix seconds. Without an offset it is UTC, the only zone of this service.

    Raises ValueError, with a message that does not repeat the text.
    """
    if _ISO.fullmatch(text) is None:
        raise ValueError("not a date and time of the form 2026-11-21T11:12:13.123Z")
    try:
        moment = datetime.fromisoformat(text.upper())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.timestamp()
    except (ValueError, OverflowError):
        raise ValueError("no such date and time") from None


def _boot_time() -> float:
    # CLOCK_BOOTTIME counts through suspend, as the wall clock does; CLOCK_MONOTONIC would see a step after each one.
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class SystemClock:
    """The machine's wall clock, checked by CLOCK_BOOTTIME and by the newest evidence.

    `floor` is the Unix time of the newest evidence (0 without evidence). `now` raises ClockWrong while the wall clock
    is more than STEP_TOLERANCE_SECONDS below it, or has stepped back by more than that since this object was made.
    Steps forward are believed, and from then on are what a step back is measured against: otherwise many small
    steps could walk the clock back past the replay window. It tells the time again once the clock is right again.
    """

    def __init__(
        self, floor: float, *, wall: Callable[[], float] = time.time, boot: Callable[[], float] = _boot_time
    ) -> None:
        self._wall = wall
        self._boot = boot
        self._lowest = floor - STEP_TOLERANCE_SECONDS
        self._most_ahead = wall() - boot()

    def now(self) -> float:
        """Unix seconds. Raises ClockWrong."""
        wall = self._wall()
        if wall < self._lowest:
            raise ClockWrong("the wall clock is earlier than the newest evidence", self._lowest)
        ahead = wall - self._boot()
        if ahead > self._most_ahead:
            self._most_ahead = ahead
        elif ahead < self._most_ahead - STEP_TOLERANCE_SECONDS:
            raise ClockWrong("the wall clock has stepped back")
        return wall

    def follow(self, floor: float) -> None:
        """Use the time of newer evidence: `now` gives no earlier time from then on."""
        self._lowest = max(self._lowest, floor - STEP_TOLERANCE_SECONDS)

    def iso(self, t: float | None = None) -> str:
        """`t`, or now, as `2026-11-21T11:12:13.123Z`. Raises ClockWrong when it has to ask for the time."""
        return iso(self.now() if t is None else t)
