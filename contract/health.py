"""GET /healthz and /readyz (docs/contract.md, "Readiness values")."""

from typing import Literal

from .noun import Listed, NeverNull, Noun


class Alive(Noun, frozen=True, kw_only=True):
    """The event loop turns."""

    status: Literal["ok"] = "ok"


class ClockFault(Noun, frozen=True, kw_only=True):
    """The clock contradicts what is known."""

    cause: str
    until: str | None
    """From when on (ISO 8601, UTC) the clock is right by itself; null where only setting it, or a restart, helps."""


class Readiness(Noun, frozen=True, kw_only=True):
    """Every dependency by name. `redis` is the key-value store and `opa` the policy engine, whatever serves them."""

    status: Literal["ready", "degraded", "not_ready"]
    redis: NeverNull[bool]
    opa: NeverNull[bool]
    ledger: NeverNull[bool]
    approval_store: NeverNull[bool]
    egress_proxy: bool | None
    """Null where no proxy is configured."""
    actions_registered: NeverNull[int]
    crash_loops: Listed[str]
    """Processes of the gateway that end again and again, by name."""
    ledger_full: NeverNull[bool]
    """The ledger's volume has too little room for a call to begin."""
    clock_error: ClockFault | None
    """Why every call and lease is 503 `clock_error`; null while the clock is right."""
    draining: NeverNull[bool]
    """New calls and leases are refused, and the gateway ends."""

    @property
    def is_ready(self) -> bool:
        """True while calls are served, degraded included."""
        return self.status in {"ready", "degraded"}


class NotReady(Readiness, frozen=True, kw_only=True):
    """No call can be let through: a core dependency or the clock does not work, or the gateway drains."""
