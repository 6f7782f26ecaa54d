"""The outcomes of a call that are no errors: it ran, or it waits for a person."""

from typing import cast

import msgspec

from contract.execution import FULLY_SUCCESSFUL, ExecutionResult, PendingApproval, Runtime, VerificationOutcome
from contract.failures import CallFailure
from contract.noun import LEFT_OUT
from frontend.errors import GateError
from ipc.backends.store import ApprovalRecord
from ipc.messages.calling import code_of_failure
from ipc.operations.calls import Closed

OF_THE_PROVIDER = "provider_error"
"""The one outcome whose reason is the provider's own: `provider_error: KIND: MESSAGE`."""

OUTPUT_LOST = CallFailure("worker_lost", "yes")
"""The failure, to its caller, of a call that succeeded and whose output did not come from its worker."""


class ExecutedCall(msgspec.Struct, frozen=True):
    """A call that ran, successful or not, with its evidence durable."""

    trace_id: str
    action_id: str
    closed: Closed
    output: str | None
    """JSON text; None unless the call succeeded."""
    exposes_error: bool = False
    """The manifest lets the caller hear the provider's own words (`expose_provider_error`)."""
    is_replayed: bool = False
    """The caller made the same call before under its key: this is the outcome of that one."""

    @property
    def succeeded(self) -> bool:
        """True when the provider succeeded (verification may still have failed)."""
        return self.output is not None

    @property
    def code(self) -> str:
        """The error code of a call that did not succeed."""
        return code_of_failure(self.closed.outcome)

    def failure(self) -> GateError:
        """The error of a call whose provider failed; the log line of the call is written already."""
        error = GateError(self.code, cause=self.closed.outcome)
        error.receipt_id, error.failure = self.closed.receipt_id, self.closed.failure or OUTPUT_LOST
        error.is_told, error.is_replayed = True, self.is_replayed
        if self.exposes_error and self.closed.outcome == OF_THE_PROVIDER:
            error.provider_error = (self.closed.reason or "").removeprefix(f"{OF_THE_PROVIDER}: ")
        return error

    def body(self) -> ExecutionResult:
        """The answer."""
        outcome = cast(VerificationOutcome, self.closed.verification_outcome)
        return ExecutionResult(
            trace_id=self.trace_id,
            action_id=self.action_id,
            grant_id=self.closed.grant_id,
            receipt_id=self.closed.receipt_id,
            output=msgspec.json.decode(self.output or "{}"),
            verification_outcome=outcome,
            verification={"outcome": outcome, "is_fully_successful": outcome in FULLY_SUCCESSFUL},
            runtime=msgspec.convert(self.closed.runtime, Runtime),
        )


class AwaitedApproval(msgspec.Struct, frozen=True):
    """A call that waits for a person (202)."""

    approval: ApprovalRecord
    trace_id: str
    is_replayed: bool = False
    """As in ExecutedCall."""
    summary: str | None = None
    """The line of kept values; None for an action without one."""

    def body(self) -> PendingApproval:
        """The answer."""
        return PendingApproval(
            approval_id=self.approval.approval_id, request_hash=self.approval.request_hash, trace_id=self.trace_id,
            summary=LEFT_OUT if self.summary is None else self.summary,
        )  # fmt: skip


CallOutcome = ExecutedCall | AwaitedApproval
