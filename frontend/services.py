"""All services of one front, and the order in which they close.

Handlers get a Services and ask one of them; no service ever sees it. frontend/compose.py builds it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import trio
from msgspec.structs import replace

from frontend.actions.registry import Registry
from frontend.auth.authentication import Authentication
from frontend.auth.remote import RemoteCallers
from frontend.broker.client import BrokerClient
from frontend.calls.approvals.settle import Settlement
from frontend.calls.approvals.upkeep import HoldUpkeep
from frontend.calls.audit_writer import AuditWriter
from frontend.calls.explaining import Explaining
from frontend.calls.intents import Intents
from frontend.calls.pipeline import Pipeline
from frontend.calls.previewing import Previewing
from frontend.calls.refusals import Refusals
from frontend.calls.refused_operators import RefusedOperators
from frontend.clock import TimeSource
from frontend.configuration.access import Authority
from frontend.configuration.active import Configuration
from frontend.configuration.reloads import ReloadRequests
from frontend.configuration.revocation import Revocation
from frontend.control import SupervisorLink
from frontend.egress.learned import LearnedRules
from frontend.egress.proxy_list import ProxyAllowList
from frontend.exporter.client import ExporterClient
from frontend.health.dependencies import DependencyLook, DependencyPulses
from frontend.health.pulse import ClockTrouble, Health
from frontend.limits.admission import Admission
from frontend.limits.rates import Rates
from frontend.notary.client import NotaryClient
from frontend.notary.in_force import NotaryFacts
from frontend.notary.readers import Readers
from frontend.policy.engine import RunningEngine
from frontend.pool.pool import Pools
from frontend.shared.memory import SharedMemory
from frontend.telemetry import families as f
from frontend.telemetry.cells import Labels
from frontend.telemetry.metrics import Metrics
from frontend.telemetry.present import Presence, Present
from frontend.telemetry.processes import Processes
from frontend.webhooks.webhooks import ConfiguredWebhooks
from frontend.witnesses.witnesses import Witnesses
from ipc.backends.servers import used
from ipc.messages.control import FrontStatus, RequestDrain
from ipc.operations.status import ClockTold
from ipc.operations.witnesses import WitnessedCheckpoint
from ipc.process.clock import parse_iso
from ipc.process.stderr import stderr
from ipc.settings import Settings


@dataclass(slots=True)
class Services:
    """All services of one front."""

    settings: Settings
    front_id: str
    control: SupervisorLink
    clock: TimeSource
    known: NotaryFacts
    notary: NotaryClient
    readers: Readers
    authentication: Authentication
    remote: RemoteCallers
    policy: RunningEngine
    pools: Pools
    broker: BrokerClient
    exporter: ExporterClient
    configuration: Configuration
    reloads: ReloadRequests
    authority: Authority
    settlement: Settlement
    upkeep: HoldUpkeep
    pipeline: Pipeline
    admission: Admission
    revocation: Revocation
    intents: Intents
    explaining: Explaining
    previewing: Previewing
    refusals: Refusals
    refused_operators: RefusedOperators
    journal: AuditWriter
    learned: LearnedRules
    allow_list: ProxyAllowList
    rates: Rates
    metrics: Metrics
    processes: Processes
    dependencies: DependencyPulses
    webhooks: ConfiguredWebhooks
    witnesses: Witnesses
    memory: SharedMemory
    presence: Presence
    scraping: trio.Lock = field(default_factory=trio.Lock)
    """Held while the metrics are written down."""
    crash_loops: tuple[str, ...] = ()
    """Children of the supervisor that end again and again; readiness fails while there is any."""
    describe: Callable[[], dict[str, Any]] = field(init=False)
    """The interface as an OpenAPI document; set by the code that serves it (frontend/api/dispatch.py)."""

    @property
    def registry(self) -> Registry:
        """The active registry; a handler reads it once."""
        return self.configuration.current.registry

    async def health(self) -> Health:
        """A fresh look at every dependency, all at once; one that is overdue is down."""
        return self.health_of(await self.dependencies.look())

    async def status(self) -> dict[str, Any]:
        """docs/contract.md, "Admin status", of all fronts; what the stores can't tell is null rather than a guess."""
        look = await self.dependencies.look()
        store_status, ledger_status, health = look.store_status, look.ledger_status, self.health_of(look)
        draining = self.admission.is_draining
        others = self.presence.others().values()
        has_policy = health.policy and all(other.has_policy for other in others)
        memo = msgspec.structs.asdict(self.policy.memo_status)
        memo["entries"] += sum(other.remembered for other in others)
        proxy = {} if health.egress_proxy is None else {"egress_proxy": health.egress_proxy}
        return {
            "status": replace(health, policy=has_policy).status(draining=draining),
            "version": self.settings.version,
            "uptime_seconds": int(self.memory.uptime),
            "actions_registered": health.actions,
            "pending_approvals": store_status.held if store_status else None,
            "revocation_epoch": store_status.epoch if store_status else None,
            "unresolved_intents": ledger_status.unresolved if ledger_status else None,
            "draining": draining,
            "in_flight_executions": self.admission.in_flight_everywhere,
            "dependencies": {"redis": health.store, "opa": has_policy, **proxy},
            "backends": used(self.settings),
            "webhooks": {
                "active": bool(self.webhooks.active),
                "pending_deliveries": ledger_status.deliveries if ledger_status else None,
                **({"gone": sorted(self.webhooks.gone)} if self.webhooks.gone else {}),
            },
            "ledger_volume": {
                "free_bytes": ledger_status.free_bytes if ledger_status else None,
                "min_free_bytes": self.admission.room.least,
                "is_full": health.is_ledger_full,
            },
            "checkpoint": _shown(ledger_status.checkpoint if ledger_status else None),
            "policy_version": self.policy.policy_version,
            "policy_memo": memo,
            "clock_error": None if health.clock is None else health.clock.shown(),
            "crash_loops": list(self.crash_loops),
            "weakened": list(self.configuration.current.settings.weakened),
        }

    def health_of(self, look: DependencyLook) -> Health:
        """The health of the gateway, by this look at its dependencies."""
        has_store, has_ledger = look.store_status is not None, look.ledger_status is not None
        return Health(
            has_store, self.policy.is_available, has_ledger, look.proxy, len(self.registry), self.crash_loops,
            self.admission.room.is_short, ClockTrouble.of(self.clock) or look.clock, self.admission.is_draining,
        )  # fmt: skip

    def worker_gauges(self) -> dict[f.Family, dict[Labels, float]]:
        """How this front's pools stand."""
        gauges: dict[f.Family, dict[Labels, float]] = {f.WORKERS: {}, f.WAITING: {}}
        for profile, census in self.pools.census().items():
            gauges[f.WORKERS][profile, "idle"] = census.idle
            gauges[f.WORKERS][profile, "busy"] = census.members - census.idle
            gauges[f.WAITING][(profile,)] = census.waiting
        return gauges

    def present(self, proportional: int | None) -> Present:
        """How things stand here, for the other fronts. Asks no other process."""
        gauges = {family.name: list(series.items()) for family, series in self.worker_gauges().items()}
        gauges[f.DEPENDENCY_UP.name] = [(("policy",), float(self.policy.is_available))]
        return Present(
            gauges, self.processes.announced(), proportional, self.policy.memo_status.entries,
            has_policy=self.policy.is_available,
        )  # fmt: skip

    def announce_drain(self) -> None:
        """Tell the supervisor, which tells every front."""
        self.control.post(RequestDrain())

    def front_status(self) -> FrontStatus:
        """The values of the supervisor's status line; -1 for an unknown value. Asks no other process."""
        store_status, ledger_status, has_proxy, clock = self.dependencies.last()
        clock = ClockTrouble.of(self.clock) or clock
        proxy = {} if has_proxy is None else {"egress_proxy": has_proxy}
        pools = self.pools.census()
        return FrontStatus(
            self.admission.in_flight,
            store_status.held if store_status else -1,
            ledger_status.unresolved if ledger_status else -1,
            len(self.registry),
            oldest_seconds=self.admission.oldest_seconds(),
            dependencies={"redis": store_status is not None, "opa": self.policy.is_available, **proxy},
            waiting={name: one.waiting for name, one in pools.items() if one.waiting},
            busy={name: one.members - one.idle for name, one in pools.items() if one.members > one.idle},
            unanswered=self.notary.unanswered,
            is_ledger_full=self.admission.room.is_short,
            log_lines_dropped=stderr.dropped,
            clock_error=None if clock is None else ClockTold(clock.cause, clock.until),
        )

    def close(self) -> None:
        """Let go of the notary."""
        self.notary.close()


def _shown(last: WitnessedCheckpoint | None) -> dict[str, Any] | None:
    """The last checkpoint as status shows it."""
    if last is None:
        return None
    witnesses = [
        {"name": one.name, "has_cosigned": one.size == last.size, "size": one.size, "time": one.time,
         "problem": one.problem}
        for one in last.witnesses
    ]  # fmt: skip
    age = max(0, int(time.time() - parse_iso(last.time)))
    return {
        "origin": last.origin, "size": last.size, "root": last.root, "time": last.time, "age_seconds": age,
        "witnesses": witnesses,
    }  # fmt: skip
