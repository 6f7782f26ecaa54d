"""Calls that wait for an operator: each is polled by one task until it is decided, and its outcome kept for a while.

Guarantees that a hold is polled once, however many ask for it; that their number is bounded; and that the end of the
session ends them all. A hold itself is the gateway's: forgetting it here takes nothing back.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup
from mcp_types import CallToolResult

from gateway_client.agents import AsyncAgentClient
from gateway_client.errors import ApprovalPending, GatewayError
from gateway_client.mcp_server import answers
from gateway_client.results import Held

MAX_KEPT = 128
KEEP_SECONDS = 3600.0
"""After its decision an outcome is kept for so long, if there is room."""


@dataclass
class HeldCall:
    """One hold of this session. Times in Unix seconds."""

    held: Held
    action_id: str
    held_at: float
    changed_at: float
    outcome: CallToolResult | None = None
    """None while it is not decided."""
    is_cancelled: bool = False
    decided: anyio.Event = field(default_factory=anyio.Event)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    @property
    def answer(self) -> CallToolResult:
        """The outcome, or that it waits."""
        return self.outcome or answers.pending(self.held, self.action_id, self.held_at)

    def settle(self, outcome: CallToolResult | None, now: float, *, is_cancelled: bool = False) -> None:
        """It is over; what was first stays."""
        if not self.decided.is_set():
            self.outcome, self.is_cancelled, self.changed_at = outcome, is_cancelled, now
            self.decided.set()

    async def wait(self, seconds: float) -> CallToolResult:
        """Its answer once it is decided, or after so many seconds."""
        with anyio.move_on_after(seconds):
            await self.decided.wait()
        return self.answer


class McpHolds:
    """All holds of one MCP session. `tasks` is where they are polled."""

    def __init__(self, client: AsyncAgentClient, tasks: TaskGroup, clock: Callable[[], float] = time.time) -> None:
        self._client = client
        self._tasks = tasks
        self._clock = clock
        self._by_id: dict[str, HeldCall] = {}

    @property
    def are_open(self) -> bool:
        """True while one of them is not decided."""
        return any(not one.decided.is_set() for one in self._by_id.values())

    def get(self, approval_id: str) -> HeldCall | None:
        """A hold of this session that is still known."""
        self._forget()
        return self._by_id.get(approval_id)

    def add(self, held: Held, action_id: str) -> HeldCall:
        """Begin to poll a hold; the same request while it waits is the same hold."""
        known = self._by_id.get(held.approval_id)
        if known is not None and not known.is_cancelled:
            return known
        now = self._clock()
        call = self._by_id[held.approval_id] = HeldCall(held, action_id, now, now)
        self._forget()
        self._tasks.start_soon(self._poll, call)
        return call

    def cancel(self, call: HeldCall) -> None:
        """Stop waiting for it. The hold stays with the operators until it is decided or expires."""
        call.settle(None, self._clock(), is_cancelled=True)
        call.scope.cancel()

    async def _poll(self, call: HeldCall) -> None:
        with call.scope:
            try:
                outcome = answers.executed(await self._client.outcome(call.held, call.action_id))
            except ApprovalPending as error:
                outcome = answers.unknown(error)
            except GatewayError as error:
                is_elsewhere = error.code == "approval_session_mismatch"
                outcome = answers.held_elsewhere(call.held, call.action_id) if is_elsewhere else answers.failed(error)
            call.settle(outcome, self._clock())

    def _forget(self) -> None:
        """Drop outcomes that are old, and the oldest while there are too many: those that are over first."""
        now = self._clock()
        for approval_id, call in list(self._by_id.items()):
            if call.decided.is_set() and now - call.changed_at > KEEP_SECONDS:
                del self._by_id[approval_id]
        while len(self._by_id) > MAX_KEPT:
            oldest = min(self._by_id.values(), key=lambda call: (not call.decided.is_set(), call.changed_at))
            oldest.scope.cancel()
            del self._by_id[oldest.held.approval_id]
