"""The answers of the gateway under the library's names, and the results that only a client has.

Each noun is declared in gateway_client/contract/, with the interface's own names: a field that the interface promises
is always there, another one is None where it is missing. `raw` is the JSON as the gateway sent it. Values that may grow
in later versions (states, risk levels, outcomes) are taken as they come. No result holds a token.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from gateway_client.contract.actions import ActionManifest
from gateway_client.contract.admin import AdminStatus, CurrentEpoch, ReloadResult, RevokedAll
from gateway_client.contract.approvals import ApprovalList, ApprovalPoll, Denied, ListedApproval
from gateway_client.contract.audit import ChainReport
from gateway_client.contract.calls import RecentCalls
from gateway_client.contract.execution import ExecutionResult, PendingApproval, VerificationOutcome
from gateway_client.contract.intents import IntentView, UnresolvedIntent
from gateway_client.contract.noun import Noun
from gateway_client.contract.policy import AclEntryView, PrincipalView
from gateway_client.contract.receipts import Receipt
from gateway_client.contract.sessions import Sessions
from gateway_client.errors import ActionFailed

Held = PendingApproval
Poll = ApprovalPoll
Manifest = ActionManifest
Approval = ListedApproval
ApprovalPage = ApprovalList
Denial = Denied
AuditVerification = ChainReport
Status = AdminStatus
Revoked = RevokedAll
Epoch = CurrentEpoch
Reloaded = ReloadResult
AclEntry = AclEntryView
PrincipalAcl = PrincipalView
Intent = UnresolvedIntent
IntentDetail = IntentView
SessionPage = Sessions
CallPage = RecentCalls


@dataclass(frozen=True, kw_only=True)
class Session:
    """The lease in use, without its token. `expires_at` as the gateway sent it (ISO 8601, UTC)."""

    session_id: str
    lease_jti: str
    expires_at: str


class Executed(ExecutionResult, frozen=True, kw_only=True):
    """A call that ran. `output` is the action's own.

    After a wait for approval, or a lost answer, it is made from the receipt, which then stands in `receipt`; `runtime`
    is None and `raw` is the receipt's JSON. `approval` is for the operator who approved: the agent gets `approval_id`
    alone.
    """

    approval_id: str | None = None
    receipt: Receipt | None = None


def executed_of(receipt: Receipt, action_id: str, trace_id: str, approval_id: str | None) -> Executed:
    """The result of a call, told from its receipt. Raises ActionFailed when its provider failed."""
    if receipt.normalized_result.get("kind") != "success":
        reason = receipt.normalized_result.get("reason")
        raise ActionFailed(
            "action_execution_failed", status=502, reason=reason if isinstance(reason, str) else None,
            receipt_id=receipt.receipt_id,
        )  # fmt: skip
    outcome = receipt.verification_outcome.get("status")
    return Executed(
        trace_id=trace_id,
        action_id=action_id,
        grant_id=receipt.grant_id,
        receipt_id=receipt.receipt_id,
        output=receipt.provider_receipt,
        verification_outcome=cast(VerificationOutcome, outcome if isinstance(outcome, str) else ""),
        verification=None,
        runtime=None,
        approval=None,
        learned_domain=None,
        learned_path=None,
        learn_error=None,
        approval_id=approval_id,
        receipt=receipt,
        raw=receipt.raw,
    )


class Jwks(Noun, frozen=True, kw_only=True):
    """Public keys, current and historical."""

    keys: tuple[Mapping[str, Any], ...]


class AuditEvent(Noun, frozen=True, kw_only=True):
    """One event of the audit chain; fields that do not stand here are in `raw`, which is the whole event.

    `kept_values`: JSON pointer -> value, null for one that is gone; `kept_state` is then erased or missing, else whole.
    Both stand beside the chain, and are None for an event that commits to no value.
    """

    event_id: str
    event_type: str
    timestamp: str
    trace_id: str | None = None
    principal: str | None = None
    session_id: str | None = None
    action_id: str | None = None
    decision: str | None = None
    deny_reason: str | None = None
    reason: str | None = None
    error_code: str | None = None
    receipt_id: str | None = None
    approval_id: str | None = None
    approved_by: str | None = None
    kept_state: str | None = None
    kept_values: Mapping[str, Any] | None = None
    prev_hash: str | None = None


class EventPage(Noun, frozen=True, kw_only=True):
    """Events, newest first."""

    events: tuple[AuditEvent, ...]
    count: int


@dataclass(frozen=True, kw_only=True)
class EventFilter:
    """Which audit events. `after` and `before` are exclusive bounds on the time (ISO 8601).

    `decision`: allow, deny, error or pending_approval. `kept`: JSON pointer -> kept value, a number or a flag as people
    write it.
    """

    trace_id: str | None = None
    action_id: str | None = None
    principal: str | None = None
    session_id: str | None = None
    event_type: str | None = None
    decision: str | None = None
    after: str | None = None
    before: str | None = None
    kept: Mapping[str, str] | None = None
