"""Settings as the supervisor has checked them and hands them to its children.

The same structs are the schema of the TOML file (supervisor/settings/config.py reads and checks it, names every field
in messages by its path here). Secrets never appear, only paths to them; but for those that the file itself holds in
clear for a webhook, and these never show. Paths are absolute by the time a child sees them.
"""

import os
from typing import Final, Literal

import msgspec

from ipc.configuration.certificates import CertificateSettings
from ipc.configuration.issuers import IssuerSettings
from ipc.configuration.networks import NetworkSettings
from ipc.configuration.quorum import QuorumRule
from ipc.configuration.quotas import Quota
from ipc.configuration.roles import OPERATOR_ROLES
from ipc.configuration.telemetry import TelemetrySettings
from ipc.process.log_level import INFO
from ipc.walls.given import Given

Auto = Literal["auto"]
AUTO: Final[Auto] = "auto"
"""In the place of a number that the supervisor finds for its host."""
LEAST_CALLS, MOST_CALLS, LEAST_IN_FLIGHT = 12, 1024, 256
"""Bounds of the numbers that it finds: http calls, and calls in flight."""
FRONTS: Final = "fronts"
"""In the state directory: what fronts keep."""


class PrincipalMapping(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The principal and the limits of one local user id."""

    principal: str
    scopes: tuple[str, ...] = ("tools:call",)
    owner: str | None = None
    max_calls_per_hour: int | None = None
    max_sessions: int | None = None
    max_calls_per_session: int | None = None

    @property
    def quota(self) -> Quota:
        """The limits for all leases of the principal together."""
        return Quota(self.max_calls_per_hour, self.max_sessions, self.max_calls_per_session)


class IdentitySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[identity]`: who a lease is issued to."""

    provider: str = "peercred"
    """`peercred`, or `none` (dev only: everybody is `dev:anonymous`)."""
    allow_unmapped: bool = False
    principals: dict[str, PrincipalMapping] = {}
    """User id (decimal text) -> mapping."""
    edge_uids: tuple[int, ...] = ()
    """Users that `gateway edge` runs as: a lease for a caller behind it needs a token or a client certificate."""
    issuers: tuple[IssuerSettings, ...] = ()
    """Issuers of these tokens."""
    certificates: tuple[CertificateSettings, ...] = ()
    """Names of client certificates that stand for a token."""

    @property
    def named_principals(self) -> frozenset[str]:
        """The principals that the configuration names outright."""
        mapped = frozenset(one.principal for one in self.principals.values())
        issued = (one.named_principals for one in self.issuers)
        return mapped.union(*issued, *(one.named_principals for one in self.certificates))


class OperatorSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[operators]]`: a named credential. Exactly one of `api_key` and `api_key_sha256`."""

    name: str
    dpop_jkt: str | None = None
    """RFC 7638 thumbprint of the operator's key; required outside dev mode."""
    api_key: str | None = None
    api_key_sha256: str | None = None
    groups: tuple[str, ...] = ()
    """Names that `approvals.quorum` asks approvals of."""
    roles: tuple[str, ...] = OPERATOR_ROLES
    """The kinds of requests that this operator may make."""
    owner: str | None = None
    """The operator's name as the owner of leases: calls of that owner need the approval of another operator."""


class StoreSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[store]`: key-value state. Without `redis_url` the embedded SQLite file in `state_dir`."""

    redis_url: str | None = None
    """`redis://`, `rediss://`, `unix://` or `redis+sentinel://`, without a password."""
    redis_prefix: str = "gateway"
    """Before the names of all keys; gateways that share a store have the same."""
    redis_password_file: str | None = None
    redis_ca_file: str | None = None
    """Certificates that `rediss://` is verified with; without it those of the system."""


class LedgerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[ledger]`: evidence. Default the SQLite file `state_dir/ledger.sqlite3`; with `url` a PostgreSQL."""

    path: str | None = None
    url: str | None = None
    """`postgresql://`, without a password; needs `store.redis_url`."""
    password_file: str | None = None
    ca_file: str | None = None
    """Certificates that a PostgreSQL is verified with, over TLS; without it, plain text."""
    min_free_bytes: int = 32 * 1024 * 1024
    """With less free on the ledger's volume no call begins: room for the evidence of those that run. 0: whatever is
    free."""


class WitnessSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[evidence.witnesses]]`: one that is asked to cosign checkpoints (C2SP tlog-witness)."""

    name: str
    """Its name in logs, metrics and status."""
    url: str
    """Its submission prefix: https (http only in dev mode), a domain name, perhaps port and path."""
    key: str
    """Its verifier key, `name+id+base64`: only what this key has signed counts."""
    timeout_seconds: float = 10.0
    """For one request, from the look-up of the name to the end of the answer."""
    private_network: bool = False
    """Its name may lead to an address of a private network."""


class EvidenceSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[evidence]`."""

    witnesses: tuple[WitnessSettings, ...] = ()
    witness_interval_seconds: float = 10.0
    """Between two requests to one witness; each has the newest checkpoint then."""
    origin: str | None = None
    """The name of the log; None: `public_base_url` without its scheme."""
    keep_days: int = 0
    """Kept values that are older are erased; 0: none is."""


class EgressSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[egress]`."""

    unsafe_resolve: dict[str, str] = {}
    """Dev only: host name -> `address:port`."""
    proxy_allowlist_file: str | None = None
    """Live sync: the file of domains that the egress proxy allows, written by the gateway. Needs `egress_proxy_url`."""
    proxy_ca_file: str | None = None
    """Certificates in PEM: the authorities that an egress proxy at https is known by; None: the system's."""
    proxy_secret: str | None = None
    """Name of a secret, `user:password`: what the egress proxy is shown. Needs `egress_proxy_url`."""
    networks: tuple[NetworkSettings, ...] = ()
    """Private networks that `direct_allowlist` may lead into."""


WEBHOOK_KINDS: Final = (
    "approval.pending", "approval.granted", "approval.denied", "approval.expired", "action.executed", "action.denied",
    "action.failed", "budget.exhausted", "revocation", "gateway.draining", "audit.checkpoint",
)  # fmt: skip
"""The kinds of notifications (docs/webhooks.md)."""
DEFAULT_KINDS: Final = tuple(kind for kind in WEBHOOK_KINDS if kind != "audit.checkpoint")
"""The kinds for an endpoint that names none: without checkpoints, since each activity leads to one."""


class WebhookSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[webhooks]]`: one endpoint that is notified. Exactly one of `secret` and `secret_file`.

    SECURITY: address and headers may hold credentials too, so nothing but the name ever shows.
    """

    name: str
    url: str
    """https (http only in dev mode), a domain name, perhaps port, path and query."""
    secret: str | None = None
    """The key that signs deliveries: `whsec_<base64>`, or a text whose bytes are the key."""
    secret_file: str | None = None
    """A private file that holds it; read at each attempt, so that it may be replaced."""
    events: tuple[str, ...] = DEFAULT_KINDS
    headers: dict[str, str] = {}
    timeout_seconds: float = 5.0
    """For one attempt, from the look-up of the name to the end of the answer's head."""
    max_retries: int = 3
    retry_backoff_seconds: tuple[float, ...] = (1.0, 5.0, 30.0)
    """Pauses before the first retry, the second, and so on; the last one counts for all that follow."""
    disable: bool = False

    def __repr__(self) -> str:
        return f"<webhook {self.name}>"


class LimitSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[limits]`: what an operator may tune. Limits that the contract calls fixed are not here."""

    max_in_flight: int | Auto = "auto"
    """"auto": enough for the calls of `workers.http` and as many that wait."""
    max_connections: int = 1024
    session_requests_per_second: int = 200
    """Execute, poll and receipt retrieval of one lease; then 429."""
    header_timeout_seconds: float = 10.0
    body_timeout_seconds: float = 30.0
    idle_timeout_seconds: float = 75.0
    send_timeout_seconds: float = 30.0
    max_unsent_bytes: int = 64 * 1024 * 1024
    """Bytes of answers that clients have not taken yet, in one front."""
    worker_wait_seconds: float = 10.0
    """How long a call waits for a free worker before 503 `overloaded`."""
    drain_seconds: float = 30.0
    """From SIGTERM to the hard stop."""
    idempotency_seconds: int = 86_400
    """How long the same call under the same `Idempotency-Key` is answered with the outcome of the first."""

    @property
    def most_in_flight(self) -> int:
        """`max_in_flight` as a number, as PoolSettings.most."""
        return LEAST_IN_FLIGHT if self.max_in_flight == AUTO else self.max_in_flight


class PoolSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[workers.<profile>]`: size of one pool."""

    min_spare: int = 1
    """Workers."""
    max: int | Auto = 12
    """Calls at once, and workers. "auto": as this host allows, which the supervisor has looked up before it starts
    anything."""
    workers: int | None = None
    """Workers, where the threads that this host allows are too few for `max`: the supervisor finds it."""

    @property
    def most(self) -> int:
        """`max` as a number: the least that "auto" may come to, where no supervisor has looked."""
        return LEAST_CALLS if self.max == AUTO else self.max

    @property
    def most_workers(self) -> int:
        """Workers at once."""
        return self.most if self.workers is None else min(self.workers, self.most)


class WorkerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[workers]`."""

    compute: PoolSettings = PoolSettings()
    http: PoolSettings = PoolSettings(max="auto")
    fs: PoolSettings = PoolSettings()
    recycle_after_calls: int = 10_000
    idle_seconds: float = 60.0
    """An idle worker above `min_spare` is retired after this long."""


class SecretSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[secrets]`: one file of `name: value`, plain JSON with mode 0600 or age-encrypted."""

    file: str | None = None
    age_identity_file: str | None = None
    """Set: `file` is age-encrypted to this identity."""


class ApprovalSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[approvals]`."""

    require_signature: bool = False
    """An approval or denial needs the operator's own signature."""
    max_pending: int = 1000
    """Holds that wait at once, of all principals; the last quarter is for those who have few."""
    max_pending_per_principal: int = 100
    max_pending_bytes: int = 128 * 1024 * 1024
    """Bytes that are stored for them, plans with their requests."""
    max_pending_bytes_per_principal: int = 16 * 1024 * 1024
    keep_days: int = 30
    """How long an approval that has ended keeps its request and its plan."""
    quorum: tuple[QuorumRule, ...] = ()


class MetricsSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[metrics]`: where `GET /metrics` is answered without a credential. At most one of both."""

    listen_uds_path: str | None = None
    listen: str | None = None
    """`ADDRESS:PORT` of loopback."""

    @property
    def address(self) -> str | None:
        """The socket's path or address; None: there is no such socket."""
        return self.listen_uds_path or self.listen


class SandboxSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[sandbox]`."""

    user: str = "nobody"
    """The user of processes that need no file of the gateway, if root started it; ignored otherwise."""


class CompatSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[compat]`."""

    actions_envelope: bool = False


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole configuration. Top-level names are those of docs/contract.md."""

    state_dir: str
    public_base_url: str
    listen_uds_path: str = "/run/gateway/gate.sock"
    listen_admin_uds_path: str = "/run/gateway/gate-admin.sock"
    listen_http_addr: str | None = None
    unsafe_expose_http: bool = False
    front_processes: int = 1
    log_level: str = INFO
    """`debug`: notary, policy processes and workers say, too, what they do for each call."""
    manifests_dir: str = "/etc/gateway/actions"
    policy_dir: str = "/etc/gateway/policy"
    modules_dir: str | None = None
    """Where a manifest's `sha256:<hex>` module lies as `<hex>.wasm`; default `manifests_dir/modules`."""
    files_dir: str | None = None
    """The folder that `files` means in `fs.root` of a manifest; default `state_dir/files`."""
    opa_url: str | None = None
    """The policy engine: an OPA over REST, http, https or unix. None: the embedded engine."""
    opa_token_file: str | None = None
    """A private file with the bearer token for that OPA."""
    opa_memo: str = "off"
    """`revision`: its decisions are kept in memory for as long as it tells the same revisions of its bundles."""
    unsafe_opa_http: bool = False
    """Plain http to an OPA that is not on this host."""
    egress_proxy_url: str | None = None
    lease_ttl_seconds: int = 300
    lease_signing_key_path: str | None = None
    receipt_signing_key_path: str | None = None
    grant_signing_key_path: str | None = None
    receipt_keys_jwks_path: str | None = None
    response_schema_enforcement: str = "deny"
    identity: IdentitySettings = IdentitySettings()
    operators: tuple[OperatorSettings, ...] = ()
    store: StoreSettings = StoreSettings()
    ledger: LedgerSettings = LedgerSettings()
    evidence: EvidenceSettings = EvidenceSettings()
    egress: EgressSettings = EgressSettings()
    limits: LimitSettings = LimitSettings()
    workers: WorkerSettings = WorkerSettings()
    secrets: SecretSettings = SecretSettings()
    compat: CompatSettings = CompatSettings()
    approvals: ApprovalSettings = ApprovalSettings()
    webhooks: tuple[WebhookSettings, ...] = ()
    metrics: MetricsSettings = MetricsSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    sandbox: SandboxSettings = SandboxSettings()
    unsafe_degraded_sandbox: bool = False
    """Serve although the machine lacks walls around workers."""
    dev_mode: bool = False
    """Set by `gateway dev`, never by a file."""
    weakened: tuple[str, ...] = ()
    """Names of what this configuration weakens; shown in status, logged at start, in every audit event."""
    walls: Given = Given()
    """The walls that this kernel offers, as found at the start; never set by a file."""
    version: str = "0.1.0"

    @property
    def files_folder(self) -> str:
        """Folder below which every root of an fs action lies."""
        return self.files_dir or os.path.join(self.state_dir, "files")

    @property
    def fronts_folder(self) -> str:
        """The files of fronts. SECURITY: fronts reach no other part of the state directory (frontend/walls.py)."""
        return os.path.join(self.state_dir, FRONTS)

    @property
    def guarded(self) -> tuple[str, ...]:
        """Paths that only the processes which need them may reach: state directory, ledger and private keys."""
        keys = (self.lease_signing_key_path, self.grant_signing_key_path, self.receipt_signing_key_path)
        certified = (one.client_certificate for one in self.egress.networks)
        return (
            self.state_dir, self.ledger_file, *(key for key in keys if key is not None),
            *(one.key_file for one in certified if one is not None),
        )  # fmt: skip

    @property
    def ledger_file(self) -> str:
        """Path of the embedded database."""
        return self.ledger.path or os.path.join(self.state_dir, "ledger.sqlite3")
