"""The table of endpoints: method, path, socket(s), authentication, rate class, handler. Reads like the contract.

frontend/dispatch.py finds the row of a request and does what the row says.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum

from frontend.handlers import actions, admin, approvals, audit, execute, health, keys, leases, receipts
from frontend.http.answers import Answer


class Auth(Enum):
    """Who may call. PIPELINE: an agent, authenticated after admission, inside the pipeline."""

    NONE = "none"
    LEASE = "lease"
    OPERATOR = "operator"
    PIPELINE = "pipeline"


class Rate(Enum):
    """Which token bucket a call draws from (interface specification, "Limits")."""

    FREE = "free"
    LEASE = "lease"
    WRITE = "write"
    READ = "read"


Handler = Callable[..., Awaitable[Answer]]
CLIENT, ADMIN, BOTH = ("client",), ("admin",), ("client", "admin")


@dataclass(frozen=True, slots=True)
class Route:
    """One row. `{name}` in a path is one segment, handed to the handler by position."""

    method: str
    path: str
    sockets: tuple[str, ...]
    auth: Auth
    rate: Rate
    handler: Handler


# fmt: off
ROUTES = (
    Route("GET",  "/healthz",                               BOTH,   Auth.NONE,     Rate.FREE,  health.healthz),
    Route("GET",  "/readyz",                                BOTH,   Auth.NONE,     Rate.FREE,  health.readyz),
    Route("POST", "/v1/leases",                             CLIENT, Auth.NONE,     Rate.LEASE, leases.issue),
    Route("GET",  "/.well-known/jwks.json",                 CLIENT, Auth.NONE,     Rate.FREE,  keys.lease_keys),
    Route("GET",  "/v1/actions",                            BOTH,   Auth.NONE,     Rate.FREE,  actions.summaries),
    Route("GET",  "/v1/actions/{action_id}",                BOTH,   Auth.NONE,     Rate.FREE,  actions.manifest),
    Route("GET",  "/v1/actions/{action_id}/schema/request", BOTH,   Auth.NONE,     Rate.FREE,  actions.request_schema),
    Route("POST", "/v1/actions/{action_id}/execute",        CLIENT, Auth.PIPELINE, Rate.FREE,  execute.execute),
    Route("GET",  "/v1/approvals/{approval_id}/poll",       CLIENT, Auth.LEASE,    Rate.FREE,  approvals.poll),
    Route("GET",  "/v1/receipts/{receipt_id}",              CLIENT, Auth.LEASE,    Rate.FREE,  receipts.by_agent),
    Route("GET",  "/v1/receipts/{receipt_id}",              ADMIN,  Auth.OPERATOR, Rate.READ,  receipts.by_operator),
    Route("GET",  "/v1/receipt-keys",                       ADMIN,  Auth.OPERATOR, Rate.READ,  keys.receipt_keys),
    Route("GET",  "/v1/approvals",                          ADMIN,  Auth.OPERATOR, Rate.READ,  approvals.listing),
    Route("GET",  "/v1/approvals/{approval_id}",            ADMIN,  Auth.OPERATOR, Rate.READ,  approvals.detail),
    Route("POST", "/v1/approvals/{approval_id}/approve",    ADMIN,  Auth.OPERATOR, Rate.WRITE, approvals.approve),
    Route("POST", "/v1/approvals/{approval_id}/deny",       ADMIN,  Auth.OPERATOR, Rate.WRITE, approvals.deny),
    Route("GET",  "/v1/audit/events",                       ADMIN,  Auth.OPERATOR, Rate.READ,  audit.events),
    Route("GET",  "/v1/audit/verify",                       ADMIN,  Auth.OPERATOR, Rate.READ,  audit.verify),
    Route("GET",  "/v1/admin/status",                       ADMIN,  Auth.OPERATOR, Rate.READ,  admin.status),
    Route("POST", "/v1/admin/drain",                        ADMIN,  Auth.OPERATOR, Rate.WRITE, admin.drain),
    Route("GET",  "/v1/admin/intents",                      ADMIN,  Auth.OPERATOR, Rate.READ,  admin.intents),
)
# fmt: on
