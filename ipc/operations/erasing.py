"""EraseKept: an operator has kept values erased."""

import msgspec

from ipc.evidence.events import AuditEvent
from ipc.operations.operation import FrontOperation


class ErasedKept(msgspec.Struct, frozen=True):
    """`values` were erased by this operation. `waiting` calls wait for a person or run, and keep theirs until they
    end."""

    values: int
    waiting: int
    next: int | None
    """Where to go on; None when all is erased."""


class EraseKept(FrontOperation[ErasedKept | None], frozen=True):
    """Erase the kept values of one call, or some of those of a principal; write the event of that if there are any.

    Stored requests of the same calls are erased with them. The answer is None when there is no event of this id.
    """

    event: AuditEvent
    event_id: str | None = None
    """Any event of the call."""
    principal: str | None = None
    before: float | None = None
    """Only calls before this, Unix seconds."""
    after: int = 0
    """Where to go on: `next` of the answer before."""
