"""The channel of a policy process to its front."""

from ipc.channel.protocol_states import Table, pair
from ipc.messages.deciding import Ask, LoadPolicy, PolicyCompiled, UsePolicy, Verdict
from ipc.messages.pinging import Ping, Pong

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

pair(FRONT_TO_POLICY, "empty", POLICY_TO_FRONT, "open")
