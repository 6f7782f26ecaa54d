"""Every message between processes: one tagged union per direction.

Structs are frozen, tagged by name and refuse unknown fields. Binary and JSON payloads travel as text. The session
tables in `ipc/sessions.py` say which of them may come in which state.
"""

from typing import ClassVar

import msgspec

from ipc.plan import Plan
from ipc.settings import Settings


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Base of all messages. `FDS` descriptors travel with each one (SCM_RIGHTS) and wait in `fds` of the channel."""

    FDS: ClassVar[int] = 0


# ------------------------------------------------------------------ supervisor and front


class Listener(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A listening socket handed over: `kind` is client, admin or merged; `address` a path or host:port, for people."""

    kind: str
    address: str


class StartFront(Message, frozen=True):
    """First message to a front; `FDS` varies: one descriptor per listener, in order."""

    front_id: str
    live_fronts: tuple[str, ...]
    """Fronts that are alive now, this one included: claims held by others are orphaned."""
    settings: Settings
    listeners: tuple[Listener, ...]
    number: int = 1
    """Counts front processes, for titles and logs; `front_id` is new with each life of a front."""


class AttachPolicy(Message, frozen=True):
    """A fresh policy process; its channel comes along."""

    FDS: ClassVar[int] = 1
    pid: int


class AttachWorker(Message, frozen=True):
    """A fresh worker; its channel comes along. `generation` counts module loads that it has seen."""

    FDS: ClassVar[int] = 1
    worker_id: str
    profile: str
    pid: int
    generation: int


class WorkerGone(Message, frozen=True):
    """A worker ended. `reason` is an exit code's name or a signal's."""

    worker_id: str
    reason: str


class ModuleFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A module that a manifest names. `reference` is `builtin:NAME` or `sha256:<hex>`; `path` only for the latter."""

    reference: str
    path: str | None
    required_imports: tuple[str, ...]


class ModuleVerdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What became of one ModuleFile. `verdict`: ok, mismatch, missing or refused; `detail` says why, for people."""

    reference: str
    verdict: str
    digest: str | None
    detail: str = ""


class LoadModules(Message, frozen=True):
    """Check, compile and map these modules. Front to supervisor, supervisor to template."""

    request_id: str
    modules: tuple[ModuleFile, ...]


class ModulesLoaded(Message, frozen=True):
    """One verdict per module, in order. Workers of `generation` and later have those that are ok."""

    request_id: str
    generation: int
    verdicts: tuple[ModuleVerdict, ...]


class Drain(Message, frozen=True):
    """Take no new work. Answered by Draining."""


class Reload(Message, frozen=True):
    """Read manifests and policy again, swap both or neither. Answered by Reloaded."""

    request_id: str
    requested_by: str


class Stop(Message, frozen=True):
    """Finish what is in flight within `seconds`, then exit."""

    seconds: float


class FrontReady(Message, frozen=True):
    """Serving."""

    actions: int


class NeedWorker(Message, frozen=True):
    """All workers of `profile` are busy and the pool may grow."""

    profile: str


class KillWorker(Message, frozen=True):
    """The worker outlived its call's deadline or broke the protocol."""

    worker_id: str
    reason: str


class ReplacePolicy(Message, frozen=True):
    """The policy process `pid` missed a deadline or broke the protocol: kill it, attach another."""

    pid: int
    reason: str


class RequestDrain(Message, frozen=True):
    """An operator asked for drain through this front."""


class Draining(Message, frozen=True):
    """This front refuses new work now."""

    in_flight: int


class RequestReload(Message, frozen=True):
    """An operator asked for reload through this front; every front gets Reload with the same id."""

    request_id: str
    requested_by: str


class Reloaded(Message, frozen=True):
    """Outcome of one Reload. `error` is None when the new configuration is active."""

    request_id: str
    error: str | None
    actions: int
    policy_version: str


class FrontStatus(Message, frozen=True):
    """Once a second, and when drained: what the supervisor shows in its status line."""

    in_flight: int
    held: int
    unresolved: int
    actions: int


SupervisorToFront = (
    StartFront | AttachPolicy | AttachWorker | WorkerGone | ModulesLoaded | Drain | Reload | Reloaded | Stop
)
FrontToSupervisor = (
    FrontReady | NeedWorker | KillWorker | ReplacePolicy | LoadModules | RequestDrain | Draining | RequestReload
    | Reloaded | FrontStatus
)  # fmt: skip

# ------------------------------------------------------------------ supervisor and template


class StartTemplate(Message, frozen=True):
    """First message to the template. `cache_dir` holds compiled modules; a worker leaves after so many calls."""

    cache_dir: str
    recycle_after_calls: int


class TemplateReady(Message, frozen=True):
    """The runtime is imported and modules may be loaded."""


class SpawnWorker(Message, frozen=True):
    """Fork a worker that owns the descriptor that comes along. `title` is what ps shows."""

    FDS: ClassVar[int] = 1
    worker_id: str
    profile: str
    title: str


class WorkerStarted(Message, frozen=True):
    """The fork succeeded."""

    worker_id: str
    pid: int
    generation: int


class WorkerExited(Message, frozen=True):
    """`status` as os.waitstatus_to_exitcode gives it: an exit code, or minus a signal."""

    worker_id: str
    pid: int
    status: int


class KillForked(Message, frozen=True):
    """SIGKILL a worker, by its parent: no other process may reuse its pid in between."""

    worker_id: str


SupervisorToTemplate = StartTemplate | LoadModules | SpawnWorker | KillForked
TemplateToSupervisor = TemplateReady | ModulesLoaded | WorkerStarted | WorkerExited

# ------------------------------------------------------------------ front and policy


class LoadPolicy(Message, frozen=True):
    """Compile these sources beside the active policy. `data` is the JSON text of data.json."""

    load_id: str
    modules: dict[str, str]
    data: str


class UsePolicy(Message, frozen=True):
    """Make the compiled `load_id` the active policy."""

    load_id: str


class Ask(Message, frozen=True):
    """One question: evaluate `data.gateway.decision` over `input`."""

    question_id: int
    input: dict[str, object]


class PolicyCompiled(Message, frozen=True):
    """`error` None: ready to be used."""

    load_id: str
    error: str | None


class Verdict(Message, frozen=True):
    """`document` is the JSON text of the decision; None with `error` when the engine failed or it is undefined."""

    question_id: int
    document: str | None
    error: str | None = None


FrontToPolicy = LoadPolicy | UsePolicy | Ask
PolicyToFront = PolicyCompiled | Verdict

# ------------------------------------------------------------------ front and worker


class Welcome(Message, frozen=True):
    """First message to a worker: the public keys that grants are verified with (JWKS as JSON text)."""

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
    """`outcome` is one of the five of the interface specification; `evidence` are JSON objects as texts."""

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


FrontToWorker = Welcome | Call | Retire
WorkerToFront = WorkerReady | Result

FAILED_OUTCOMES = (
    "provider_error", "fuel", "memory", "timeout", "io_calls", "host_io", "trap", "bad_output", "response_schema",
    "grant_refused", "module_missing",
)  # fmt: skip
"""Every `Result.outcome` but success."""
