"""Supervisor and front: sockets, workers and policy handed over, life and death, reloads."""

from typing import ClassVar

import msgspec

from ipc.messages.brokering import AttachBroker, NeedBroker, ReplaceBroker
from ipc.messages.exporting import AttachExporter, ReplaceExporter
from ipc.messages.manifests import ActionRollback, ManifestsLoaded
from ipc.messages.message import Message
from ipc.messages.modules import LoadModules, ModulesLoaded
from ipc.operations.status import ClockTold
from ipc.reloadable import Reloadable
from ipc.settings import Settings


class HandedListener(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A listening socket handed over: `kind` is client, admin or merged; `address` a path or host:port, for people."""

    kind: str
    address: str
    stays_open: bool = False
    """A service manager holds the socket, too: it stays open after the gateway, with the connections that wait."""


class StartFront(Message, frozen=True):
    """First message to a front; `FDS` varies: one descriptor per listener, in order, and the memory that fronts share
    (ipc/channel/front_memory.py)."""

    front_id: str
    live_fronts: tuple[str, ...]
    """Fronts that are alive now, this one included: claims held by others are orphaned."""
    settings: Settings
    listeners: tuple[HandedListener, ...]
    number: int = 1
    """Counts front processes, for titles and logs; `front_id` is new with each life of a front."""
    is_successor: bool = False
    """Its predecessor had served: problems of notifications or of the egress proxy's list alone must not end it."""


class AttachNotary(Message, frozen=True):
    """A fresh notary; its channel comes along. The one before is gone, and what it did not answer is asked again."""

    FDS: ClassVar[int] = 1
    pid: int


class DelivererStarted(Message, frozen=True):
    """The deliverer of now, and the endpoints that have answered 410 since the last reload."""

    pid: int
    gone: tuple[str, ...] = ()


class AttachPolicy(Message, frozen=True):
    """A fresh policy process; its channel comes along."""

    FDS: ClassVar[int] = 1
    pid: int


class AttachReader(Message, frozen=True):
    """The reader that was asked for by `request_id`; its channel comes along."""

    FDS: ClassVar[int] = 1
    request_id: str
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


class Drain(Message, frozen=True):
    """Take no new work. Answered by Draining.

    With `is_leaving` the gateway ends. Where all sockets for calls stay open nothing is refused then: accepted
    connections are served, and the others wait in the socket for the next gateway. Draining is sent after that.
    """

    is_leaving: bool = False


class CrashLoops(Message, frozen=True):
    """Names of the children that are in a crash loop now; with any of them readiness fails."""

    children: tuple[str, ...]


class Reload(Message, frozen=True):
    """Read manifests and policy again, swap both or neither, and what the configuration file says anew with them.
    Answered by Reloaded.

    `requested_by` is `signal` or `operator:<name>`; an operator's thumbprint and proof and the trace of the request
    come along, for evidence.
    """

    request_id: str
    requested_by: str
    operator_jkt: str | None = None
    proof_jti: str | None = None
    trace_id: str | None = None
    waits: bool = False
    """Other fronts reload, too: before it comes into force, send ReloadPrepared and wait for FinishReload."""
    tells: bool = True
    """This front writes the event of the reload; exactly one of several fronts does."""
    reloadable: Reloadable | None = None
    """The settings of the configuration file as it is now; None: unchanged."""
    problems: tuple[str, ...] = ()
    """Problems of the configuration file. With any of them nothing comes into force; they are reported with those of
    all other files."""
    changed: tuple[str, ...] = ()
    """Names of settings that come into force with this, for evidence."""
    needs_restart: tuple[str, ...] = ()
    """Names of settings that have changed in the file and do not follow a reload."""
    rolled_back: ActionRollback | None = None
    """Set where `gateway actions rollback` asked for this."""


class ReloadPrepared(Message, frozen=True):
    """This front has read everything for this Reload; only the event of it has to be written before it is in force."""

    request_id: str


class FinishReload(Message, frozen=True):
    """Put in force what was prepared, or, with an `error`, leave everything as it is. Answered by Reloaded."""

    request_id: str
    error: str | None = None


class FollowSettings(Message, frozen=True):
    """The settings that a reload has put in force: sent to the notary, and to a front that started too late to take
    part. Answered by SettingsFollowed."""

    request_id: str
    reloadable: Reloadable


class SettingsFollowed(Message, frozen=True):
    """The settings are in force here."""

    request_id: str


class TryWebhook(Message, frozen=True):
    """Send a `webhook.test` of this id to an endpoint, once. A front asks its supervisor, which hands it on to the
    deliverer. Answered by WebhookTried."""

    request_id: str
    endpoint: str
    event_id: str


class WebhookTried(Message, frozen=True):
    """The result: outcome, HTTP status where there was one, and a sentence."""

    request_id: str
    outcome: str
    status: int | None = None
    error: str = ""


class Stop(Message, frozen=True):
    """Finish the calls in flight within `seconds`, then exit."""

    seconds: float


class FrontReady(Message, frozen=True):
    """Serving."""

    actions: int


class NeedWorker(Message, frozen=True):
    """All workers of `profile` are busy and the pool may grow."""

    profile: str


class WorkerServes(Message, frozen=True):
    """A new worker has greeted this front: it works, and if it ends a successor is started at once."""

    worker_id: str


class KillWorker(Message, frozen=True):
    """The worker exceeded its call's deadline or broke the protocol."""

    worker_id: str
    reason: str


class ReplacePolicy(Message, frozen=True):
    """The policy process `pid` missed a deadline or broke the protocol: kill it, attach another."""

    pid: int
    reason: str


class NeedReader(Message, frozen=True):
    """A question about the whole ledger waits for a reader. Answered by AttachReader."""

    request_id: str


class RequestDrain(Message, frozen=True):
    """An operator asked for drain through this front."""


class Draining(Message, frozen=True):
    """This front refuses new work now."""

    in_flight: int


class RequestReload(Message, frozen=True):
    """An operator asked for reload through this front; every front gets Reload with the same id and the same words."""

    request_id: str
    requested_by: str
    operator_jkt: str | None = None
    proof_jti: str | None = None
    trace_id: str | None = None
    rolled_back: ActionRollback | None = None


class ReloadDone(Message, frozen=True):
    """Outcome of one Reload. `error` is None when the new configuration is active."""

    request_id: str
    error: str | None
    actions: int
    policy_version: str
    changed: tuple[str, ...] = ()
    """Names of settings that came into force; with `needs_restart` the supervisor's to say."""
    needs_restart: tuple[str, ...] = ()


class PolicyEdited(Message, frozen=True):
    """The policy's data was changed through a front. Front to supervisor, supervisor to every other front.

    `digest` is the digest of the whole policy in `policy_dir` after the change; a front that finds it there uses it.
    """

    digest: str


class FrontStatus(Message, frozen=True):
    """The numbers of the supervisor's status line: sent once a second, and when drained."""

    in_flight: int
    held: int
    unresolved: int
    actions: int
    oldest_seconds: float = 0.0
    """Age of the oldest call in flight."""
    dependencies: dict[str, bool] = msgspec.field(default_factory=dict)
    """By their names in the status: whether each answers."""
    waiting: dict[str, int] = msgspec.field(default_factory=dict)
    """Profile -> calls that wait for a worker."""
    busy: dict[str, int] = msgspec.field(default_factory=dict)
    """Profile -> workers with a call."""
    unanswered: int = 0
    """Operations that the notary has not answered."""
    is_ledger_full: bool = False
    """The ledger's volume has too little room for a call to begin."""
    log_lines_dropped: int = 0
    """Lines that could not be written to standard error since this front started."""
    clock_error: ClockTold | None = None
    """Why every call is refused with clock_error."""


SupervisorToFront = (
    StartFront | AttachNotary | AttachPolicy | AttachReader | AttachWorker | WorkerGone | ModulesLoaded | Drain
    | CrashLoops | Reload | FinishReload | FollowSettings | ReloadDone | PolicyEdited | WebhookTried
    | DelivererStarted | AttachBroker | AttachExporter | Stop
)  # fmt: skip
FrontToSupervisor = (
    FrontReady
    | NeedWorker
    | WorkerServes
    | KillWorker
    | ReplacePolicy
    | NeedReader
    | LoadModules
    | RequestDrain
    | Draining
    | RequestReload
    | ReloadPrepared
    | ReloadDone
    | SettingsFollowed
    | PolicyEdited
    | TryWebhook
    | ManifestsLoaded
    | NeedBroker
    | ReplaceBroker
    | ReplaceExporter
    | FrontStatus
)
