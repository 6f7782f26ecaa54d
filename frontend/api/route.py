"""A row of the table of endpoints, with every error code that it may answer.

The table itself is frontend/api/routes.py. The handler's signature declares inputs and answers
(frontend/api/operation.py).
"""

from dataclasses import dataclass, field
from enum import Enum

from frontend.api.operation import Handler, HandlerSignature
from frontend.auth.roles import ADMINISTRATORS, READERS
from frontend.contract.identifiers import IDENTIFIERS


class Auth(Enum):
    """The callers of an endpoint.

    PIPELINE: an agent, authenticated after admission, inside the pipeline. DEV: anybody in dev mode; elsewhere there is
    no such row.
    """

    NONE = "none"
    DEV = "dev"
    LEASE = "lease"
    OPERATOR = "operator"
    PIPELINE = "pipeline"


class Rate(Enum):
    """Which token bucket a call draws from (docs/contract.md, "Limits")."""

    FREE = "free"
    LEASE = "lease"
    """Drawn by the handler, which tells who asks."""
    WRITE = "write"
    READ = "read"
    SCRAPE = "scrape"
    """Drawn by the handler: of a caller without a credential only the user of this host is known."""
    SESSION = "session"
    """Each session's own, taken where its proof is checked (frontend/auth/authentication.py)."""


@dataclass(frozen=True, slots=True)
class Route:
    """One row. `{name}` in a path is one segment, handed to the handler by position."""

    method: str
    path: str
    sockets: tuple[str, ...]
    auth: Auth
    rate: Rate
    handler: Handler
    roles: frozenset[str] = frozenset()
    """One of these an operator must have. Not given: `read` for a GET, `administer` for everything else."""
    operation: HandlerSignature = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.auth is not Auth.OPERATOR:
            if self.roles:
                raise ValueError(f"{self.path}: roles are for operators")
        elif not self.roles:
            object.__setattr__(self, "roles", READERS if self.method == "GET" else ADMINISTRATORS)
        # A parameter that narrows what an operator changes must not go unread because it is mistyped.
        is_strict = self.auth is Auth.OPERATOR and self.method != "GET"
        object.__setattr__(self, "operation", HandlerSignature(self.handler, is_strict=is_strict))

    @property
    def tells_of_outages(self) -> bool:
        """Answered to an operator while the store can't say whether the proof is new."""
        return self.path in TELLS_OF_OUTAGES

    @property
    def leaves_evidence_of_any_name(self) -> bool:
        """A call or a preview of what can be no action is refused as one of an unknown action: with its event."""
        return self.auth is Auth.PIPELINE or self.path.endswith("/preview")

    @property
    def codes(self) -> frozenset[str]:
        """Every error code that this row may answer."""
        codes = {*EVERY_ROW, *OF_AUTH[self.auth], *(self.operation.codes or ())}
        if self.rate is not Rate.FREE:
            codes.add("rate_limit_exceeded")
        if self.operation.query is not None or self.operation.body is not None:
            codes.add("invalid_request")
        if self.operation.body is not None:
            codes.add("body_too_large")
        if self.method != "GET":
            codes.add("unsupported_media_type")
        return frozenset(codes | {IDENTIFIERS[name].code for name in self.operation.segments})


TELLS_OF_OUTAGES = frozenset({"/metrics", "/v1/admin/status"})
"""SECURITY: a copied proof may get an answer here while the store is down: they change nothing and show no request."""
EVERY_ROW = ("bad_request", "request_timeout", "headers_too_large", "internal_error", "overloaded")
"""Codes of errors before a request has a row, and of a fault that was not foreseen."""
_PROVEN = ("missing_auth_header", "invalid_dpop", "replay_detected", "replay_cache_unavailable", "clock_error")
_LEASE = ("invalid_lease", "lease_expired", *_PROVEN)
OF_AUTH = {
    Auth.NONE: (),
    Auth.DEV: (),
    Auth.LEASE: _LEASE,
    Auth.PIPELINE: _LEASE,
    Auth.OPERATOR: ("invalid_operator_token", "role_required", *_PROVEN),
}
