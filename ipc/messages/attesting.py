"""Notary and worker: the word that a plan may run, and what became of it.

SECURITY: this channel passes no front. A worker runs nothing without a word that came over it, and evidence says
nothing of a call but what came over it, so that a front can neither have a plan executed that is not in the ledger nor
invent a result.
"""

from ipc.expected import FileToLeave
from ipc.messages.calling import Result
from ipc.messages.message import Message

LOOKS = MATCHES, DIFFERS, ABSENT, UNREADABLE = ("matches", "differs", "absent", "unreadable")
"""What a file can be found to be."""


class Tied(Message, frozen=True):
    """First message of every notary: this worker's channel is watched."""


class Word(Message, frozen=True):
    """The intent of this call is durable: run the plan that has this hash, once.

    A notary that follows one which died repeats the word: a worker that has run the plan repeats its Result.
    """

    call_id: str
    plan_hash: str
    is_approved: bool
    """A person approved the plan: what was unresolved in it may be reached."""
    settled: tuple[str, ...] = ()
    """Calls of this worker whose evidence has become durable: nothing of them is asked again."""


class NoWord(Message, frozen=True):
    """This call was refused: its front is about to drop the plan."""

    call_id: str


class Look(Message, frozen=True):
    """Read this file, run nothing, and tell Seen under this number.

    A notary that follows one which died asks it again: then it is read again.
    """

    number: int
    verifier_kind: str
    file: FileToLeave
    seconds: float
    """For so long it is read at most."""


class Seen(Message, frozen=True):
    """What a Look found. `sha256` is `sha256:<hex>` of a file that was read whole."""

    number: int
    state: str
    """One of LOOKS."""
    sha256: str | None = None


NotaryToWorker = Tied | Word | NoWord | Look
WorkerToNotary = Result | Seen
