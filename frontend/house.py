"""The composition root: the only place that builds services from settings, and the order in which they close.

Handlers get the house and ask its services; services never see it. Opening fails whole: what cannot be had at start
ends the process with the exit code that says so.
"""

import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog
import trio

from frontend.actions.registry import Registry
from frontend.admission import Admission
from frontend.approvals.hold import Holds
from frontend.approvals.settle import Settlement
from frontend.auth.dpop import DpopVerifier
from frontend.auth.keyfiles import load_p256
from frontend.auth.lease import LeaseAuthority
from frontend.auth.operators import Operators
from frontend.authentication import Authentication
from frontend.budgets import Budgets
from frontend.clock import Clock, SystemClock
from frontend.configuration import Configuration
from frontend.control import Control
from frontend.epochs import Epochs
from frontend.evidence.grants import GrantSigner
from frontend.evidence.ledger import Ledger, LedgerUnavailable
from frontend.evidence.signing import ReceiptSigner
from frontend.evidence.sqlite import SqliteLedger
from frontend.execution import Execution
from frontend.health import Health
from frontend.journal import Journal
from frontend.limits import Rates
from frontend.pipeline import Pipeline
from frontend.policy.embedded import EmbeddedPolicy
from frontend.pool.pool import Pools
from frontend.secrets.files import Secrets
from frontend.stores.interface import Store, StoreUnavailable
from frontend.stores.sqlite import SqliteStore
from frontend.telemetry.marks import Marks
from ipc import messages as m
from ipc.settings import Settings

log = structlog.get_logger()


@dataclass(slots=True)
class House:
    """All services of one front."""

    settings: Settings
    front_id: str
    control: Control
    clock: Clock
    marks: Marks
    store: Store
    ledger: Ledger
    leases: LeaseAuthority
    authentication: Authentication
    policy: EmbeddedPolicy
    pools: Pools
    signer: ReceiptSigner
    configuration: Configuration
    holds: Holds
    settlement: Settlement
    pipeline: Pipeline
    admission: Admission
    epochs: Epochs
    journal: Journal
    rates: Rates = field(default_factory=Rates)
    started: float = field(default_factory=time.monotonic)

    @property
    def registry(self) -> Registry:
        """The active registry; a handler reads it once."""
        return self.configuration.registry

    async def health(self) -> Health:
        """Ask every dependency, each with its own deadline."""
        try:
            await self.store.epoch()
            store = True
        except StoreUnavailable:
            store = False
        return Health(store, self.policy.is_available, await self.ledger.health(), None, len(self.registry))

    async def status(self) -> dict[str, Any]:
        """Interface specification, "Admin status"; what the stores can't tell is null rather than a guess."""
        health = await self.health()
        found: dict[str, Any] = {"pending_approvals": None, "revocation_epoch": None, "unresolved_intents": None}
        try:
            found["pending_approvals"] = await self.store.pending_count(time.time())
            found["revocation_epoch"] = await self.store.epoch()
            found["unresolved_intents"] = await self.ledger.unresolved_count()
        except (StoreUnavailable, LedgerUnavailable) as error:
            log.warning("status is incomplete", cause=str(error))
        draining = self.admission.is_draining
        return found | {
            "status": health.status(draining=draining),
            "version": self.settings.version,
            "uptime_seconds": int(time.monotonic() - self.started),
            "actions_registered": health.actions,
            "draining": draining,
            "in_flight_executions": self.admission.in_flight,
            "dependencies": {"redis": health.store, "opa": health.policy},
            "webhooks": {"active": False, "pending_deliveries": 0},
            "policy_version": self.policy.policy_version,
            "weakened": list(self.settings.weakened),
        }

    async def announce_drain(self) -> None:
        """Tell the supervisor, which tells every front."""
        await self.control.send(m.RequestDrain())

    async def front_status(self) -> m.FrontStatus:
        """What the supervisor shows in its status line; minus one for what can't be told."""
        held = unresolved = -1
        with suppress(StoreUnavailable, LedgerUnavailable):
            held = await self.store.pending_count(time.time())
            unresolved = await self.ledger.unresolved_count()
        return m.FrontStatus(self.admission.in_flight, held, unresolved, len(self.registry))

    async def close(self) -> None:
        """Release stores and ledger, the ledger last."""
        await self.store.close()
        await self.ledger.close()


async def open_house(start: m.StartFront, control: Control) -> House:
    """Build every service. Raises StoreUnavailable, LedgerUnavailable, OSError or ValueError with a clear sentence."""
    settings = start.settings
    state = Path(settings.state_dir)
    ledger = await SqliteLedger.open(settings.ledger.path or state / "ledger.sqlite3")
    store = await SqliteStore.open(state / "store.sqlite3")
    clock = SystemClock(await ledger.last_time() or 0.0)
    marks = Marks(dev_mode=settings.dev_mode)
    leases = LeaseAuthority(load_p256(_key(settings.lease_signing_key_path)), clock, settings.lease_ttl_seconds)
    authentication = Authentication(
        clock, store, leases, DpopVerifier(settings.public_base_url), Operators(settings.operators)
    )
    grants = GrantSigner(load_p256(_key(settings.grant_signing_key_path)))
    signer = ReceiptSigner.open(_key(settings.receipt_signing_key_path), _key(settings.receipt_keys_jwks_path))
    policy = EmbeddedPolicy(control.replace_policy)
    pools = Pools(settings.workers, grants.jwks_json, control.need_worker, control.kill_worker)
    configuration = Configuration(settings, control, policy, pools, Registry(), trio.Lock())
    budgets = Budgets(store)
    execution = Execution(
        clock, ledger, Secrets(settings.secrets), grants, signer, pools, settings.limits.worker_wait_seconds
    )
    admission = Admission(settings.limits.max_in_flight)
    holds = Holds(clock, store, ledger, budgets, marks, start.front_id)
    settlement = Settlement(clock, store, ledger, budgets, execution, marks, start.front_id)
    pipeline = Pipeline(
        settings, clock, marks, admission, authentication, lambda: configuration.registry, policy, budgets, holds,
        execution, ledger,
    )  # fmt: skip
    return House(
        settings, start.front_id, control, clock, marks, store, ledger, leases, authentication, policy, pools, signer,
        configuration, holds, settlement, pipeline, admission, Epochs(store),
        Journal(clock, marks, ledger),
    )  # fmt: skip


def _key(path: str | None) -> Path:
    if path is None:
        raise ValueError("a signing key path is missing in the settings")
    return Path(path)
