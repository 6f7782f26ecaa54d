"""Notary and worker: the word that a plan may run, and its result.

SECURITY: no front has an end of this channel. A worker runs a plan only after a Word on this channel, and evidence of a
call holds only what came over it. So a front can neither have a plan executed that is not in the ledger nor invent a
result.
"""

from ipc.expected import FileToLeave
from ipc.messages.calling import Result
from ipc.messages.message import Message

LOOKS = MATCHES, DIFFERS, ABSENT, UNREADABLE = ("matches", "differs", "absent", "unreadable")
"""States of a file that a LookAtFile finds."""


class Tied(Message, frozen=True):
    """First message of every notary: this worker's channel is watched."""


class Permit(Message, frozen=True):
    """The intent of this call is durable: run the plan that has this hash, once.

    After a crash of the notary its successor repeats the word: a worker that has run the plan repeats its Result.
    """

    call_id: str
    plan_hash: str
    is_approved: bool
    """A person approved the plan: what was unresolved in it may be reached."""
    settled: tuple[str, ...] = ()
    """Calls of this worker whose evidence has become durable: the notary will not ask about them again."""


class NoPermit(Message, frozen=True):
    """This call was refused: its front is about to drop the plan."""

    call_id: str


class LookAtFile(Message, frozen=True):
    """Read this file, run nothing, and answer with Seen under this number.

    After a crash of the notary its successor asks again: then the file is read again.
    """

    number: int
    verifier_kind: str
    file: FileToLeave
    seconds: float
    """The longest time that reading may take."""


class Seen(Message, frozen=True):
    """The result of a LookAtFile. `sha256` is `sha256:<hex>` of a file that was read whole."""

    number: int
    state: str
    """One of LOOKS."""
    sha256: str | None = None


NotaryToWorker = Tied | Permit | NoPermit | LookAtFile
WorkerToNotary = Result | Seen
