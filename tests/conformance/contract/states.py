"""States and transitions."""

from tests.conformance.contract.table import Table

APPROVALS = Table(
    "approval-states",
    "Approval states",
    {
        "reported-pending": "the poll reports pending",
        "reported-claimed": "the poll reports claimed",
        "reported-approved": "the poll reports approved",
        "reported-denied": "the poll reports denied",
        "reported-expired": "the poll reports expired",
        "filter-pending": "the operators' list can be asked for pending ones",
        "filter-claimed": "the list can be asked for claimed ones",
        "filter-approved": "the list can be asked for approved ones",
        "filter-denied": "the list can be asked for denied ones",
        "filter-failed": "the list can be asked for failed ones",
        "none-to-pending": "a held call is answered 202 and stored for five minutes",
        "none-to-none": "with an entry in the allowlist there is no hold",
        "pending-to-approved": "approve executes the stored plan",
        "approved-binds-operator": "who approved, and the key's thumbprint, are part of the grant and its evidence",
        "learn-on-success": "`learn_domain` is kept when the execution succeeds",
        "learn-not-on-failure": "`learn_domain` is not kept when the execution fails",
        "pending-to-denied": "deny ends it: nothing runs, the record stays",
        "pending-to-expired": "after five minutes it can't be consumed, and the same call is a new hold",
        "one-shot": "of many approves at once only the first succeeds; the others get 404",
    },
)

LIFECYCLE = Table(
    "gate-lifecycle",
    "Gate lifecycle",
    {
        "serving-to-draining": "drain: new calls and leases are refused, running calls end, operators go on, an event",
        "draining-again": "a second drain is 200 with already_draining true",
        "irreversible": "nothing leads out of draining while the process lives: neither reload nor a new front",
    },
)

READINESS = Table(
    "readiness",
    "Readiness values",
    {
        "ready": "every check passes: 200",
        "degraded": "the egress proxy is down: 200, and routing goes on",
        "not_ready": "a core dependency fails: 503",
    },
)

STATUS_VALUES = Table(
    "status-values",
    "Admin status values",
    {
        "ok": "dependencies are well and the gateway is not draining",
        "degraded": "the key-value store or the policy engine can't be reached",
        "draining": "the gateway is draining",
    },
)

EPOCHS = Table(
    "epoch-moves",
    "Revocation epoch (transitions)",
    {
        "raises-by-one": "revoke-all raises the epoch from N to N+1",
        "older-leases": "leases of earlier epochs are invalid at once",
        "older-grants": "what earlier epochs granted is invalid at once: an older hold can't be executed any more",
        "new-leases": "a lease issued afterwards carries the new epoch, and works",
    },
)

OUTCOMES = Table(
    "verification-outcomes",
    "Verification outcomes",
    {
        "verified": "the verifier saw the effect",
        "verification_failed": "the provider succeeded, and the verifier did not see the effect",
        "unverifiable_declared": "the action says that there is nothing to look at",
        "provider_failed_before_verification": "the provider failed",
        "skipped": "the action has no verifier",
    },
)

TABLES = (APPROVALS, LIFECYCLE, READINESS, STATUS_VALUES, EPOCHS, OUTCOMES)
