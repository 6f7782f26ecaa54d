"""The agent's clients: `AgentClient` for threads, `AsyncAgentClient` for asyncio and trio. One instance may be shared.

Both run the flows of gateway_client/calling/agent.py. Guarantees: every request has a proof of its own; an execute that
may have been dispatched is sent again under its idempotency key alone; every wait has an end; closing closes every
connection.
"""

# ruff: noqa: ASYNC109 - `timeout` bounds the flow, which ends with an error of this library rather than a cancellation

from typing import Literal, overload

from gateway_client.calling.agent import AgentCore, OnHeld
from gateway_client.calling.core import DEFAULT_LIMITS, Limits
from gateway_client.calling.leases import LeaseTerms
from gateway_client.keys import ProofKey
from gateway_client.results import Executed, Held, Session
from gateway_client.running.blocking import BlockingClient, BlockingRunner, blocking
from gateway_client.running.nonblocking import NonblockingClient, NonblockingRunner, nonblocking
from gateway_client.wire.address import Address
from gateway_client.wire.flows import SYSTEM_CLOCK, Clock


class _Agent:
    """The attributes that the blocking and the async client share."""

    _core: AgentCore

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._address!r}, {self._key!r})"

    def _prepare(
        self, address: Address | str, key: ProofKey | None, terms: LeaseTerms | None, limits: Limits, clock: Clock
    ) -> None:
        self._address = Address.parse(address) if isinstance(address, str) else address
        self._key = key if key is not None else ProofKey.generate()
        self._key_made_at = clock.now() if key is None else None
        self._core = AgentCore(self._address, self._key, terms or LeaseTerms(), limits, clock)

    @property
    def key_made_at(self) -> float | None:
        """When this client made its key, in Unix seconds: `calls` lists no call before. None for a key that it got."""
        return self._key_made_at

    @property
    def session(self) -> Session | None:
        """The session in use; None before the first call that needs one."""
        lease = self._core.leases.current
        return None if lease is None else lease.session


class AgentClient(_Agent, BlockingClient):
    """Calls actions. A lease is taken with the first call that needs one, and again when it runs out.

    `address`: an Address, or the text of a TCP address. `key`: in memory and new unless given. A new lease is a new
    session with a new budget; see LeaseTerms for what that means for renewal.
    """

    def __init__(
        self,
        address: Address | str,
        key: ProofKey | None = None,
        terms: LeaseTerms | None = None,
        limits: Limits = DEFAULT_LIMITS,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Opens nothing yet. Raises ValueError for an invalid address."""
        self._prepare(address, key, terms, limits, clock)
        self._runner = BlockingRunner(self._address, limits)

    @overload
    def execute(
        self, action_id: str, request: object = None, *, wait_for_approval: Literal[True],
        timeout: float | None = None, on_held: OnHeld | None = None, idempotency_key: str | None = None,
    ) -> Executed: ...  # fmt: skip

    @overload
    def execute(
        self, action_id: str, request: object = None, *, wait_for_approval: bool = False,
        timeout: float | None = None, on_held: OnHeld | None = None, idempotency_key: str | None = None,
    ) -> Executed | Held: ...  # fmt: skip

    def execute(
        self, action_id: str, request: object = None, *, wait_for_approval: bool = False,
        timeout: float | None = None, on_held: OnHeld | None = None, idempotency_key: str | None = None,
    ) -> Executed | Held:  # fmt: skip
        """Call an action with `request`, a JSON value; `timeout` in seconds is for everything that this call does.

        Gives Executed, or Held when an operator must decide first. `wait_for_approval` polls until that is done, and
        gives Executed then (default timeout 360 s, without waiting 60 s). A lease that would end during a wait is
        replaced first, unless the terms keep the session. `on_held` is called once with the hold before the waiting
        begins, to report that a decision is due; it must not block, and an exception from it ends the call.

        `idempotency_key`: 1 to 255 printable ASCII characters; a random one without it. The same request under the
        same key runs at most once: a lost connection is asked again with it within `timeout`.

        Raises Denied (with ApprovalDenied), Invalid, NotFound, RateLimited, Unavailable, ActionFailed, GatewayFault,
        AuthenticationFailed, OutcomeUnknown, AlreadyExecuted, ApprovalEnded, ApprovalPending, Unreachable,
        ProtocolViolation: see `code`, and `may_have_run` before you call again.
        """
        flow = self._core.execute(
            action_id, request, waits=wait_for_approval, timeout=timeout, on_held=on_held,
            idempotency_key=idempotency_key,
        )  # fmt: skip
        return self._runner.run(flow)

    renew = blocking(AgentCore.renew)
    preview = blocking(AgentCore.preview)
    outcome = blocking(AgentCore.outcome)
    poll = blocking(AgentCore.poll)
    receipt = blocking(AgentCore.receipt)
    calls = blocking(AgentCore.calls)
    lease_keys = blocking(AgentCore.lease_keys)
    actions = blocking(AgentCore.actions)
    manifest = blocking(AgentCore.manifest)
    request_schema = blocking(AgentCore.request_schema)
    health = blocking(AgentCore.health)
    ready = blocking(AgentCore.ready)


class AsyncAgentClient(_Agent, NonblockingClient):
    """AgentClient for tasks of one event loop, asyncio or trio."""

    def __init__(
        self,
        address: Address | str,
        key: ProofKey | None = None,
        terms: LeaseTerms | None = None,
        limits: Limits = DEFAULT_LIMITS,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Opens nothing yet. Raises ValueError for an invalid address."""
        self._prepare(address, key, terms, limits, clock)
        self._runner = NonblockingRunner(self._address, limits)

    @overload
    async def execute(
        self, action_id: str, request: object = None, *, wait_for_approval: Literal[True],
        timeout: float | None = None, on_held: OnHeld | None = None, idempotency_key: str | None = None,
    ) -> Executed: ...  # fmt: skip

    @overload
    async def execute(
        self, action_id: str, request: object = None, *, wait_for_approval: bool = False,
        timeout: float | None = None, on_held: OnHeld | None = None, idempotency_key: str | None = None,
    ) -> Executed | Held: ...  # fmt: skip

    async def execute(
        self, action_id: str, request: object = None, *, wait_for_approval: bool = False,
        timeout: float | None = None, on_held: OnHeld | None = None, idempotency_key: str | None = None,
    ) -> Executed | Held:  # fmt: skip
        """As AgentClient.execute."""
        flow = self._core.execute(
            action_id, request, waits=wait_for_approval, timeout=timeout, on_held=on_held,
            idempotency_key=idempotency_key,
        )  # fmt: skip
        return await self._runner.run(flow)

    renew = nonblocking(AgentCore.renew)
    preview = nonblocking(AgentCore.preview)
    outcome = nonblocking(AgentCore.outcome)
    poll = nonblocking(AgentCore.poll)
    receipt = nonblocking(AgentCore.receipt)
    calls = nonblocking(AgentCore.calls)
    lease_keys = nonblocking(AgentCore.lease_keys)
    actions = nonblocking(AgentCore.actions)
    manifest = nonblocking(AgentCore.manifest)
    request_schema = nonblocking(AgentCore.request_schema)
    health = nonblocking(AgentCore.health)
    ready = nonblocking(AgentCore.ready)
