"""A decision about one held call: what is signed is what was shown, and what was executed is what was signed.

The commands and the desk (gateway_client/cli/tui/) decide by these; none of them asks a person or prints.
"""

from contextlib import suppress

from msgspec.structs import replace

from gateway_client.cli.exits import Failure, ScriptExit
from gateway_client.contract.approvals import ApprovalDetail
from gateway_client.errors import GatewayError, NotFound
from gateway_client.evidence.approval_signatures import is_as_shown
from gateway_client.operators import OperatorClient
from gateway_client.results import Denial, Executed

LONGEST = 600.0
"""Seconds for an approved call: an action may take its time, and the operator should not have to guess its outcome."""


def undecided(operator: OperatorClient, approval_id: str) -> ApprovalDetail:
    """The hold with this id. Raises Failure already_decided, GatewayError."""
    detail = operator.approval(approval_id)
    if detail.state != "pending":
        raise _decided(detail)
    return detail


def to_sign(detail: ApprovalDetail) -> ApprovalDetail | None:
    """The detail that the operator's signature covers; None when this gateway has no hash to sign. Raises Failure
    shown_mismatch."""
    if detail.shown_hash is None:
        return None
    if not is_as_shown(detail):
        raise Failure(
            ScriptExit.VERIFICATION_FAILED,
            "shown_mismatch",
            "not signed: what is shown does not hash to its shown_hash",
            "something between you and the gateway changes what you see; nothing was decided",
        )
    return detail


def approve(
    operator: OperatorClient, detail: ApprovalDetail, shown: ApprovalDetail | None, learn_domain: str | None = None,
    learn_path: str | None = None,
) -> Executed:  # fmt: skip
    """Have the plan executed that was shown. Raises Failure already_decided, GatewayError."""
    try:
        return operator.approve(detail.approval_id, learn_domain, learn_path, shown=shown)
    except NotFound:
        raise _lost(operator, detail.approval_id) from None


def deny(operator: OperatorClient, approval_id: str, reason: str | None, shown: ApprovalDetail | None) -> Denial:
    """End it without executing. Raises Failure already_decided, GatewayError."""
    try:
        return operator.deny(approval_id, reason, shown=shown)
    except NotFound:
        raise _lost(operator, approval_id) from None


def require_same_plan(detail: ApprovalDetail, done: Executed) -> None:
    """Raises Failure plan_mismatch unless the answer names the plan that was shown."""
    if done.approval is None or done.approval.approval_hash != detail.plan_hash:
        raise Failure(
            ScriptExit.VERIFICATION_FAILED, "plan_mismatch", "the gateway executed another plan than the one shown",
            f"gatectl audit events --trace-id {done.trace_id}", may_have_run=True,
        )  # fmt: skip


def signed_by(shown: ApprovalDetail | None, signer: str) -> str:
    """Whether a decision was signed, and by which key."""
    return "not signed: the gateway shows no shown_hash" if shown is None else f"signed by {signer}"


def _lost(operator: OperatorClient, approval_id: str) -> Failure | NotFound:
    """The error when another operator was first (named where known), or the hold has expired."""
    try:
        detail = operator.approval(approval_id)
    except NotFound as error:
        return error
    except GatewayError:
        return Failure(ScriptExit.NOT_FOUND, "already_decided", "already decided, or expired", "gatectl approvals list")
    return _decided(detail)


def _decided(detail: ApprovalDetail) -> Failure:
    by = f" by {detail.claimed_by}" if detail.claimed_by else ""
    return Failure(
        ScriptExit.NOT_FOUND, "already_decided", f"already decided: {detail.state}{by}",
        f"gatectl approvals show {detail.approval_id}",
    )  # fmt: skip


def described(operator: OperatorClient, detail: ApprovalDetail) -> ApprovalDetail:
    """The detail with its action's description. Where the gateway does not tell it, that of the manifest, if the very
    action that is held is still registered."""
    if detail.description is not None:
        return detail
    with suppress(GatewayError):
        manifest = operator.manifest(detail.action_id)
        if (manifest.version, manifest.provider_module_digest) == (
            detail.action_version,
            detail.provider_module_digest,
        ):
            return replace(detail, description=manifest.description or None)
    return detail
