"""Operators that could not prove who they are, or that lack a role: counted like other refusals, with the name of the
operator whose credential it was."""

import msgspec

from frontend.auth.authentication import Authentication
from frontend.calls.refusals import Refusals, RefusedRequest
from frontend.errors import GateError
from frontend.http.requests import Request
from frontend.telemetry.metrics import Metrics
from ipc.evidence.events import OPERATOR_AUTH_FAILED


class RefusedOperators(msgspec.Struct, frozen=True):
    """Failed operator logins at one front."""

    authentication: Authentication
    refusals: Refusals
    metrics: Metrics

    async def note(self, request: Request, error: GateError) -> None:
        """A request that needs an operator was refused with this. Raises nothing."""
        if error.status == 401:
            self.metrics.operator_auth_failures.add(error.code)
        elif error.code != "role_required":  # nothing was found out
            return
        operator, thumbprint = self.authentication.named_operator(request)
        who = {"operator": operator, "thumbprint": thumbprint}
        await self.refusals.note(RefusedRequest(OPERATOR_AUTH_FAILED, request.uid, error, who=who))
