"""Which message may come in which state, per direction of a channel. Anything else is fatal to that peer.

A table maps (state, message type) to the next state: default deny, as in a privilege-separated monitor. Each end of a
channel has two sessions (ipc/channel/channels.py): one checks every message received, the other every message sent, so
that an end that errs finds its own mistake before its peer does.
"""

from collections.abc import Mapping

from ipc.messages.attesting import LookAtFile, NoPermit, Permit, Seen, Tied
from ipc.messages.brokering import (
    AskKeys,
    AskToken,
    AttachAsker,
    AttachBroker,
    BrokerReady,
    BrokerRefused,
    KeysGiven,
    NeedBroker,
    ReplaceBroker,
    StartBroker,
    TokenGiven,
)
from ipc.messages.calling import Call, Drop, Result, Retire, Secrets, TokenRefused, WorkerReady
from ipc.messages.control import (
    AttachNotary,
    AttachPolicy,
    AttachReader,
    AttachWorker,
    CrashLoops,
    DelivererStarted,
    Drain,
    Draining,
    FinishReload,
    FollowSettings,
    FrontReady,
    FrontStatus,
    KillWorker,
    NeedReader,
    NeedWorker,
    PolicyEdited,
    Reload,
    ReloadDone,
    ReloadPrepared,
    ReplacePolicy,
    RequestDrain,
    RequestReload,
    SettingsFollowed,
    StartFront,
    Stop,
    TryWebhook,
    WebhookTried,
    WorkerGone,
    WorkerServes,
)
from ipc.messages.deciding import Ask, LoadPolicy, PolicyCompiled, UsePolicy, Verdict
from ipc.messages.delivering import AskedByDeliverer, DelivererReady, EndpointGone, StartDeliverer, Welcome, Woken
from ipc.messages.event_reading import AskedByExporter, AttachEventReader
from ipc.messages.exporting import (
    AttachEvents,
    AttachExporter,
    AttachGiver,
    CallsExported,
    ExportCalls,
    ExporterReady,
    ReplaceExporter,
    StartExporter,
)
from ipc.messages.forking import (
    KillForked,
    SpawnWorker,
    StartTemplate,
    TemplateReady,
    UseNetworks,
    WorkerExited,
    WorkerStarted,
)
from ipc.messages.manifests import ManifestsLoaded
from ipc.messages.message import Message
from ipc.messages.modules import LoadModules, ModulesLoaded
from ipc.messages.notarising import (
    AttachDeliverer,
    AttachFront,
    FrontDetached,
    NotaryReady,
    StartNotary,
    StopNotary,
    TieWorker,
    WorkerBroke,
    WorkerEnded,
)
from ipc.messages.notary_frames import Answered, Begun, FrontFacts, NumberedOperation
from ipc.messages.pinging import Ping, Pong
from ipc.messages.reading import ChainVerified, NotRead, VerifyChain, Walking
from ipc.messages.sealing import CutLedger, LedgerCut

Table = Mapping[tuple[str, type[Message]], str]


class ProtocolError(Exception):
    """A message that the session's state does not allow. Either the peer sent it, and is not trusted any further, or
    this end was about to send it, and did not."""


class ProtocolState:
    """The state of one end of one channel for one direction of messages."""

    def __init__(self, table: Table, start: str) -> None:
        self._table = table
        self.state = start

    def accept(self, message: Message) -> None:
        """Move to the next state. Raises ProtocolError when the table has no such move."""
        following = self._table.get((self.state, type(message)))
        if following is None:
            raise ProtocolError(f"{type(message).__name__} while {self.state}")
        self.state = following


# Messages from a worker to the front.
WORKER_TO_FRONT: Table = {
    ("starting", WorkerReady): "serving",
    ("serving", TokenRefused): "serving",
    ("serving", Result): "serving",
}

# Messages from the front to a worker.
FRONT_TO_WORKER: Table = {
    ("open", Call): "open",
    ("open", Secrets): "open",
    ("open", Drop): "open",
    ("open", Retire): "retired",
}

# Messages from the supervisor to a front.
SUPERVISOR_TO_FRONT: Table = {("new", StartFront): "started"} | {
    ("started", kind): "started"
    for kind in (
        AttachNotary, AttachPolicy, AttachReader, AttachWorker, AttachBroker, AttachExporter, WorkerGone, ModulesLoaded,
        Drain, CrashLoops, Reload, FinishReload, FollowSettings, ReloadDone, PolicyEdited, WebhookTried,
        DelivererStarted,
    )
} | {("started", Stop): "stopping"} | {
    ("stopping", kind): "stopping"
    for kind in (
        AttachNotary, AttachPolicy, AttachReader, AttachWorker, AttachBroker, AttachExporter, WorkerGone, ModulesLoaded,
        Drain, CrashLoops, FinishReload, FollowSettings, ReloadDone, WebhookTried, DelivererStarted, Stop,
    )
}  # fmt: skip

# Messages from a front to the supervisor.
FRONT_TO_SUPERVISOR: Table = {("starting", FrontReady): "serving"} | {
    (state, kind): state
    for state in ("starting", "serving")
    for kind in (
        NeedWorker, WorkerServes, KillWorker, ReplacePolicy, NeedReader, LoadModules, RequestDrain,
        Draining, RequestReload, ReloadPrepared, ReloadDone, SettingsFollowed, PolicyEdited, FrontStatus,
        TryWebhook, ManifestsLoaded, NeedBroker, ReplaceBroker, ReplaceExporter,
    )
}  # fmt: skip

