"""Health as operators and load balancers see it: every dependency by name, and what that makes of the whole.

Field names are the contract's: `redis` is the key-value store and `opa` the policy engine, whatever serves them.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Health:
    """One look at the dependencies."""

    store: bool
    policy: bool
    ledger: bool
    egress_proxy: bool | None
    actions: int

    @property
    def is_ready(self) -> bool:
        """Core dependencies work; a broken egress proxy only degrades."""
        return self.store and self.policy and self.ledger

    def readiness(self) -> dict[str, Any]:
        """Body of GET /readyz (interface specification, "Readiness values")."""
        status = "not_ready" if not self.is_ready else "degraded" if self.egress_proxy is False else "ready"
        return {
            "status": status,
            "redis": self.store,
            "opa": self.policy,
            "ledger": self.ledger,
            "approval_store": self.store,
            "egress_proxy": self.egress_proxy,
            "actions_registered": self.actions,
        }

    def status(self, *, draining: bool) -> str:
        """`status` of the admin status: ok, degraded or draining."""
        return "draining" if draining else "ok" if self.store and self.policy else "degraded"
