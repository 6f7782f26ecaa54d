"""The operator who approves a held call, by the notary's own settings.

SECURITY: a front says who approves, and may have been taken over. Each way that leads to the call comes here: one
approval of several, the claim that grants the call, and its opening.
"""

from ipc.approvals import DecisionOutcome
from ipc.configuration.quorum import GivenApproval, in_force
from ipc.configuration.roles import APPROVE_ROLE
from ipc.settings import OperatorSettings
from notary.store.outcomes import KeptMembers
from notary.units.tasks import NotAllowed
from notary.units.transaction import Transaction


def approving_operator(unit: Transaction, name: str | None, jkt: str, kept: KeptMembers) -> OperatorSettings:
    """The operator of this name, who may approve the call with this key; `kept`: of its hold. Raises NotAllowed."""
    operator = next((one for one in unit.state.settings.operators if one.name == name), None)
    if operator is None or APPROVE_ROLE not in operator.roles:
        raise NotAllowed("an approval by an operator who may not approve")
    if operator.dpop_jkt not in (None, jkt):
        raise NotAllowed("an approval by another key than the operator's")
    if operator.owner is not None and operator.owner == kept.plan.owner:
        raise NotAllowed("an operator's approval of a call of their own")
    return operator


def counting_approvals(unit: Transaction, outcome: DecisionOutcome, kept: KeptMembers) -> tuple[GivenApproval, ...]:
    """The approvals among those that were given which still count, by the settings of now; `kept`: of their hold."""
    return in_force(outcome.approvals, unit.state.settings.operators, kept.plan.owner)
