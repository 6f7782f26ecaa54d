"""The channel of the template to the supervisor."""

from ipc.channel.protocol_states import Table, pair
from ipc.messages.forking import (
    KillForked,
    SpawnWorker,
    StartTemplate,
    TemplateReady,
    UseNetworks,
    WorkerExited,
    WorkerStarted,
)
from ipc.messages.modules import LoadModules, ModulesLoaded
from ipc.messages.pinging import Ping, Pong

# Messages from the supervisor to the template.
SUPERVISOR_TO_TEMPLATE: Table = {("new", StartTemplate): "started"} | {
    ("started", kind): "started" for kind in (UseNetworks, LoadModules, SpawnWorker, KillForked, Ping)
}

# Messages from the template to the supervisor.
TEMPLATE_TO_SUPERVISOR: Table = {("starting", TemplateReady): "ready"} | {
    ("ready", kind): "ready" for kind in (ModulesLoaded, WorkerStarted, WorkerExited, Pong)
}

pair(SUPERVISOR_TO_TEMPLATE, "new", TEMPLATE_TO_SUPERVISOR, "starting")
