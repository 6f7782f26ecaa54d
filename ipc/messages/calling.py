"""Front and worker: one call at a time, and what became of it."""

import msgspec

from ipc.messages.message import Message
from ipc.plan import Plan


class Welcome(Message, frozen=True):
    """First message to a worker: the public keys that grants are verified with (JWKS as JSON text)."""

    grant_jwks: str


class GrantKeys(Message, frozen=True):
    """The keys that grants are verified with from now on, in place of those of the Welcome; sent only while idle."""

    grant_jwks: str


class Call(Message, frozen=True):
    """Run one plan. `grant` is a compact JWS over its hash; `secrets` maps name to value for this plan only."""

    call_id: str
    plan: Plan
    grant: str
    secrets: dict[str, str]
    deadline_seconds: float
    """Wall-clock budget of this call from now on; the worker's own monotonic clock enforces it."""


class Retire(Message, frozen=True):
    """Leave with Exit.RECYCLED; sent only while idle."""


class WorkerReady(Message, frozen=True):
    """The walls stand and a Welcome is expected."""

    worker_id: str
    pid: int
    profile: str


class ProviderFailure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The provider-error record of the WIT, or what the host found. `kind` as in `provider.wit`."""

    kind: str
    message: str
    details: str | None = None
    retryable: bool = False


class Observation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the host saw one host call do; verifiers believe only these.

    `kind` is http or fs. http: `target` "METHOD url", `status`, `body_sha256`, `bytes` of the response. fs: `target`
    "operation path", `before_sha256` and `body_sha256` the file's digest before and after (None: no such file).
    """

    kind: str
    target: str
    ok: bool
    status: int | None = None
    bytes: int | None = None
    body_sha256: str | None = None
    before_sha256: str | None = None
    error: str | None = None


class Verification(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`outcome` is one of docs/contract.md, "Verification outcomes"; `evidence` are JSON objects as texts."""

    outcome: str
    reason: str | None = None
    evidence: tuple[str, ...] = ()


class Result(Message, frozen=True):
    """What became of a Call.

    `outcome`: success, provider_error, fuel, memory, timeout, io_calls, host_io, trap, bad_output, response_schema,
    grant_refused, module_missing. `output` is JSON text and present only for success (and response_schema).
    """

    call_id: str
    outcome: str
    output: str | None
    failure: ProviderFailure | None
    verification: Verification
    observations: tuple[Observation, ...]
    fuel_consumed: int | None
    """None when unknown: the counter is wrong after an epoch trap."""
    duration_us: int
    io_calls: int
    retiring: bool = False
    """True: this worker has served its share and leaves after this message."""


FrontToWorker = Welcome | GrantKeys | Call | Retire
WorkerToFront = WorkerReady | Result

FAILED_OUTCOMES = (
    "provider_error", "fuel", "memory", "timeout", "io_calls", "host_io", "trap", "bad_output", "response_schema",
    "grant_refused", "module_missing",
)  # fmt: skip
"""Every `Result.outcome` but success."""
