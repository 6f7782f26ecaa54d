"""The operator's calls about standing approvals: approvals of calls to come, signed with the operator's key. No I/O.

A standing approval lets calls of one action by one principal run that would wait for a person, until a time.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway_client.contract.standing import StandingApproval, StandingApprovals, StandingRevoked
from gateway_client.evidence.approval_signatures import sign_claims
from gateway_client.evidence.standing_signatures import STANDING_TYPE
from gateway_client.operating.calls import OperatorCalls
from gateway_client.wire.decoding import decode
from gateway_client.wire.exchange import path_of
from gateway_client.wire.flows import Flow
from gateway_client.wire.proofs import uuid7

STANDING = path_of("v1", "admin", "standing")


class StandingCore(OperatorCalls):
    """Every method gives a flow of one call, or two, and its typed result."""

    def standing_approvals(self) -> Flow[StandingApprovals]:
        """The standing approvals that are in force, with the calls that have run by each."""
        return decode(StandingApprovals, (yield from self.read(STANDING)).json(), "standing")

    def add_standing(
        self, action_id: str, principal: str, until: int, *, max_calls: int | None = None,
        where: Sequence[Mapping[str, Any]] = (),
    ) -> Flow[StandingApproval]:  # fmt: skip
        """Sign a standing approval, and put it into force until then (Unix seconds, from 1 minute to 30 days ahead).

        `where` are conditions on values of the action's `policy_input`, each `{pointer, op, value}` with `<=`, `>=`,
        `==` or `in`. Raises NotFound action_not_found, Invalid, Denied invalid_approval_signature, Conflict
        too_many_standing_approvals.
        """
        origin = (yield from self.standing_approvals()).origin
        now = self.clock.now()
        terms = {
            "aud": [self._public_base_url, origin], "standing_id": f"sta_{uuid7(now)}", "action_id": action_id,
            "principal": principal, "until": until, "iat": int(now), "operator": self._credential.name,
            "max_calls": max_calls, "where": [dict(one) for one in where] or None,
        }  # fmt: skip
        signature = sign_claims(self._credential, STANDING_TYPE, terms)
        answer = yield from self.change("POST", STANDING, {"signature": signature})
        return decode(StandingApproval, answer.json(), "standing")

    def revoke_standing(self, standing_id: str) -> Flow[StandingRevoked]:
        """End a standing approval: the next call waits for a person again. Raises NotFound standing_not_found."""
        answer = yield from self.change("DELETE", path_of("v1", "admin", "standing", standing_id))
        return decode(StandingRevoked, answer.json(), "standing")
