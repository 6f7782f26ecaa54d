"""The callers of `/mcp`: for each token one key, one lease at a time and one MCP server, as long as the token lives.

Guarantees that a caller is kept only once the gateway has given a lease for its token, and that their number is
bounded, in all and by subject. The gateway judges the token again with each lease, and no lease outlives it.
"""

import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from hashlib import sha256
from typing import Any, Final

import anyio
import trio
from gateway_client.address import Address
from gateway_client.agents import AsyncAgentClient
from gateway_client.leases import WAIT_SECONDS, LeaseTerms
from gateway_client.mcp_server.serving import McpOptions, server_for
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from edge.mcp.access_tokens import AccessClaims
from frontend.telemetry.logs import log

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
MAX_CALLERS: Final = 1024
MAX_OF_SUBJECT: Final = 16
MAX_OPENING: Final = 64
"""Tokens that the gateway is being asked about."""
MAX_OPENING_OF_ADDRESS: Final = MAX_OPENING // 4
GRACE_SECONDS: Final = 360.0
"""For calls under way at the end of their token."""
OPTIONS: Final = McpOptions(refresh_seconds=0)


class TooManyCallers(Exception):
    """No caller can be admitted now."""


class McpCaller:
    """One caller. `subject` is issuer and subject of its token, `ends` the end of that, in Unix seconds."""

    def __init__(self, client: AsyncAgentClient, subject: tuple[str, str], ends: float) -> None:
        self._client = client
        self._manager: StreamableHTTPSessionManager | None = None
        self._changed = trio.Event()
        self._scope = trio.CancelScope()
        self.subject = subject
        self.ends = ends
        self.under_way = 0
        self.used_at = trio.current_time()

    async def keep_lease(self) -> None:
        """Take another lease if the last one is over. Raises GatewayError."""
        session = self._client.session
        if session is None or datetime.fromisoformat(session.expires_at).timestamp() <= time.time():
            await self._client.renew()

    async def handle(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request, while it is in use."""
        assert self._manager is not None
        await self._manager.handle_request(scope, receive, send)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """It is not ended meanwhile."""
        self.under_way += 1
        try:
            yield
        finally:
            self.under_way -= 1
            self.used_at = trio.current_time()
            self._changed.set()

    async def serve(self, forget: Callable[[], None], task_status: trio.TaskStatus[None]) -> None:
        """Serve until the token ends, and then the calls that are under way."""
        try:
            with self._scope:
                async with self._client, anyio.create_task_group() as tasks:
                    server = server_for(self._client, tasks, OPTIONS)
                    self._manager = StreamableHTTPSessionManager(server, stateless=True)
                    async with self._manager.run():
                        task_status.started()
                        await trio.sleep(max(0.0, self.ends - time.time()))
                        forget()
                        with trio.move_on_after(GRACE_SECONDS):
                            while self.under_way:
                                self._changed = trio.Event()
                                await self._changed.wait()
                    tasks.cancel_scope.cancel()
        except Exception as error:
            log.error("an MCP caller ended by an error", error=type(error).__name__)
        finally:
            forget()

    def end(self) -> None:
        """End it now."""
        self._scope.cancel()


class McpCallers:
    """All of them, by the digest of their token."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._callers: dict[bytes, McpCaller] = {}
        self._opening: dict[bytes, trio.Event] = {}
        self._opening_of: Counter[str] = Counter()
        self._nursery: trio.Nursery | None = None

    async def run(self) -> None:
        """Serve callers until cancelled."""
        async with trio.open_nursery() as self._nursery:
            await trio.sleep_forever()

    @asynccontextmanager
    async def admitted(self, token: str, claims: AccessClaims, address: str) -> AsyncIterator[McpCaller]:
        """The caller of a token, in use, with a lease that lives; `address` shows the token. Raises GatewayError,
        TooManyCallers."""
        digest = sha256(token.encode()).digest()
        while (opening := self._opening.get(digest)) is not None:
            await opening.wait()
        caller = self._callers.get(digest)
        if caller is None:
            caller = await self._opened(digest, token, claims, address)
        with caller.in_use():
            await caller.keep_lease()
            yield caller

    def forget(self, caller: McpCaller) -> None:
        """Admit it no more: the next request with its token is judged anew."""
        for digest in [one for one, known in self._callers.items() if known is caller]:
            del self._callers[digest]

    async def _opened(self, digest: bytes, token: str, claims: AccessClaims, address: str) -> McpCaller:
        if len(self._opening) >= MAX_OPENING or self._nursery is None:
            raise TooManyCallers
        if self._opening_of[address] >= MAX_OPENING_OF_ADDRESS:
            raise TooManyCallers
        self._opening_of[address] += 1
        done = self._opening[digest] = trio.Event()
        terms = LeaseTerms(seconds_left=WAIT_SECONDS, token=lambda: token)
        client = AsyncAgentClient(self._address, terms=terms)
        try:
            await client.renew()
            caller = McpCaller(client, (claims.iss, claims.sub), claims.exp)
            self._make_room(caller.subject)
            self._callers[digest] = caller
            with caller.in_use():
                await self._nursery.start(caller.serve, lambda: self.forget(caller))
        except BaseException:
            with trio.CancelScope(shield=True):
                await client.close()
            raise
        finally:
            del self._opening[digest]
            self._opening_of -= Counter([address])  # keeps no address without one
            done.set()
        return caller

    def _make_room(self, subject: tuple[str, str]) -> None:
        """End the caller that was idle for longest, where a bound is reached. Raises TooManyCallers."""
        own = [one for one in self._callers.values() if one.subject == subject]
        if len(own) >= MAX_OF_SUBJECT:
            self._end_one_of(own)
        elif len(self._callers) >= MAX_CALLERS:
            self._end_one_of(list(self._callers.values()))

    def _end_one_of(self, callers: list[McpCaller]) -> None:
        idle = [one for one in callers if not one.under_way]
        if not idle:
            raise TooManyCallers
        oldest = min(idle, key=lambda one: one.used_at)
        self.forget(oldest)
        oldest.end()
