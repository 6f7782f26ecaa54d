"""The channels of a worker: to its front, and to the notary."""

from ipc.channel.protocol_states import Table, pair
from ipc.messages.attesting import LookAtFile, NoPermit, Permit, Seen, Tied
from ipc.messages.calling import Call, Drop, Result, Retire, Secrets, TokenRefused, WorkerReady

# Messages from the front to a worker.
FRONT_TO_WORKER: Table = {
    ("open", Call): "open",
    ("open", Secrets): "open",
    ("open", Drop): "open",
    ("open", Retire): "retired",
}

# Messages from a worker to the front.
WORKER_TO_FRONT: Table = {
    ("starting", WorkerReady): "serving",
    ("serving", TokenRefused): "serving",
    ("serving", Result): "serving",
}

pair(FRONT_TO_WORKER, "open", WORKER_TO_FRONT, "starting")

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

pair(NOTARY_TO_WORKER, "new", WORKER_TO_NOTARY, "open")
