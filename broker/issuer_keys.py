"""Public keys of issuers of tokens, fetched from the address in the issuer's row and kept in memory.

Guarantees that one fetch at a time runs for each address; that tokens of unknown keys bring about one fetch in a minute
at most, however many there are; that an issuer which gave no keys is left alone for RETRY_SECONDS. Bytes that are
no key set, and a set with a private key, count as no answer: the set before stays.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Final

import trio

from broker.connecting import NotReached, Servers
from frontend.telemetry.logs import log
from ipc.keys.key_sets import KeySetRefused, read_set
from ipc.messages.brokering import AskKeys, KeysGiven

FETCH_SECONDS: Final = 8.0
UNKNOWN_SECONDS: Final = 60.0
"""From one fetch for an unknown key to the next."""
RETRY_SECONDS: Final = 5.0
"""After a fetch that failed, until the next one that no unknown key brings about."""
MAX_ADDRESSES: Final = 64
"""Beyond them the one that was asked for first makes room."""
_HEADERS: Final = {"accept": "application/jwk-set+json, application/json", "user-agent": "action-gateway"}

FetchKeys = Callable[[str, float], Awaitable[bytes]]


class NoKeys(Exception):
    """There are no keys, for this reason: a sentence."""


async def fetch_keys(servers: Servers, url: str, seconds: float) -> bytes:
    """Ask the issuer once. Raises NoKeys."""
    answer = None
    with trio.move_on_after(seconds):
        try:
            answer = await servers.get(url, _HEADERS)
        except NotReached as error:
            raise NoKeys(f"the issuer: {error}") from None
    if answer is None:
        raise NoKeys(f"the issuer gave no whole answer within {seconds:g} s")
    if answer.status != 200:
        raise NoKeys(f"the issuer answered {answer.status}")
    try:
        read_set(answer.body)
    except KeySetRefused as error:
        raise NoKeys(f"the issuer's answer {error}") from None
    return answer.body


class _IssuerAddress:
    """The keys and the last fetch of one address."""

    def __init__(self) -> None:
        self.keys = b""
        self.fetched_at: float | None = None
        self.problem: str | None = None
        """Why the last fetch failed."""
        self.retry_at = self.unknown_at = 0.0
        """Not before is it fetched again; and not before for an unknown key."""
        self.running: trio.Event | None = None


class IssuerKeys:
    """All sets of this broker. Fetches run in `nursery`: a question that ends does not cut those of others."""

    def __init__(self, fetch: FetchKeys, nursery: trio.Nursery, now: Callable[[], float] = time.monotonic) -> None:
        self._fetch = fetch
        self._nursery = nursery
        self._now = now
        self._addresses: dict[str, _IssuerAddress] = {}

    async def keys(self, asked: AskKeys) -> KeysGiven:
        """The newest set of this address. The caller gives a deadline. Raises NoKeys."""
        one = self._address(asked.url)
        if one.fetched_at is None or one.fetched_at <= asked.newer_than:
            if one.running is None and self._may_fetch(one, asked):
                one.running = trio.Event()
                self._nursery.start_soon(self._run, asked.url, one, one.running)
            if one.running is not None:
                await one.running.wait()
            if one.problem is not None or one.fetched_at is None:
                raise NoKeys(one.problem or "no keys were fetched")
        return KeysGiven(asked.number, one.keys, one.fetched_at)

    def _address(self, url: str) -> _IssuerAddress:
        one = self._addresses.get(url)
        if one is None:
            if len(self._addresses) >= MAX_ADDRESSES:
                del self._addresses[next(iter(self._addresses))]
            one = self._addresses[url] = _IssuerAddress()
        return one

    def _may_fetch(self, one: _IssuerAddress, asked: AskKeys) -> bool:
        now = self._now()
        if not asked.is_unknown:
            return now >= one.retry_at
        if now < one.unknown_at:
            return False
        one.unknown_at = now + UNKNOWN_SECONDS
        return True

    async def _run(self, url: str, one: _IssuerAddress, running: trio.Event) -> None:
        problem: str | None = "internal error"
        try:
            keys = await self._fetch(url, FETCH_SECONDS)
        except NoKeys as error:
            problem = str(error)
        except Exception as error:
            log.error("keys of an issuer were not fetched: internal error", why=type(error).__name__)
        else:
            one.keys, one.fetched_at, problem = keys, self._now(), None
        finally:
            one.problem, one.running = problem, None
            one.retry_at = self._now() + RETRY_SECONDS
            running.set()
