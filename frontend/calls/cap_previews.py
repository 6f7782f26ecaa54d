"""The caps of a call that is not made: judged by the notary as those of the call would be, and nothing reserved."""

from typing import Any

from frontend.calls.caps import held_by_cap, shown_caps
from frontend.notary.client import NotaryClient
from frontend.notary.errors import notary_errors_as
from frontend.policy.by_values import CAP_RULE, denied
from frontend.policy.question import Decision
from ipc.caps import CapUse
from ipc.operations.caps import ReadCaps


async def judged_by_caps(
    notary: NotaryClient, action_id: str, caps: tuple[CapUse, ...], decision: Decision
) -> tuple[Decision, tuple[dict[str, Any], ...]]:
    """The decision about an allowed or held call after its caps, and how the caps would stand with the call.
    A call without caps asks nothing. Raises GateError budget_store_unavailable."""
    if not caps:
        return decision, ()
    with notary_errors_as("budget_store_unavailable"):
        judged = await notary.ask(ReadCaps(action_id, caps))
    if judged.denial is not None:
        decision = denied(decision, judged.denial, CAP_RULE)
    elif judged.is_held and not decision.requires_approval:
        decision = held_by_cap(decision)
    return decision, shown_caps(judged.readings)
