"""The caps of a call that is previewed: judged by the notary as those of the call would be, and nothing reserved."""

from typing import Any

from frontend.calls.caps import held_by_cap, shown_caps
from frontend.calls.record import CallRecord
from frontend.notary.client import NotaryClient
from frontend.notary.errors import notary_errors_as
from frontend.policy.by_values import CAP_RULE, denied
from frontend.policy.question import Decision
from ipc.operations.caps import ReadCaps


async def caps_of_preview(notary: NotaryClient, record: CallRecord, decision: Decision) -> tuple[dict[str, Any], ...]:
    """How the caps of an allowed or held call would stand with it; the record gets the decision that they make of it.
    A call without caps asks nothing. Raises GateError budget_store_unavailable."""
    if not record.caps:
        return ()
    with notary_errors_as("budget_store_unavailable"):
        judged = await notary.ask(ReadCaps(record.action_id, record.caps))
    if judged.denial is not None:
        record.decision = denied(decision, judged.denial, CAP_RULE)
    elif judged.is_held and not decision.requires_approval:
        record.decision = held_by_cap(decision)
    return shown_caps(judged.readings)
