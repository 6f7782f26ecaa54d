"""Standing approvals that operators add and revoke: checked here to say what is wrong, and by the notary to be sure.

Guarantees that what is added names an action of this gateway and values that it offers.
"""

import msgspec

from contract.noun import LEFT_OUT
from contract.standing import CallCondition, StandingApproval
from frontend.actions.registry import Registry
from frontend.auth.authentication import OperatorCaller
from frontend.calls.approvals.signatures import check_key
from frontend.calls.audit_writer import AuditWriter
from frontend.clock import TimeSource
from frontend.errors import GateError
from frontend.notary.client import NotaryClient
from frontend.notary.errors import notary_errors_as
from ipc.configuration.quorum import configured
from ipc.evidence.events import STANDING_ADDED, STANDING_REVOKED
from ipc.keys.signed_approvals import SignatureRefused
from ipc.keys.standing_approvals import StandingTerms, TermsRefused, check_standing, read_standing
from ipc.network.loopback import ledger_origin, own_addresses
from ipc.operations.standing import AddStanding, RevokeStanding, StandingInForce
from ipc.process.clock import iso
from ipc.settings import Settings


class StandingWriter(msgspec.Struct, frozen=True):
    """Adds and revokes them at one gateway."""

    clock: TimeSource
    notary: NotaryClient
    journal: AuditWriter
    registry: Registry
    settings: Settings

    @property
    def origin(self) -> str:
        """The name of this gateway's ledger."""
        return ledger_origin(self.settings)

    async def add(self, signature: str, operator: OperatorCaller) -> StandingInForce:
        """Put it into force with its event. Raises GateError action_not_found, invalid_input,
        invalid_approval_signature, too_many_standing_approvals, approval_store_unavailable, clock_error."""
        now = self.clock.now()
        try:
            signed = read_standing(signature)
            check_key(signed.text, operator)
            check_standing(signed.terms, own_addresses(self.settings), self.origin, operator.name, now)
        except TermsRefused as refused:
            raise GateError("invalid_input", message=str(refused)) from None
        except SignatureRefused as refused:
            message = f"the signature does not fit: {refused}; sign anew"
            raise GateError("invalid_approval_signature", message=message) from None
        self._check_action(signed.terms)
        event = self.journal.operator_event(STANDING_ADDED, operator)
        with notary_errors_as("approval_store_unavailable"):
            added = await self.notary.ask(AddStanding(signature, operator.name, event))
        if added is None:
            message = (
                "256 are in force, or 128 of yours, or you have revoked 128 within the hour, or this one was revoked: "
                "`gatectl approvals standing list`"
            )
            raise GateError("too_many_standing_approvals", message=message)
        return added

    async def revoke(self, standing_id: str, operator: OperatorCaller) -> StandingInForce:
        """End it with its event. Raises GateError standing_not_found, approval_store_unavailable."""
        event = self.journal.operator_event(STANDING_REVOKED, operator)
        with notary_errors_as("approval_store_unavailable"):
            ended = await self.notary.ask(RevokeStanding(standing_id, event))
        if ended is None:
            raise GateError("standing_not_found")
        return ended

    def _check_action(self, terms: StandingTerms) -> None:
        action = self.registry.get(terms.action_id)
        if action is None:
            raise GateError("action_not_found")
        offered = action.manifest.policy_input
        for one in terms.where:
            if one.pointer not in offered:
                known = ", ".join(offered) or "none"
                message = f"where: {one.pointer} is not in the policy_input of the manifest, which has: {known}"
                raise GateError("invalid_input", message=message)
        if configured(self.settings.approvals.quorum, terms.action_id, action.risk_level) is not None:
            message = "calls of this action need several operators: no standing approval lets them run"
            raise GateError("invalid_input", message=message)


def view_of(standing: StandingInForce) -> StandingApproval:
    """One as operators see it: its terms from the signed text."""
    row, terms = standing.row, read_standing(standing.row.signature).terms
    where = tuple(CallCondition(pointer=one.pointer, op=one.op, value=one.value) for one in terms.where)
    return StandingApproval(
        standing_id=row.standing_id, action_id=terms.action_id, principal=terms.principal, operator=row.operator,
        origin=terms.aud[1], created_at=row.created_at, until=iso(terms.until),
        max_calls=LEFT_OUT if terms.max_calls is None else terms.max_calls, where=where or LEFT_OUT,
        calls=standing.calls, signature=row.signature,
    )  # fmt: skip
