"""The channel of a front to the supervisor."""

from ipc.channel.protocol_states import Table, pair
from ipc.messages.brokering import AttachBroker, NeedBroker, ReplaceBroker
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
from ipc.messages.exporting import AttachExporter, ReplaceExporter
from ipc.messages.manifests import ManifestsLoaded
from ipc.messages.modules import LoadModules, ModulesLoaded

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

pair(SUPERVISOR_TO_FRONT, "new", FRONT_TO_SUPERVISOR, "starting")
