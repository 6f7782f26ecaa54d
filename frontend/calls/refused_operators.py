"""Operators that could not prove who they are, or may not do what they asked for: counted like other refusals, with the
name of the operator whose credential it was."""

from typing import Final

import msgspec

from frontend.auth.authentication import Authentication
from frontend.calls.refusals import Refusals, RefusedRequest
from frontend.errors import GateError
from frontend.http.requests import Request
from frontend.telemetry.metrics import Metrics
from ipc.evidence.events import OPERATOR_AUTH_FAILED

WITHOUT_RIGHT: Final = frozenset({"role_required", "own_request", "invalid_approval_signature"})
"""Codes of what an operator may not do: evidence, and no failed login."""


class RefusedOperators(msgspec.Struct, frozen=True):
    """Operators' refusals at one front."""

    authentication: Authentication
    refusals: Refusals
    metrics: Metrics

    async def note(self, request: Request, error: GateError) -> None:
        """A request that needs an operator was refused with this; other codes are not noted. Raises nothing."""
        if error.status == 401:
            self.metrics.operator_auth_failures.add(error.code)
        elif error.code not in WITHOUT_RIGHT:  # nothing was found out
            return
        operator, thumbprint = self.authentication.named_operator(request)
        who = {"operator": operator, "thumbprint": thumbprint}
        await self.refusals.note(RefusedRequest(OPERATOR_AUTH_FAILED, request.uid, error, who=who))
