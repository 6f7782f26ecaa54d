"""Following something: polls that neither spin nor outlive their end, and go on while the gateway is away."""

import time
from collections.abc import Callable
from typing import TypeVar

from gateway_client.cli.complaints import line_of
from gateway_client.cli.display.output import note
from gateway_client.errors import GatewayError, RateLimited, Unavailable, Unreachable

T = TypeVar("T")
MIN_SECONDS, MAX_SECONDS = 0.2, 30.0


class Follow:
    """One command that polls. `seconds`: when to end, None for Ctrl-C alone. `interval`: between polls."""

    def __init__(
        self, interval: float, seconds: float | None, *, pause: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._interval = interval
        self._pause = pause
        self._monotonic = monotonic
        self._end = None if seconds is None else monotonic() + seconds
        self._failures = 0
        self._wait = interval

    def ask(self, question: Callable[[], T], *, must: bool = False) -> T | None:
        """The answer; None when the gateway is away, which is printed once until it is back.

        `must`: the first question of all is not asked again. Raises GatewayError for what waiting does not mend.
        """
        try:
            answer = question()
        except (Unreachable, Unavailable, RateLimited) as error:
            if must:
                raise
            self._away(error)
            return None
        if self._failures:
            note("gatectl: the gateway answers again")
        self._failures, self._wait = 0, self._interval
        return answer

    def rest(self, soonest: float | None = None) -> bool:
        """Wait for the next poll, `soonest` seconds at most; False when it is time to end."""
        wait = self._wait if soonest is None else min(self._wait, max(soonest, MIN_SECONDS))
        if self._end is not None:
            left = self._end - self._monotonic()
            if left <= 0:
                return False
            wait = min(wait, left)
        self._pause(wait)
        return self._end is None or self._monotonic() < self._end

    def _away(self, error: GatewayError) -> None:
        self._failures += 1
        self._wait = min(MAX_SECONDS, max(self._interval, error.retry_after or 0.5 * 2**self._failures))
        if self._failures == 1:
            note(f"{line_of(error)} - asking again until it answers")
