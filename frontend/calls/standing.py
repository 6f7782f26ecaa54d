"""Standing approvals, as a front sees them: whether one may lift a hold, and whether one would lift that of a preview.

The notary finds, judges and counts them (notary/operations/standing.py). They lift what one operator could approve: a
hold by policy, threshold or cap. Never a denial, and no hold that needs several operators or leads to a place that is
not known yet.
"""

from msgspec.structs import replace

from frontend.actions.planning import Draft
from frontend.auth.lease import Lease
from frontend.notary.client import NotaryClient
from frontend.notary.errors import notary_errors_as
from frontend.policy.question import Decision
from ipc.configuration.quorum import Quorum
from ipc.operations.standing import FindStanding


def may_be_lifted(drafted: Draft, quorum: Quorum | None) -> bool:
    """False for a call that waits for a person whatever stands."""
    plan = drafted.plan
    return quorum is None and not plan.unresolved_domains and not plan.unresolved_paths


async def standing_of_preview(
    notary: NotaryClient, lease: Lease, drafted: Draft, quorum: Quorum | None
) -> str | None:  # fmt: skip
    """The standing approval that would let this held call run; None where it would wait. Raises GateError
    approval_store_unavailable."""
    if not may_be_lifted(drafted, quorum):
        return None
    asked = FindStanding(drafted.plan.action_id, lease.principal, lease.owner, drafted.policy_input)
    with notary_errors_as("approval_store_unavailable"):
        return await notary.ask(asked)


def lifted(decision: Decision) -> Decision:
    """The decision of a call that runs by a standing approval. The event keeps the rule that would have held it."""
    return replace(decision, requires_approval=False)
