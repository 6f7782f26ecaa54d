"""The callers of `/mcp`: for each token one key, one lease at a time and one MCP server, as long as the token lives.

Guarantees that a caller is kept only once the gateway has given a lease for its token, and that their number is
bounded, in all and by subject. The gateway judges the token again with each lease, and no lease outlives it. If
the token is bound to a key, it judges the proof of each request, too.
"""

import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from contextlib import asynccontextmanager, contextmanager, nullcontext
from datetime import datetime
from hashlib import sha256
from typing import Any, Final

import anyio
import trio
from gateway_client.agents import AsyncAgentClient
from gateway_client.calling.leases import RENEW_SECONDS, WAIT_SECONDS, LeaseTerms
from gateway_client.mcp_server.holds import McpHolds
from gateway_client.mcp_server.serving import McpOptions, server_for
from gateway_client.wire.address import Address
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from edge.gateway import ClientSocket
from edge.mcp.access_tokens import AccessClaims, ShownToken
from edge.mcp.token_holder import TokenHolder
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

    def __init__(
        self, client: AsyncAgentClient, holder: TokenHolder | None, subject: tuple[str, str], ends: float
    ) -> None:  # fmt: skip
        self._client = client
        self._holder = holder
        self._leased_at = time.time()
        self._renewing = trio.Lock()
        self._manager: StreamableHTTPSessionManager | None = None
        self._holds: McpHolds | None = None
        self._changed = trio.Event()
        self._scope = trio.CancelScope()
        self.subject = subject
        self.ends = ends
        self.under_way = 0
        self.used_at = trio.current_time()

    @property
    def has_holds(self) -> bool:
        """True while a call of it waits for an operator."""
        return self._holds is not None and self._holds.are_open

    async def admit(self, proof: str | None, address: str) -> None:
        """Have the proof of a request judged, where its token is bound to a key, and take another lease if the last
        one is over. Raises GatewayError."""
        if self._holder is None or proof is None:
            if self._ends_within(0.0):
                await self._client.renew()
            return
        async with self._renewing:
            # Without a proof a lease can't be renewed later: calls under way have it for as long as a hold lives.
            if self._ends_within(WAIT_SECONDS):
                with self._holder.showing(proof):
                    await self._client.renew()
                self._leased_at = time.time()
                if self._holder.was_shown:
                    return
        await self._holder.judge(proof, address)

    def _ends_within(self, seconds: float) -> bool:
        """True if the lease has no more than so many seconds, or, where it is short from the start, 0.8 of its time."""
        session = self._client.session
        if session is None:
            return True
        end = datetime.fromisoformat(session.expires_at).timestamp()
        return end - time.time() <= min(seconds, 0.8 * (end - self._leased_at))

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
                    self._holds = McpHolds(self._client, tasks)
                    server = server_for(self._client, tasks, OPTIONS, self._holds)
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

    def __init__(self, address: Address, gateway: ClientSocket) -> None:
        self._address = address
        self._gateway = gateway
        self._callers: dict[bytes, McpCaller] = {}
        self._opening: dict[bytes, trio.Event] = {}
        self._opening_of: Counter[str] = Counter()
        self._nursery: trio.Nursery | None = None

    async def run(self) -> None:
        """Serve callers until cancelled."""
        async with trio.open_nursery() as self._nursery:
            await trio.sleep_forever()

    @asynccontextmanager
    async def admitted(self, shown: ShownToken, claims: AccessClaims, address: str) -> AsyncIterator[McpCaller]:
        """The caller of a token, in use, with a lease that lives; `address` shows the token. Raises GatewayError,
        TooManyCallers."""
        digest = sha256(shown.token.encode()).digest()
        while (opening := self._opening.get(digest)) is not None:
            await opening.wait()
        caller = self._callers.get(digest)
        if caller is None:
            caller = await self._opened(digest, shown, claims, address)
            with caller.in_use():
                yield caller
            return
        with caller.in_use():
            await caller.admit(shown.proof, address)
            yield caller

    def forget(self, caller: McpCaller) -> None:
        """Admit it no more: the next request with its token is judged anew."""
        for digest in [one for one, known in self._callers.items() if known is caller]:
            del self._callers[digest]

    async def _opened(self, digest: bytes, shown: ShownToken, claims: AccessClaims, address: str) -> McpCaller:
        if len(self._opening) >= MAX_OPENING or self._nursery is None:
            raise TooManyCallers
        if self._opening_of[address] >= MAX_OPENING_OF_ADDRESS:
            raise TooManyCallers
        self._opening_of[address] += 1
        done = self._opening[digest] = trio.Event()
        holder = None if shown.proof is None else TokenHolder(self._gateway, shown.token)
        client = AsyncAgentClient(self._address, terms=_terms(shown.token, holder))
        try:
            with nullcontext() if holder is None or shown.proof is None else holder.showing(shown.proof):
                await client.renew()
            caller = McpCaller(client, holder, (claims.iss, claims.sub), claims.exp)
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
        """End a caller, where a bound is reached. Raises TooManyCallers."""
        callers = list(self._callers.values())
        of_subject = Counter(one.subject for one in callers)
        if of_subject[subject] >= MAX_OF_SUBJECT:
            callers = [one for one in callers if one.subject == subject]
        elif len(callers) < MAX_CALLERS:
            return
        idle = [one for one in callers if not one.under_way]
        if not idle:
            raise TooManyCallers
        # The subject that has most makes room, so that none keeps out others. A caller alone can ask about its holds.
        least = min(idle, key=lambda one: (-of_subject[one.subject], one.has_holds, one.used_at))
        self.forget(least)
        least.end()


def _terms(token: str, holder: TokenHolder | None) -> LeaseTerms:
    if holder is None:
        return LeaseTerms(seconds_left=WAIT_SECONDS, token=lambda: token)
    return LeaseTerms(seconds_left=RENEW_SECONDS, token=lambda: token, holder_proof=holder.proof)
