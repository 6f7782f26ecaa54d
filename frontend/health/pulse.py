"""Health as operators and load balancers see it: every dependency by name, and what that makes of the whole.

Field names are the contract's: `redis` is the key-value store and `opa` the policy engine, whatever serves them. One
task a dependency asks it, once a second (or as its pulse says) and on demand: callers that want to know at the same
time share one question, so that no flood of health checks reaches a store, and no caller waits long for one that
is stuck.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

import msgspec
import trio

from frontend.clock import ClockError, TimeSource, iso
from frontend.deadlines import HealthDeadlines
from frontend.telemetry.logs import log
from ipc.process.roles import CALLS_DO_WITHOUT

Found = TypeVar("Found")


class Pulse(Generic[Found]):
    """The health of one dependency. `ask` raises when there is no answer.

    `pause`: seconds between two background questions while there are answers; `round_seconds` unless given.
    """

    def __init__(
        self, name: str, ask: Callable[[], Awaitable[Found]], pause: float | None = None,
        deadlines: HealthDeadlines = HealthDeadlines(),
    ) -> None:  # fmt: skip
        self._name = name
        self._ask = ask
        self._pause = deadlines.round_seconds if pause is None else pause
        self._deadlines = deadlines
        self._asked_at: float | None = None
        self._found: Found | None = None
        self._is_down = False
        """Said so, and not yet that it answers again."""
        self._wanted = trio.Event()
        self._answered = trio.Event()

    @property
    def found(self) -> Found | None:
        """The last answer; None when the last question had none, or the present one is overdue."""
        return None if self._is_overdue else self._found

    @property
    def _is_overdue(self) -> bool:
        return self._asked_at is not None and trio.current_time() - self._asked_at > self._deadlines.overdue_seconds

    async def fresh(self) -> Found | None:
        """The answer to a question that is asked from now on; None if none comes within `overdue_seconds`."""
        if self._is_overdue:
            return None
        with trio.move_on_after(self._deadlines.overdue_seconds):
            if self._asked_at is not None:
                await self._answered.wait()
            self._wanted.set()
            await self._answered.wait()
            return self._found
        return None

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Ask for ever; started after the first answer, or its absence."""
        await self._beat()
        task_status.started()
        while True:
            with trio.move_on_after(self._deadlines.round_seconds if self._found is None else self._pause):
                await self._wanted.wait()
            self._wanted = trio.Event()
            await self._beat()

    async def _beat(self) -> None:
        self._asked_at = trio.current_time()
        try:
            self._found = await self._ask()
        except Exception as error:
            if not self._is_down:
                log.warning(f"{self._name} is down", cause=str(error))
            self._found, self._is_down = None, True
        else:
            if self._is_down:
                log.info(f"{self._name} answers again")
            self._is_down = False
        self._asked_at = None
        self._answered.set()
        self._answered = trio.Event()


class ClockTrouble(msgspec.Struct, frozen=True):
    """The clock is wrong: every call and lease is 503 clock_error. `until` is a Unix time, None where it is unknown."""

    cause: str
    until: float | None

    @classmethod
    def of(cls, clock: TimeSource) -> "ClockTrouble | None":
        """The fault of this clock now; None while it is right."""
        try:
            clock.now()
        except ClockError as error:
            return cls(str(error), error.until)
        return None

    def shown(self) -> dict[str, Any]:
        """As readiness and status show it."""
        return {"cause": self.cause, "until": None if self.until is None else iso(self.until)}


class Health(msgspec.Struct, frozen=True):
    """One look at the dependencies."""

    store: bool
    policy: bool
    ledger: bool
    egress_proxy: bool | None
    actions: int
    crash_loops: tuple[str, ...] = ()
    """Processes of the gateway that end again and again."""
    is_ledger_full: bool = False
    """Its volume has too little room for a call to begin."""
    clock: ClockTrouble | None = None
    """Why no time can be told; None while it can."""
    is_draining: bool = False
    """New work is refused."""

    @property
    def is_ready(self) -> bool:
        """Calls are let through: core dependencies, processes and the clock work, and the gateway does not drain. A
        broken egress proxy or deliverer only degrades."""
        return self._is_sound and CALLS_DO_WITHOUT.issuperset(self.crash_loops) and not self.is_draining

    @property
    def _is_sound(self) -> bool:
        return self.store and self.policy and self.ledger and not self.is_ledger_full and self.clock is None

    @property
    def dependencies(self) -> dict[str, bool]:
        """Name in metrics -> whether it works, for the configured ones."""
        states = {"store": self.store, "policy": self.policy, "ledger": self.ledger, "egress_proxy": self.egress_proxy}
        return {name: is_up for name, is_up in states.items() if is_up is not None}

    def readiness(self) -> dict[str, Any]:
        """Body of GET /readyz (docs/contract.md, "Readiness values")."""
        is_degraded = self.egress_proxy is False or bool(self.crash_loops)
        status = "not_ready" if not self.is_ready else "degraded" if is_degraded else "ready"
        return {
            "status": status,
            "redis": self.store,
            "opa": self.policy,
            "ledger": self.ledger,
            "approval_store": self.store,
            "egress_proxy": self.egress_proxy,
            "actions_registered": self.actions,
            "crash_loops": list(self.crash_loops),
            "ledger_full": self.is_ledger_full,
            "clock_error": None if self.clock is None else self.clock.shown(),
            "draining": self.is_draining,
        }

    def status(self, *, draining: bool) -> str:
        """`status` of the admin status: ok, degraded or draining."""
        return "draining" if draining else "ok" if self._is_sound and not self.crash_loops else "degraded"
