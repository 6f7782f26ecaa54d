"""GET /healthz and /readyz (docs/contract.md, "Readiness values")."""

from typing import Literal

import msgspec


class Alive(msgspec.Struct, frozen=True):
    """The event loop turns."""

    status: Literal["ok"] = "ok"


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """Every dependency by name. `redis` is the key-value store and `opa` the policy engine, whatever serves them."""

    status: Literal["ready", "degraded", "not_ready"]
    redis: bool
    opa: bool
    ledger: bool
    approval_store: bool
    egress_proxy: bool | None
    """Null where no proxy is configured."""
    actions_registered: int
    crash_loops: list[str]
    """Processes of the gateway that end again and again, by name."""
    ledger_full: bool
    """The ledger's volume has too little room for a call to begin."""


class NotReady(Readiness, frozen=True, kw_only=True):
    """A core dependency does not work: no call can be let through."""
