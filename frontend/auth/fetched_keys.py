"""The public keys of an issuer that has an address of keys: the broker fetches them, this front keeps the last set.

Guarantees that a token of a known key waits for nothing and is judged while the issuer is down, but by no set that is
older than KEPT_SECONDS; that one question to the broker at a time is open for an issuer, and that few wait for it.
"""

import math
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

import trio

from frontend.auth.jwks import knows
from frontend.broker.client import BrokerSilent
from frontend.errors import GateError
from frontend.telemetry.logs import log
from ipc.keys.key_sets import KeySetRefused, read_set
from ipc.messages.brokering import KeysGiven
from ipc.process.lasting_problem import LastingProblem

FRESH_SECONDS: Final = 300.0
"""A set is fetched anew, while it still serves, once it is older."""
KEPT_SECONDS: Final = 3600.0
"""A set that could not be fetched anew for so long verifies nothing: an issuer may have withdrawn a key."""
REFRESH_SECONDS: Final = 30.0
"""Between two tries to fetch a set anew that still serves."""
MAX_WAITING: Final = 64
RETRY_AFTER_SECONDS: Final = 5
WAIT_SECONDS: Final = 15.0
"""For keys that have to be fetched."""


def _unavailable(cause: str) -> GateError:
    return GateError("identity_provider_unavailable", cause=cause, retry_after=RETRY_AFTER_SECONDS)


class KeyBroker(Protocol):
    """The broker, as far as keys come from it."""

    async def keys(self, url: str, *, issuer: str, newer_than: float, is_unknown: bool) -> KeysGiven:
        """Raises BrokerSilent."""


class FetchedKeys:
    """The keys of one issuer."""

    def __init__(
        self, broker: KeyBroker, issuer: str, url: str, now: Callable[[], float] = time.monotonic
    ) -> None:  # fmt: skip
        self._broker = broker
        self._issuer = issuer
        self._url = url
        self._now = now
        self._keys: list[dict[str, Any]] = []
        self._fetched_at = -math.inf
        self._refresh_at = 0.0
        self._turn = trio.Lock()
        self._problem = LastingProblem()

    async def fitting(self, kid: str | None, algorithm: str) -> list[dict[str, Any]]:
        """The newest keys; those kept, where one of them fits. Raises GateError identity_provider_unavailable."""
        if self._serve(kid, algorithm):
            self._refresh_soon()
            return self._keys
        if self._turn.statistics().tasks_waiting >= MAX_WAITING:
            raise _unavailable("many requests wait for the keys of an issuer")
        began = self._now()
        with trio.move_on_after(WAIT_SECONDS):
            async with self._turn:
                await self._fetch_for(kid, algorithm, began)
                return self._keys
        raise _unavailable("the keys of an issuer did not come in time")

    async def _fetch_for(self, kid: str | None, algorithm: str, began: float) -> None:
        """Fetch a set, unless one has come meanwhile that has the key, or was fetched since `began`."""
        try:
            if self._age > KEPT_SECONDS:
                await self._fetch(is_unknown=False)
            if self._fetched_at < began and not self._serve(kid, algorithm):
                await self._fetch(is_unknown=True)
        except (BrokerSilent, KeySetRefused) as error:
            self._say(str(error))
            raise _unavailable("the keys of an issuer can't be fetched") from None

    @property
    def _age(self) -> float:
        return self._now() - self._fetched_at

    def _serve(self, kid: str | None, algorithm: str) -> bool:
        return self._age <= KEPT_SECONDS and knows(self._keys, kid, algorithm)

    def _refresh_soon(self) -> None:
        """Have an old set fetched anew; its tokens do not wait."""
        now = self._now()
        if self._age <= FRESH_SECONDS or now < self._refresh_at:
            return
        self._refresh_at = now + REFRESH_SECONDS
        trio.lowlevel.spawn_system_task(self._refresh, name="the keys of an issuer")

    async def _refresh(self) -> None:
        try:
            async with self._turn:
                await self._fetch(is_unknown=False)
        except (BrokerSilent, KeySetRefused) as error:
            self._say(str(error))
        except Exception:
            log.exception("the keys of an issuer were not fetched by a gateway fault", issuer=self._issuer)

    async def _fetch(self, *, is_unknown: bool) -> None:
        given = await self._broker.keys(
            self._url, issuer=self._issuer, newer_than=self._fetched_at, is_unknown=is_unknown
        )
        if given.fetched_at > self._fetched_at:
            self._keys, self._fetched_at = read_set(given.keys), given.fetched_at
        self._problem.end()

    def _say(self, problem: str) -> None:
        if self._problem.is_new(problem):
            log.error("the keys of an issuer can't be fetched", issuer=self._issuer, problem=problem)
