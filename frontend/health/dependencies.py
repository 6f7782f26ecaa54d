"""The health of one front's dependencies: asked in rounds, the core on demand as well.

Owns a pulse for each dependency (frontend/health/pulse.py) and the question that it asks. Never decides what an answer
means for a call; each step does.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import trio

from frontend.deadlines import HealthDeadlines
from frontend.health.pulse import ClockTrouble, Pulse
from frontend.limits.free_space import FreeSpace
from frontend.notary.client import NotaryClient
from frontend.telemetry.logs import log
from ipc.operations.exporting import EventExport
from ipc.operations.status import ReadLedger, ReadStore
from ipc.operations.witnesses import WitnessedCheckpoint


class StoreHealth(NamedTuple):
    """The status of the store."""

    held: int
    epoch: int
    oldest_age: float
    """Seconds for which the oldest hold has waited; 0 when none waits."""


class LedgerHealth(NamedTuple):
    """The status of the ledger."""

    unresolved: int
    """Intents without a receipt."""
    deliveries: int
    """Deliveries that wait in the outbox."""
    oldest_age: float
    """Seconds since the oldest of these intents that no worker runs was dispatched; 0 without one."""
    checkpoint: WitnessedCheckpoint | None = None
    """None before the first."""
    free_bytes: int | None = None
    """On its volume; None where that can't be told."""
    attempts: Mapping[str, Mapping[str, int]] = MappingProxyType({})
    """To deliver: endpoint -> outcome -> how many, since the notary started."""
    drops: Mapping[str, Mapping[str, int]] = MappingProxyType({})
    """Endpoint -> reason -> deliveries that will never arrive, likewise."""
    clock: ClockTrouble | None = None
    """The fault of the notary's clock; None while it is right."""
    export: EventExport | None = None
    """How far the export of events has come; None without a collector."""


class DependencyLook(NamedTuple):
    """One look at all of them; None for what can't be told."""

    store_status: StoreHealth | None
    ledger_status: LedgerHealth | None
    proxy: bool | None
    """Whether the egress proxy answers; None where none is configured."""
    clock: ClockTrouble | None = None
    """The fault of the notary's clock, as the notary said last; None while it is right."""


class DependencyPulses:
    """The pulses of one front. `ask_proxy` raises when the proxy does not answer; None without a proxy. Each answer
    of the ledger updates `room` with the free space on its volume."""

    def __init__(
        self, notary: NotaryClient, ask_proxy: Callable[[], Awaitable[None]] | None,
        deadlines: HealthDeadlines = HealthDeadlines(), room: FreeSpace | None = None,
    ) -> None:  # fmt: skip
        self._notary = notary
        self._room = room or FreeSpace(0)
        self._pulses: dict[str, Pulse[Any]] = {
            "store_status": Pulse("the key-value store", self._store_status, deadlines=deadlines),
            "ledger_status": Pulse("the ledger", self._ledger_status, deadlines=deadlines),
        }
        if ask_proxy is not None:
            self._pulses["proxy"] = Pulse(
                "the egress proxy", _says_yes(ask_proxy), deadlines.proxy_pause_seconds, deadlines
            )  # fmt: skip

    async def start(self, nursery: trio.Nursery) -> None:
        """Begin to ask; returns once each has answered, or has not."""
        for pulse in self._pulses.values():
            await nursery.start(pulse.run)

    async def look(self) -> DependencyLook:
        """Ask all core dependencies now, at once. For the proxy take its last answer, some seconds old: readiness
        must not wait for a proxy that hangs."""
        answers = self._said()

        async def ask(name: str) -> None:
            answers[name] = await self._pulses[name].fresh()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "store_status")
            nursery.start_soon(ask, "ledger_status")
        return _look(answers)

    def is_proxy_down(self) -> bool:
        """True for an egress proxy that did not answer when it was asked last. Does not ask it."""
        return self.last().proxy is False

    def last(self) -> DependencyLook:
        """The last answers. Asks no dependency."""
        return _look(self._said())

    def _said(self) -> dict[str, Any]:
        return {name: pulse.found for name, pulse in self._pulses.items()}

    async def _store_status(self) -> StoreHealth:
        status = await self._notary.ask(ReadStore())
        return StoreHealth(status.pending, status.epoch, _age_of(status.oldest))

    async def _ledger_status(self) -> LedgerHealth:
        status = await self._notary.ask(ReadLedger())
        self._hear_room(status.free_bytes)
        age, wrong = _age_of(status.oldest_unresolved), status.clock_error
        clock = None if wrong is None else ClockTrouble(wrong.cause, wrong.until)
        return LedgerHealth(
            status.unresolved, sum(status.waiting.values()), age, status.checkpoint, status.free_bytes,
            status.attempts, status.drops, clock, status.export,
        )  # fmt: skip

    def _hear_room(self, free: int | None) -> None:
        """One line of the log for each change."""
        if not self._room.heard(free):
            return
        if self._room.is_short:
            log.warning(
                "the ledger's volume is full: no call begins", free_bytes=free, min_free_bytes=self._room.least,
                mend="make room on it: docs/runbooks/full-disk.md",
            )  # fmt: skip
        else:
            log.info("the ledger's volume has room again", free_bytes=free)


def _age_of(since: float | None) -> float:
    """Seconds since then (Unix seconds); 0 where there is nothing."""
    return 0.0 if since is None else max(0.0, time.time() - since)


def _look(answers: dict[str, Any]) -> DependencyLook:
    """The look that these answers make; a proxy without an answer counts as down."""
    proxy = answers["proxy"] is True if "proxy" in answers else None
    ledger_status: LedgerHealth | None = answers["ledger_status"]
    return DependencyLook(answers["store_status"], ledger_status, proxy, ledger_status.clock if ledger_status else None)


def _says_yes(ask: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[bool]]:
    async def asked() -> bool:
        await ask()
        return True

    return asked
