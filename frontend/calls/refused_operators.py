"""Operators that could not prove who they are: counted like other refusals, and told whose credential it was."""

from dataclasses import dataclass

from frontend.auth.authentication import Authentication
from frontend.calls.refusals import Refusals, RefusedRequest
from frontend.errors import GateError
from frontend.http.requests import Request
from frontend.telemetry.metrics import Metrics
from ipc.events import OPERATOR_AUTH_FAILED


@dataclass(frozen=True, slots=True)
class RefusedOperators:
    """Failed operator logins at one front."""

    authentication: Authentication
    refusals: Refusals
    metrics: Metrics

    async def note(self, request: Request, error: GateError) -> None:
        """A request that needs an operator was refused with this. Raises nothing."""
        if error.status != 401:  # nothing was found out
            return
        self.metrics.operator_auth_failures.add(error.code)
        operator, thumbprint = self.authentication.named_operator(request)
        who = {"operator": operator, "thumbprint": thumbprint}
        await self.refusals.note(RefusedRequest(OPERATOR_AUTH_FAILED, request.uid, error, who=who))
