"""Front and reader: one question, how far its answer is, and the answer."""

from contract.audit import ChainReport
from ipc.messages.message import Message


class VerifyChain(Message, frozen=True):
    """Walk the whole chain of events."""


class Walking(Message, frozen=True):
    """The number of events that have been walked. Sent at the start, and then about once a second."""

    events: int


class ChainVerified(Message, frozen=True):
    """The walk has ended."""

    report: ChainReport


class NotRead(Message, frozen=True):
    """There is no answer: the database can't be read now. `reason` is for the log."""

    reason: str


FrontToReader = VerifyChain
ReaderToFront = Walking | ChainVerified | NotRead
