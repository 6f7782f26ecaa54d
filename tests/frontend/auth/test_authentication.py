"""Where lease, proof and epoch meet: what is known of copies, and what operators see while the store is down."""

import pytest

from frontend.auth.authentication import OperatorCaller
from frontend.auth.dpop import replay_key
from frontend.errors import GateError
from frontend.http.requests import Request
from frontend.limits.rates import TooMuch
from frontend.notary.errors import NotaryRefused, NotaryUnavailable
from tests.support.front_core import API_KEY, Agent, Core, refuses, signed
from tests.support.logs import capture_logs

pytestmark = pytest.mark.front(workers=0)

PATH = "/v1/approvals/apr_1/poll"
STATUS = "/v1/admin/status"
GONE = NotaryUnavailable("gone")


def of_agent(agent: Agent) -> Request:
    return Request("GET", PATH, headers=signed(agent.key, "GET", PATH, agent.token))


def of_operator(core: Core) -> Request:
    return Request("GET", STATUS, headers=signed(core.operator_key, "GET", STATUS, API_KEY))


async def code_of(core: Core, request: Request) -> str:
    with pytest.raises(GateError) as refused:
        await core.services.authentication.agent(request)
    return refused.value.code


async def test_an_authenticated_agent_comes_with_the_epoch_in_force(core: Core) -> None:
    agent = await core.agent()
    caller = await core.services.authentication.agent(of_agent(agent))
    assert (caller.lease.session_id, caller.epoch) == (agent.session_id, core.services.authentication.known.epoch)
    assert caller.epoch == caller.lease.epoch


async def test_a_copy_is_refused_costs_its_session_nothing_and_its_copies_ask_the_notary_no_more(
    core: Core,
) -> None:
    agent = await core.agent()
    authentication = core.services.authentication
    clock = core.clock.right
    authentication.sessions._sessions._clock = lambda: clock  # stands still
    request = of_agent(agent)
    await authentication.agent(request)
    core.client.asked.clear()
    for _ in range(200):
        assert await code_of(core, request) == "replay_detected"
    # but for the pulses, which ask once a second
    assert [one for one in core.client.asked if one not in ("ReadStore", "ReadLedger")] == ["UseProof"]
    for _ in range(core.services.settings.limits.session_requests_per_second - 1):
        await authentication.agent(of_agent(agent))
    with pytest.raises(TooMuch):
        await authentication.agent(of_agent(agent))


async def test_a_proof_that_could_not_be_asked_for_is_no_copy(core: Core) -> None:
    agent = await core.agent()
    request = of_agent(agent)
    for error in (GONE, NotaryRefused("it is not open")):
        core.client.faults["UseProof"] = refuses(error)
        assert await code_of(core, request) == "replay_cache_unavailable"
    core.client.faults.clear()
    assert (await core.services.authentication.agent(request)).lease.session_id == agent.session_id


async def test_a_revoked_lease_is_refused_though_this_front_has_not_heard_of_it(core: Core) -> None:
    agent = await core.agent()
    await core.raise_epoch()
    known = core.services.authentication.known
    known._epoch -= 1  # as if nothing had been announced
    assert await code_of(core, of_agent(agent)) == "invalid_lease"


async def test_every_request_of_a_revoked_session_is_refused_and_of_others_none(core: Core) -> None:
    agent, other = await core.agent(), await core.agent()
    ended = await core.services.revocation.revoke_session(agent.session_id, OperatorCaller("op", "thumbprint", "jti"))
    assert not ended.was_revoked
    assert await code_of(core, of_agent(agent)) == "invalid_lease"
    assert (await core.services.authentication.agent(of_agent(other))).lease.session_id == other.session_id


async def test_an_operator_is_named_with_the_key_and_the_proof(core: Core) -> None:
    headers = signed(core.operator_key, "GET", STATUS, API_KEY, jti="this one")
    caller = await core.services.authentication.operator(Request("GET", STATUS, headers=headers))
    assert (caller.name, caller.jkt, caller.proof_jti) == ("op", core.operator_key.jkt, "this one")


async def test_an_operator_may_look_while_the_store_is_down_where_it_is_said_and_nowhere_else(core: Core) -> None:
    authentication = core.services.authentication
    core.client.faults["UseProof"] = refuses(GONE)
    with pytest.raises(GateError, match="replay_cache_unavailable"):
        await authentication.operator(of_operator(core))
    with capture_logs() as lines:
        assert (await authentication.operator(of_operator(core), may_be_copied=True)).name == "op"
    # but for the checkpoints of the notary, a thread of this process
    told = [(one["operator"], one["cause"]) for one in lines if one["event"] != "checkpoint"]
    assert told == [("op", "gone")]


async def test_a_copy_of_an_operator_s_request_is_refused_where_the_notary_can_say_so(core: Core) -> None:
    authentication, request = core.services.authentication, of_operator(core)
    await authentication.operator(request, may_be_copied=True)
    with pytest.raises(GateError, match="replay_detected"):
        await authentication.operator(request, may_be_copied=True)


async def test_a_proof_is_checked_before_its_session_pays_and_known_by_key_and_jti(core: Core) -> None:
    agent, authentication = await core.agent(), core.services.authentication
    request = Request("GET", PATH, headers=signed(agent.key, "GET", PATH, agent.token, jti="one"))
    claim = authentication.claim(request)
    assert (claim.lease.session_id, claim.token) == (agent.session_id, agent.token)
    assert authentication.check(request, claim).key == replay_key(agent.key.jkt, "one")
