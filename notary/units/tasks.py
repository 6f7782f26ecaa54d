"""One operation that the notary was asked for, and its outcome."""

from typing import Any, NamedTuple

import msgspec

from ipc.expected import FileToLeave
from ipc.operations.operation import Operation
from notary.ledger.intents import OpenIntent

_encode = msgspec.msgpack.Encoder().encode


class NotOpen(Exception):
    """The operation names an intent that is not open: nothing was written."""


class NotAllowed(Exception):
    """The operation asks for what no sound front asks for: nothing was written. Raised before anything is."""


class Task(NamedTuple):
    """One operation of one front."""

    front_id: str
    number: int
    operation: Operation[Any]


class Started(NamedTuple):
    """A call is open and its worker gets the word: the answer follows when it has ended.

    `is_repeated`: the notary before opened it, and may have given the word.
    """

    intent: OpenIntent
    is_repeated: bool = False


class Looking(NamedTuple):
    """A worker is asked to look at a file: the answer follows when it has told what it saw."""

    worker_id: str
    verifier_kind: str
    file: FileToLeave


class SecretAnswer(NamedTuple):
    """An answer that must not be written down. `kept` is written instead: the answer can be made from it again."""

    value: Any
    kept: Any


class TaskOutcome(NamedTuple):
    """The outcome of a task: its answer, or the problem. `cause` is for logs, `store_us` as in Answered."""

    value: Any = None
    problem: str | None = None
    part: str | None = None
    cause: str | None = None
    store_us: dict[str, int] | None = None
    kept: Any = None
    """The part of a SecretAnswer that is remembered."""

    def encoded(self) -> msgspec.Raw:
        """The answer as it is sent."""
        return self.value if isinstance(self.value, msgspec.Raw) else msgspec.Raw(_encode(self.value))

    def remembered(self) -> msgspec.Raw:
        """The answer as the database keeps it. SECURITY: without the token of a lease."""
        return self.encoded() if self.kept is None else msgspec.Raw(_encode(self.kept))


Remembered = dict[tuple[str, int], TaskOutcome]
"""(front, number) of an operation -> its outcome."""
