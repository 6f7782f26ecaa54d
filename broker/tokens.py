"""Tokens of upstreams, kept in memory until they end.

Guarantees that a token is given for exactly what it was fetched for: server, client, its secret, scopes and audience;
that one fetch at a time runs for each of these, whose waiters share its outcome; that a server which gave no token is
left alone for RETRY_SECONDS, while calls that need one fail at once and those with another key wait for nothing; that a
token which an upstream has
refused is given again only if its server gives it again. Never writes one to a file, a log or a repr.
"""

import hashlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, NamedTuple

import msgspec
import trio

from broker.token_server import FetchedToken, NoToken
from frontend.telemetry.logs import log
from ipc.messages.brokering import AskToken, digest_of

FETCH_SECONDS: Final = 10.0
MAX_TOKENS: Final = 1024
"""Beyond them the one that ends first makes room."""
MAX_FETCHES: Final = 64
"""At once, over all keys."""
RENEW_AT: Final = 0.8
"""The part of its life after which a token is renewed while it still serves."""
ENDS_AT: Final = 0.95
"""The part after which it is not given any more: it must reach its upstream alive."""
RETRY_SECONDS: Final = 5.0
"""After a fetch that failed, until the next one of the same token."""
REFUSED_SECONDS: Final = 10.0
"""A token that was fetched because the one before it was refused is not fetched anew for that reason so soon."""

Fetch = Callable[[AskToken, float], Awaitable[FetchedToken]]


class _KeptToken:
    __slots__ = ("ends_at", "renew_at", "stays_until", "value")

    def __init__(self, fetched: FetchedToken, now: float, *, is_second: bool) -> None:
        """`is_second`: the one before it was refused by an upstream."""
        self.value = fetched.value
        self.stays_until = now + REFUSED_SECONDS if is_second else now
        self.renew_at = now + RENEW_AT * fetched.seconds
        self.ends_at = now + ENDS_AT * fetched.seconds


class _TokenFetch:
    """A fetch that runs."""

    def __init__(self) -> None:
        self.done = trio.Event()
        self.problem: str | None = None


class _Failure(NamedTuple):
    """A fetch that failed."""

    problem: str
    until: float
    """No other one begins before."""


class Tokens:
    """All tokens of this broker. Fetches run in `nursery`: a question that ends does not cut those of others."""

    def __init__(self, fetch: Fetch, nursery: trio.Nursery) -> None:
        self._fetch = fetch
        self._nursery = nursery
        self._kept: dict[bytes, _KeptToken] = {}
        self._running: dict[bytes, _TokenFetch] = {}
        self._failed: dict[bytes, _Failure] = {}
        """The one that failed first comes first."""

    async def token(self, asked: AskToken) -> str:
        """A token that has not ended; another than the refused one, unless the server gives that again. The caller
        gives a deadline. Raises NoToken."""
        key = _key_of(asked)
        now, kept = trio.current_time(), self._kept.get(key)
        if kept is not None and now >= kept.ends_at:
            del self._kept[key]
            kept = None
        # A caller who can bring about a 401 must not have the server asked, and the token taken from others, each time.
        if kept is not None and (digest_of(kept.value) != asked.refused or now < kept.stays_until):
            if now >= kept.renew_at:
                with suppress(NoToken):  # it still serves
                    self._begin(key, asked)
            return kept.value
        running = self._begin(key, asked)
        await running.done.wait()
        fetched = self._kept.get(key)
        if fetched is None or running.problem is not None:
            raise NoToken(running.problem or "the token was not kept")
        return fetched.value

    def _begin(self, key: bytes, asked: AskToken) -> _TokenFetch:
        """The fetch of this key: the one that runs, or a new one. Raises NoToken."""
        running = self._running.get(key)
        if running is None:
            failed = self._failed.get(key)
            if failed is not None and trio.current_time() < failed.until:
                raise NoToken(f"{failed.problem}; it is asked again after {RETRY_SECONDS:g} s")
            if len(self._running) >= MAX_FETCHES:
                raise NoToken(f"{MAX_FETCHES} tokens are being fetched")
            running = self._running[key] = _TokenFetch()
            self._nursery.start_soon(self._run, key, asked, running)
        return running

    async def _run(self, key: bytes, asked: AskToken, running: _TokenFetch) -> None:
        try:
            fetched = await self._fetch(asked, FETCH_SECONDS)
        except NoToken as error:
            running.problem = str(error)
        except Exception as error:
            log.error("a token was not fetched: internal error", why=type(error).__name__)
            running.problem = "internal error"
        else:
            self._keep(key, _KeptToken(fetched, trio.current_time(), is_second=asked.refused is not None))
        finally:
            del self._running[key]
            self._failed.pop(key, None)
            if running.problem is not None:
                self._note_failure(key, running.problem)
            running.done.set()

    def _note_failure(self, key: bytes, problem: str) -> None:
        if len(self._failed) >= MAX_TOKENS:
            del self._failed[next(iter(self._failed))]
        self._failed[key] = _Failure(problem, trio.current_time() + RETRY_SECONDS)

    def _keep(self, key: bytes, token: _KeptToken) -> None:
        self._kept[key] = token
        if len(self._kept) > MAX_TOKENS:
            del self._kept[min(self._kept, key=lambda one: self._kept[one].ends_at)]


def _key_of(asked: AskToken) -> bytes:
    return hashlib.sha256(msgspec.json.encode((asked.way, asked.client_secret))).digest()
