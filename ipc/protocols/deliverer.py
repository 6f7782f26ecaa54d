"""The channels of the deliverer: to the supervisor, and to the notary."""

from ipc.channel.protocol_states import Table, pair
from ipc.messages.control import AttachNotary, Stop, TryWebhook, WebhookTried
from ipc.messages.delivering import AskedByDeliverer, DelivererReady, EndpointGone, StartDeliverer, Welcome, Woken
from ipc.messages.notary_frames import Answered

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

pair(SUPERVISOR_TO_DELIVERER, "new", DELIVERER_TO_SUPERVISOR, "starting")

# Messages from the deliverer to the notary.
DELIVERER_TO_NOTARY: Table = {("open", AskedByDeliverer): "open"}

# Messages from the notary to the deliverer.
NOTARY_TO_DELIVERER: Table = {
    ("new", Welcome): "open",
    ("open", Answered): "open",
    ("open", Woken): "open",
}

pair(DELIVERER_TO_NOTARY, "open", NOTARY_TO_DELIVERER, "new")
