"""A call that ran, and its answer."""

from dataclasses import dataclass
from typing import cast

import msgspec

from contract.execution import FULLY_SUCCESSFUL, ExecutionResult, Runtime, VerificationOutcome
from frontend.errors import GateError
from ipc.messages.calling import code_of_failure
from ipc.operations.calls import Closed
from ipc.plan import Plan

OF_THE_PROVIDER = "provider_error"
"""The one outcome whose reason is the provider's own: `provider_error: KIND: MESSAGE`."""


@dataclass(frozen=True, slots=True)
class ExecutedCall:
    """A call that ran, successful or not, with its evidence durable."""

    plan: Plan
    closed: Closed
    output: str | None
    """JSON text; None unless the call succeeded."""
    exposes_error: bool = False
    """The manifest lets the caller hear the provider's own words (`expose_provider_error`)."""

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
        error.receipt_id, error.failure, error.is_told = self.closed.receipt_id, self.closed.failure, True
        if self.exposes_error and self.closed.outcome == OF_THE_PROVIDER:
            error.provider_error = (self.closed.reason or "").removeprefix(f"{OF_THE_PROVIDER}: ")
        return error

    def body(self) -> ExecutionResult:
        """The answer."""
        outcome = cast(VerificationOutcome, self.closed.verification_outcome)
        return ExecutionResult(
            trace_id=self.plan.trace_id,
            action_id=self.plan.action_id,
            grant_id=self.closed.grant_id,
            receipt_id=self.closed.receipt_id,
            output=msgspec.json.decode(self.output or "{}"),
            verification_outcome=outcome,
            verification={"outcome": outcome, "is_fully_successful": outcome in FULLY_SUCCESSFUL},
            runtime=msgspec.convert(self.closed.runtime, Runtime),
        )
