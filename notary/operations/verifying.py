"""A verifier looks again for the effect of an intent without a receipt. It executes and resolves nothing.

SECURITY: no front may ask LookedAgain. The notary makes it from the message of a worker, so that a front can't invent a
result. The expected file was kept with the intent before the call was dispatched.
"""

from typing import NamedTuple

from contract.intents import UnresolvedIntent
from ipc.evidence.events import INTENT_VERIFICATION
from ipc.expected import FileToLeave
from ipc.messages.attesting import Seen
from ipc.operations.calls import NoSuchWorker
from ipc.operations.intents import Looked, Unverifiable, VerifyIntent
from ipc.operations.operation import Operation
from notary.operations.allowed import check_event, check_worker
from notary.reading import queries
from notary.units.performing import performs
from notary.units.tasks import Looking, NotAllowed
from notary.units.transaction import Transaction

NOT_FOUND, UNDER_WAY, NOT_VERIFIABLE = (
    Unverifiable("intent_not_found"),
    Unverifiable("intent_under_way"),
    Unverifiable("intent_not_verifiable"),
)


class KeptFile(NamedTuple):
    """The file that was kept with an intent, and the kind of verifier that looks at it."""

    verifier_kind: str
    file: FileToLeave


class LookedAgain(Operation[Looked | Unverifiable | NoSuchWorker], frozen=True):
    """The result of a worker that was asked to look; None where it ended before it answered."""

    asked: VerifyIntent
    seen: Seen | None


@performs(VerifyIntent, settles=True)
def verify_intent(unit: Transaction, asked: VerifyIntent) -> Looking | Unverifiable | NoSuchWorker:
    """See VerifyIntent. Raises NotAllowed."""
    check_event(asked.event, INTENT_VERIFICATION, frozenset({"allow"}))
    if asked.event.change is not None:
        raise NotAllowed("a look that changes something")
    check_worker(unit, asked.worker_id)
    unit.settle()
    subject = _verifiable(unit, asked.intent_id)
    if isinstance(subject, Unverifiable):
        return subject
    if asked.worker_id not in unit.state.workers:
        return NoSuchWorker()
    return Looking(asked.worker_id, subject[1].verifier_kind, subject[1].file)


@performs(LookedAgain, writes=True)
def note_look(unit: Transaction, told: LookedAgain) -> Looked | Unverifiable | NoSuchWorker:
    """See LookedAgain. An intent that was resolved meanwhile is not found."""
    if told.seen is None:
        return NoSuchWorker()
    unit.settle()
    subject = _verifiable(unit, told.asked.intent_id)
    if isinstance(subject, Unverifiable):
        return subject
    view, kept = subject
    seen = _shown(kept, told.seen)
    unit.append(
        told.asked.event, trace_id=view.trace_id, action_id=view.action_id, grant_id=view.grant_id,
        intent_id=told.asked.intent_id, seen=seen,
    )  # fmt: skip
    return Looked(view.trace_id, view.action_id, seen)


def _verifiable(unit: Transaction, intent_id: str) -> tuple[UnresolvedIntent, KeptFile] | Unverifiable:
    """An unresolved intent and the file that it was to write, or why it can't be verified."""
    row = queries.unresolved_intent(unit.connection, intent_id)
    if row is None:
        return NOT_FOUND
    if unit.may_still_end(intent_id):
        return UNDER_WAY
    intent = unit.intent(intent_id)
    if intent is None or intent.terms.file is None:
        return NOT_VERIFIABLE
    return row[0], KeptFile(intent.terms.verifier_kind, intent.terms.file)


def _shown(kept: KeptFile, seen: Seen) -> dict[str, str]:
    digest = {} if seen.sha256 is None else {"sha256": seen.sha256}
    return {
        "verifier_kind": kept.verifier_kind, "path": kept.file.path, "expected_sha256": kept.file.sha256,
        "state": seen.state, **digest,
    }  # fmt: skip
