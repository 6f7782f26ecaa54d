"""The events of a call that an operator decides, and policy's question, name the token by which its caller is known."""

from pathlib import Path

import msgspec

from frontend.http.peercred import PeerCredentials
from frontend.http.requests import CompleteBody, Request
from tests.frontend.auth.test_tokens import EDGE, ISSUER, row, settings, token, write_keys
from tests.support.front_core import HOLD, Agent, Core, front_core
from tests.support.proofs import Key

ORIGIN = {"identity_method": "jwt", "identity_issuer": ISSUER, "identity_subject": "alice"}


async def agent_with_token(core: Core) -> Agent:
    key, shown = Key(), token()(core.clock.right)
    body = msgspec.json.encode({"scopes": ["tools:call"], "dpop_jwk": key.jwk})
    headers = [("authorization", f"Bearer {shown}")]
    peer = PeerCredentials(1, EDGE, 1)
    answer = await core.dispatch.respond(Request("POST", "/v1/leases", "", headers, peer=peer, body=CompleteBody(body)))
    given = msgspec.json.decode(answer.body)
    return Agent(core, key, given["lease_jwt"], given["session_id"])


async def test_a_held_call_and_its_denial_name_the_token_of_their_caller(tmp_path: Path) -> None:
    write_keys(tmp_path)
    async with front_core(tmp_path, identity=settings(row(tmp_path))) as core:
        agent = await agent_with_token(core)
        core.policy.answer = HOLD
        status, held = await agent.call()
        assert status == 202
        assert (await core.operate("POST", f"/v1/approvals/{held['approval_id']}/deny", {"reason": "no"}))[0] == 200
        denied, pending, issued = await core.events()
    told = [denied["event_type"], pending["decision"], issued["event_type"]]
    assert told == ["ApprovalDenied", "pending_approval", "LeaseIssued"]
    for event in (denied, pending, issued):
        assert event.items() >= ORIGIN.items()
    (question,) = core.policy.questions
    assert question.as_input().items() >= ORIGIN.items()
