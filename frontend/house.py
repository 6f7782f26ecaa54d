"""All services of one front under one roof, and the order in which they close.

Handlers get the house and ask its services; services never see it. frontend/opening.py builds it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import trio

from frontend.actions.registry import Registry
from frontend.admission import Admission
from frontend.approvals.settle import Settlement
from frontend.approvals.upkeep import Upkeep
from frontend.auth.lease import LeaseAuthority
from frontend.authentication import Authentication
from frontend.authority import Authority
from frontend.clock import Clock
from frontend.configuration import Configuration
from frontend.control import Control
from frontend.egress.learned import LearnedRules
from frontend.epochs import Epochs
from frontend.evidence.ledger import Ledger, LedgerUnavailable
from frontend.evidence.signing import ReceiptSigner
from frontend.health import Health, Pulse
from frontend.journal import Journal
from frontend.keyring import Keyring
from frontend.limits import Rates
from frontend.pipeline import Pipeline
from frontend.policy.embedded import EmbeddedPolicy
from frontend.pool.pool import Pools
from frontend.reloads import Reloads
from frontend.revocation import Revocation
from frontend.stores.interface import Store
from frontend.telemetry.metrics import Metrics
from frontend.telemetry.processes import Processes
from ipc import messages as m
from ipc.settings import Settings


class Shelf(NamedTuple):
    """What the store says when it is asked how it is."""

    held: int
    epoch: int
    oldest_age: float
    """Seconds for which the oldest hold has waited; 0 when none waits."""


@dataclass(slots=True)
class House:
    """All services of one front."""

    settings: Settings
    front_id: str
    control: Control
    clock: Clock
    store: Store
    ledger: Ledger
    leases: LeaseAuthority
    authentication: Authentication
    policy: EmbeddedPolicy
    pools: Pools
    signer: ReceiptSigner
    configuration: Configuration
    reloads: Reloads
    authority: Authority
    keyring: Keyring
    settlement: Settlement
    upkeep: Upkeep
    pipeline: Pipeline
    admission: Admission
    epochs: Epochs
    revocation: Revocation
    journal: Journal
    learned: LearnedRules
    rates: Rates
    metrics: Metrics
    processes: Processes
    started: float = field(default_factory=time.monotonic)
    scraping: trio.Lock = field(default_factory=trio.Lock)
    """Held by whoever writes the metrics down."""
    verifying: trio.Lock = field(default_factory=trio.Lock)
    """Held by whoever walks the chain: a walk keeps a reader of the ledger, and a core, for as long as it takes."""
    store_pulse: Pulse[Shelf] = field(init=False)
    ledger_pulse: Pulse[int] = field(init=False)
    """Intents that are not resolved."""

    describe: Callable[[], dict[str, Any]] = field(init=False)
    """The interface as an OpenAPI document; said by whoever serves it (frontend/dispatch.py)."""

    def __post_init__(self) -> None:
        self.store_pulse = Pulse("the key-value store", self._shelf)
        self.ledger_pulse = Pulse("the ledger", self._unresolved)

    @property
    def registry(self) -> Registry:
        """The active registry; a handler reads it once."""
        return self.configuration.registry

    async def health(self) -> Health:
        """A fresh look at every dependency, all at once, OVERDUE_SECONDS at most."""
        return self.health_of(*await self.look())

    async def status(self) -> dict[str, Any]:
        """Interface specification, "Admin status"; what the stores can't tell is null rather than a guess."""
        shelf, unresolved = await self.look()
        health = self.health_of(shelf, unresolved)
        draining = self.admission.is_draining
        return {
            "status": health.status(draining=draining),
            "version": self.settings.version,
            "uptime_seconds": int(time.monotonic() - self.started),
            "actions_registered": health.actions,
            "pending_approvals": shelf.held if shelf else None,
            "revocation_epoch": shelf.epoch if shelf else None,
            "unresolved_intents": unresolved,
            "draining": draining,
            "in_flight_executions": self.admission.in_flight,
            "dependencies": {"redis": health.store, "opa": health.policy},
            "webhooks": {"active": False, "pending_deliveries": 0},
            "policy_version": self.policy.policy_version,
            "weakened": list(self.settings.weakened),
        }

    async def look(self) -> tuple[Shelf | None, int | None]:
        """What the store says of itself and how many intents are unresolved, asked now; None for what can't be told."""
        shelf: Shelf | None = None
        unresolved: int | None = None

        async def at_the_ledger() -> None:
            nonlocal unresolved
            unresolved = await self.ledger_pulse.fresh()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(at_the_ledger)
            shelf = await self.store_pulse.fresh()
        return shelf, unresolved

    def health_of(self, shelf: Shelf | None, unresolved: int | None) -> Health:
        """What a look makes of the whole."""
        return Health(shelf is not None, self.policy.is_available, unresolved is not None, None, len(self.registry))

    def announce_drain(self) -> None:
        """Tell the supervisor, which tells every front."""
        self.control.post(m.RequestDrain())

    def front_status(self) -> m.FrontStatus:
        """What the supervisor shows in its status line; minus one for what can't be told. Asks nobody."""
        shelf, unresolved = self.store_pulse.found, self.ledger_pulse.found
        return m.FrontStatus(
            self.admission.in_flight,
            shelf.held if shelf else -1,
            -1 if unresolved is None else unresolved,
            len(self.registry),
        )

    async def _shelf(self) -> Shelf:
        now = time.time()
        held, epoch = await self.store.pending_count(now), await self.store.epoch()
        oldest = await self.store.pending_oldest(now) if held else None
        return Shelf(held, epoch, 0.0 if oldest is None else max(0.0, now - oldest))

    async def _unresolved(self) -> int:
        if not await self.ledger.health():
            raise LedgerUnavailable("the next write would not succeed")
        return await self.ledger.unresolved_count()

    async def close(self) -> None:
        """Release stores and ledger, the ledger last."""
        await self.store.close()
        await self.ledger.close()
