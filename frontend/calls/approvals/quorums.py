"""Approvals of a hold that needs several: each is stored with its event before it is answered.

The notary judges whether the quorum is met (notary/operations/approving.py). Guarantees that an operator counts once.
"""

import msgspec

from contract.approvals import ApprovalGiven
from frontend.auth.authentication import OperatorCaller
from frontend.calls.approvals.learning import NO_WISH, Wish
from frontend.calls.approvals.record import count_of
from frontend.calls.record import CallRecord
from frontend.clock import TimeSource
from frontend.errors import GateError
from frontend.notary.client import NotaryClient
from frontend.notary.errors import notary_errors_as
from ipc.approvals import HeldBody
from ipc.backends.store import ApprovalRecord
from ipc.configuration.quorum import GivenApproval
from ipc.evidence.events import APPROVAL_GIVEN
from ipc.operations.quorum import GiveApproval

_MEND = "teach it with `gatectl domains add` or `gatectl paths add`"


class QuorumWriter(msgspec.Struct, frozen=True):
    """Stores approvals of several."""

    clock: TimeSource
    notary: NotaryClient

    async def give(
        self, record: CallRecord, approval: ApprovalRecord, body: HeldBody, operator: OperatorCaller, wish: Wish,
        signature: str | None,
    ) -> ApprovalGiven | None:  # fmt: skip
        """Store the operator's approval and return the answer; None where no other approval is needed.

        Raises GateError already_approved_by_you, approval_not_found, approval_store_unavailable; invalid_request for a
        rule to learn: one operator alone does not teach where one alone does not approve.
        """
        if body.quorum is None:
            return None
        if wish != NO_WISH:
            raise GateError("invalid_request", message=f"a call that needs several approvals teaches no rule: {_MEND}")
        groups = tuple(name for name in body.quorum.groups if name in operator.groups)
        given = GivenApproval(
            operator.name, operator.jkt, operator.proof_jti, self.clock.iso(), groups, signature
        )  # fmt: skip
        event = record.event(
            "pending_approval", event_type=APPROVAL_GIVEN, approval_id=approval.approval_id,
            session_id=approval.session_id, approved_by=operator.name, operator_sender_binding=operator.jkt,
            operator_proof_jti=operator.proof_jti, approval_signature=signature,
        )  # fmt: skip
        with notary_errors_as("approval_store_unavailable"):
            noted = await self.notary.ask(GiveApproval(approval.approval_id, given, event))
        if noted is None:
            raise GateError("approval_not_found")
        count = count_of(body.quorum, noted.approvals)
        if noted.became == "repeated":
            raise GateError(
                "already_approved_by_you",
                message=f"{count['given']} of {count['needed']} approvals are given, and yours is one of them",
            )
        if noted.became == "last":
            return None
        return ApprovalGiven(
            approval_id=approval.approval_id, action_id=approval.action_id, trace_id=record.trace_id, approvals=count
        )  # fmt: skip
