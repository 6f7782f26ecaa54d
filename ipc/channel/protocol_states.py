"""The state of a channel: which message may come next, in each direction. Anything else is fatal to that peer.

A table maps (state, message type) to the next state: default deny, as in a privilege-separated monitor. Two tables are
one channel; `ipc/protocols/` has them. Each end of a channel has two states: one checks every message received, the
other every message sent, so that an end that errs finds its own mistake before its peer does.
"""

from collections.abc import Mapping

from ipc.messages.message import Message

Table = Mapping[tuple[str, type[Message]], str]


class ProtocolError(Exception):
    """A message that the channel's state does not allow. Either the peer sent it, and is not trusted any further, or
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


_CHANNELS: dict[int, tuple[tuple[Table, str], tuple[Table, str]]] = {}
"""By the identity of the table for receiving: it and its first state, and those for sending."""


def pair(one: Table, one_start: str, other: Table, other_start: str) -> None:
    """Make two directions one channel. The states are those in which each begins."""
    first, second = (one, one_start), (other, other_start)
    _CHANNELS[id(one)] = (first, second)
    _CHANNELS[id(other)] = (second, first)


def states_of(table: Table) -> tuple[ProtocolState, ProtocolState]:
    """The first states of one end that receives by `table`: for what it receives, and for what it sends.

    Raises LookupError for a table that is no direction of a channel.
    """
    if id(table) not in _CHANNELS:
        raise LookupError("this table is no direction of a channel: see pair()")
    receiving, sending = _CHANNELS[id(table)]
    return ProtocolState(*receiving), ProtocolState(*sending)
