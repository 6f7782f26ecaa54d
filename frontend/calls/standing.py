"""Standing approvals, as a front sees them: whether a hold may be lifted, and what operators add, list and revoke.

The notary finds, judges and counts them (notary/operations/standing.py). They lift what one operator could approve: a
hold by policy, threshold or cap. Never a denial, and no hold that needs several operators or leads to a place that is
not known yet.
"""

from msgspec.structs import replace

from frontend.actions.planning import Draft
from frontend.policy.question import Decision
from ipc.quorum import Quorum


def may_be_lifted(drafted: Draft, quorum: Quorum | None) -> bool:
    """False for a call that waits for a person whatever stands."""
    plan = drafted.plan
    return quorum is None and not plan.unresolved_domains and not plan.unresolved_paths


def lifted(decision: Decision) -> Decision:
    """The decision of a call that runs by a standing approval. The event keeps the rule that would have held it."""
    return replace(decision, requires_approval=False)