# Messages from the supervisor to the template.
SUPERVISOR_TO_TEMPLATE: Table = {("new", StartTemplate): "started"} | {
    ("started", kind): "started" for kind in (UseNetworks, LoadModules, SpawnWorker, KillForked, Ping)
}

# Messages from the template to the supervisor.
TEMPLATE_TO_SUPERVISOR: Table = {("starting", TemplateReady): "ready"} | {
    ("ready", kind): "ready" for kind in (ModulesLoaded, WorkerStarted, WorkerExited, Pong)
}

# Messages from a front to the policy process.
FRONT_TO_POLICY: Table = {
    ("empty", LoadPolicy): "empty",
    ("empty", UsePolicy): "loaded",
    ("empty", Ping): "empty",
    ("loaded", LoadPolicy): "loaded",
    ("loaded", UsePolicy): "loaded",
    ("loaded", Ask): "loaded",
    ("loaded", Ping): "loaded",
}

# Messages from the policy process to the front.
POLICY_TO_FRONT: Table = {
    ("open", PolicyCompiled): "open",
    ("open", Verdict): "open",
    ("open", Pong): "open",
}

# Messages from the supervisor to the notary.
SUPERVISOR_TO_NOTARY: Table = {
    ("new", StartNotary): "started",
    ("started", AttachFront): "started",
    ("started", AttachDeliverer): "started",
    ("started", AttachEventReader): "started",
    ("started", TieWorker): "started",
    ("started", WorkerEnded): "started",
    ("started", FollowSettings): "started",
    ("started", CutLedger): "started",
    ("started", Ping): "started",
    ("started", StopNotary): "stopping",
    ("stopping", WorkerEnded): "stopping",
}

# Messages from the notary to the supervisor.
NOTARY_TO_SUPERVISOR: Table = {
    ("starting", NotaryReady): "ready",
    ("ready", FrontDetached): "ready",
    ("ready", WorkerBroke): "ready",
    ("ready", SettingsFollowed): "ready",
    ("ready", LedgerCut): "ready",
    ("ready", Pong): "ready",
}

# Messages from a front to the notary.
FRONT_TO_NOTARY: Table = {("open", NumberedOperation): "open"}

# Messages from the notary to a front.
NOTARY_TO_FRONT: Table = {
    ("new", FrontFacts): "open",
    ("open", FrontFacts): "open",
    ("open", Answered): "open",
    ("open", Begun): "open",
}

# Messages from the supervisor to the deliverer.
SUPERVISOR_TO_DELIVERER: Table = {
    ("new", StartDeliverer): "started",
    ("started", AttachNotary): "started",
    ("started", TryWebhook): "started",
    ("started", Stop): "stopping",
    ("stopping", AttachNotary): "stopping",
}

# Messages from the deliverer to the supervisor.
DELIVERER_TO_SUPERVISOR: Table = {
    ("starting", DelivererReady): "ready",
    ("ready", WebhookTried): "ready",
    ("ready", EndpointGone): "ready",
}

# Messages from the deliverer to the notary.
DELIVERER_TO_NOTARY: Table = {("open", AskedByDeliverer): "open"}

# Messages from the notary to the deliverer.
NOTARY_TO_DELIVERER: Table = {
    ("new", Welcome): "open",
    ("open", Answered): "open",
    ("open", Woken): "open",
}

# Messages from the supervisor to the broker.
SUPERVISOR_TO_BROKER: Table = {("new", StartBroker): "started", ("started", AttachAsker): "started"}

# Messages from the broker to the supervisor.
BROKER_TO_SUPERVISOR: Table = {("starting", BrokerReady): "ready"}

# Messages from a front to the broker.
FRONT_TO_BROKER: Table = {("open", AskToken): "open", ("open", AskKeys): "open"}

# Messages from the broker to a front.
BROKER_TO_FRONT: Table = {
    ("open", TokenGiven): "open",
    ("open", KeysGiven): "open",
    ("open", BrokerRefused): "open",
}

# Messages from the supervisor to the exporter.
SUPERVISOR_TO_EXPORTER: Table = {
    ("new", StartExporter): "started",
    ("started", AttachGiver): "started",
    ("started", AttachEvents): "started",
}

# Messages from the exporter to the supervisor.
EXPORTER_TO_SUPERVISOR: Table = {("starting", ExporterReady): "ready"}

# Messages from a front to the exporter: one question at a time.
FRONT_TO_EXPORTER: Table = {("open", ExportCalls): "open"}

# Messages from the exporter to a front.
EXPORTER_TO_FRONT: Table = {("open", CallsExported): "open"}

# Messages from the exporter to the notary.
EXPORTER_TO_NOTARY: Table = {("open", AskedByExporter): "open"}

# Messages from the notary to the exporter.
NOTARY_TO_EXPORTER: Table = {("new", Welcome): "open", ("open", Answered): "open"}

# Messages from the notary to a worker.
NOTARY_TO_WORKER: Table = {
    ("new", Tied): "tied",
    ("tied", Tied): "tied",
    ("tied", Permit): "tied",
    ("tied", NoPermit): "tied",
    ("tied", LookAtFile): "tied",
}

# Messages from a worker to the notary.
WORKER_TO_NOTARY: Table = {("open", Result): "open", ("open", Seen): "open"}

# Messages from a front to a reader.
FRONT_TO_READER: Table = {("new", VerifyChain): "asked"}

# Messages from a reader to the front.
READER_TO_FRONT: Table = {
    ("walking", Walking): "walking",
    ("walking", ChainVerified): "answered",
    ("walking", NotRead): "answered",
}
