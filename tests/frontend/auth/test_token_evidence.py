"""The events of a call that an operator decides, and policy's question, name the token by which its caller is known."""

from pathlib import Path
from typing import Any

import msgspec

from frontend.http.peercred import PeerCredentials
from frontend.http.requests import CompleteBody, Request
from tests.frontend.auth.test_tokens import AGENT, EDGE, ISSUER, ask, issuing, token
from tests.support.coded import Coded
from tests.support.front_core import HOLD, Agent, Core
from tests.support.proofs import Key

ORIGIN = {"identity_method": "jwt", "identity_issuer": ISSUER, "identity_subject": "alice"}
BEARER = ORIGIN | {"token_binding": "bearer"}


async def agent_with_token(core: Core, **claims: Any) -> Agent:
    key = Key()
    bound: dict[str, Any] = {"cnf": {"jkt": key.jkt}} if claims.pop("is_bound", False) else {}
    shown = token(**bound, **claims)(core.clock.right)
    return await core.agent(key=key, uid=EDGE, headers=[("authorization", f"Bearer {shown}")])


async def test_a_held_call_and_its_denial_name_the_token_of_their_caller(tmp_path: Path) -> None:
    async with issuing(tmp_path) as core:
        agent = await agent_with_token(core)
        core.policy.answer = HOLD
        status, held = await agent.call()
        assert status == 202
        assert (await core.operate("POST", f"/v1/approvals/{held['approval_id']}/deny", {"reason": "no"}))[0] == 200
        denied, pending, issued = await core.events()
    told = [denied["event_type"], pending["decision"], issued["event_type"]]
    assert told == ["ApprovalDenied", "pending_approval", "LeaseIssued"]
    for event in (denied, pending, issued):
        assert event.items() >= BEARER.items()
    (question,) = core.policy.questions
    assert question.as_input().items() >= BEARER.items()


async def test_events_and_policy_say_that_a_token_is_bound_to_the_key_of_the_lease(tmp_path: Path) -> None:
    async with issuing(tmp_path) as core:
        agent = await agent_with_token(core, is_bound=True)
        core.policy.answer = HOLD
        assert (await agent.call())[0] == 202
        events = await core.events()
    assert [one["token_binding"] for one in events] == ["dpop", "dpop"]
    (question,) = core.policy.questions
    assert question.as_input()["token_binding"] == "dpop"


async def test_a_bound_token_gives_no_lease_for_another_key_and_none_that_cannot_be_proven(tmp_path: Path) -> None:
    own = AGENT.jkt
    bindings: list[Any] = [
        {"jkt": Key().jkt}, {"jkt": ""}, {"x5t#S256": own}, {"jkt": own, "x5t#S256": own}, {}, [], own,
    ]  # fmt: skip
    async with issuing(tmp_path) as core:
        for binding in bindings:
            assert await ask(core, token(cnf=binding)(core.clock.right)) == (403, Coded("identity_forbidden")), binding
        assert (await ask(core, token(cnf={"jkt": own})(core.clock.right)))[0] == 200


class _LateBody(CompleteBody):
    def __init__(self, data: bytes, core: Core, seconds: float) -> None:
        super().__init__(data)
        self._core, self._seconds = core, seconds

    async def read(self, cap: int) -> bytes:
        self._core.clock.ahead += self._seconds
        return await super().read(cap)


async def test_a_token_that_ends_while_its_request_is_read_gives_no_lease_and_leaves_its_event(tmp_path: Path) -> None:
    async with issuing(tmp_path) as core:
        core.clock.stop()
        body = _LateBody(msgspec.json.encode({"scopes": ["tools:call"], "dpop_jwk": Key().jwk}), core, 4)
        shown = [("authorization", f"Bearer {token(exp=3)(core.clock.right)}")]
        request = Request("POST", "/v1/leases", "", shown, peer=PeerCredentials(1, EDGE, 1), body=body)
        answer = await core.dispatch.respond(request)
        assert (answer.status, msgspec.json.decode(answer.body)["error"]) == (403, "identity_forbidden")
        (event,) = await core.events()
    assert event.items() >= (BEARER | {"decision": "deny", "error_code": "identity_forbidden"}).items()
