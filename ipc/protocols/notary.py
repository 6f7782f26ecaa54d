"""The channels of the notary: to the supervisor, and to each front."""

from ipc.channel.protocol_states import Table, pair
from ipc.messages.control import FollowSettings, SettingsFollowed
from ipc.messages.event_reading import AttachEventReader
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
from ipc.messages.sealing import CutLedger, LedgerCut

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

pair(SUPERVISOR_TO_NOTARY, "new", NOTARY_TO_SUPERVISOR, "starting")

# Messages from a front to the notary.
FRONT_TO_NOTARY: Table = {("open", NumberedOperation): "open"}

# Messages from the notary to a front.
NOTARY_TO_FRONT: Table = {
    ("new", FrontFacts): "open",
    ("open", FrontFacts): "open",
    ("open", Answered): "open",
    ("open", Begun): "open",
}

pair(FRONT_TO_NOTARY, "open", NOTARY_TO_FRONT, "new")
