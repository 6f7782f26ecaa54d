"""The channel of a reader to its front."""

from ipc.channel.protocol_states import Table, pair
from ipc.messages.reading import ChainVerified, NotRead, VerifyChain, Walking

# Messages from a front to a reader.
FRONT_TO_READER: Table = {("new", VerifyChain): "asked"}

# Messages from a reader to the front.
READER_TO_FRONT: Table = {
    ("walking", Walking): "walking",
    ("walking", ChainVerified): "answered",
    ("walking", NotRead): "answered",
}

pair(FRONT_TO_READER, "new", READER_TO_FRONT, "walking")
