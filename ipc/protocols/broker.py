"""The channels of the broker: to the supervisor, and to each front."""

from ipc.channel.protocol_states import Table, pair
from ipc.messages.brokering import (
    AskKeys,
    AskToken,
    AttachAsker,
    BrokerReady,
    BrokerRefused,
    KeysGiven,
    StartBroker,
    TokenGiven,
)

# Messages from the supervisor to the broker.
SUPERVISOR_TO_BROKER: Table = {("new", StartBroker): "started", ("started", AttachAsker): "started"}

# Messages from the broker to the supervisor.
BROKER_TO_SUPERVISOR: Table = {("starting", BrokerReady): "ready"}

pair(SUPERVISOR_TO_BROKER, "new", BROKER_TO_SUPERVISOR, "starting")

# Messages from a front to the broker.
FRONT_TO_BROKER: Table = {("open", AskToken): "open", ("open", AskKeys): "open"}

# Messages from the broker to a front.
BROKER_TO_FRONT: Table = {
    ("open", TokenGiven): "open",
    ("open", KeysGiven): "open",
    ("open", BrokerRefused): "open",
}

pair(FRONT_TO_BROKER, "open", BROKER_TO_FRONT, "open")
