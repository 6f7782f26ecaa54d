"""Operations on intents that have no receipt.

`asker` is the principal or the operator that is charged with the time of a read.
"""

from typing import Final

import msgspec

from contract.intents import UnresolvedIntent
from ipc.evidence.events import AuditEvent
from ipc.evidence.records import IntentDetail
from ipc.operations.calls import NoSuchWorker
from ipc.operations.operation import FrontOperation

INTENT_OUTCOMES: Final = ("happened", "did_not_happen", "unknown")


class ListUnresolved(FrontOperation[list[UnresolvedIntent]], frozen=True):
    """List intents without a receipt, newest first. `after`: only those that were written before this one."""

    limit: int
    after: str | None = None
    asker: str = ""


class ShowIntent(FrontOperation[IntentDetail | None], frozen=True):
    """Read everything that is known about an intent without a receipt."""

    intent_id: str
    asker: str = ""


class IntentResolution(msgspec.Struct, frozen=True):
    """`is_under_way`: nothing was written, since a worker may still report its end."""

    trace_id: str
    action_id: str
    is_under_way: bool = False


class ResolveIntent(FrontOperation[IntentResolution | None], frozen=True):
    """Record the outcome that an operator states for an intent without a receipt: an event, never a receipt. The answer
    is None where no such intent is unresolved."""

    intent_id: str
    outcome: str
    """One of INTENT_OUTCOMES."""
    event: AuditEvent
    """The event of the operator's act; the notary adds whose call it was."""


class Looked(msgspec.Struct, frozen=True, tag=True):
    """The result of the look, as the event has it now."""

    trace_id: str
    action_id: str
    seen: dict[str, str]


class Unverifiable(msgspec.Struct, frozen=True, tag=True):
    """Refused with this code of the interface: no worker looked."""

    code: str


class VerifyIntent(FrontOperation[Looked | Unverifiable | NoSuchWorker], frozen=True):
    """Have this worker look again for the effect of an intent without a receipt: nothing is executed. The worker itself
    tells what it saw, and an event holds that before the answer.

    With NoSuchWorker nothing was written. The intent stays unresolved.
    """

    intent_id: str
    worker_id: str
    event: AuditEvent
    """The event of the operator's act; the notary adds whose call it was, and what was seen."""
