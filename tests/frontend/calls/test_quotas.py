"""Quotas of a principal over all of its leases: setting them, the agent's answer, and the evidence."""

import json
from typing import Any

import msgspec
import pytest

from frontend.calls.quotas import MAX_KNOWN, Quotas
from frontend.http.answers import Answer
from frontend.policy.data import parse_data
from ipc.configuration.quotas import Quota
from ipc.settings import IdentitySettings, PrincipalMapping
from tests.support.front_core import API_KEY, Core, signed
from tests.support.limiting import limiting
from tests.support.logs import capture_logs
from tests.support.proofs import Key

MAPPED = IdentitySettings(principals={"1004": PrincipalMapping("billing", max_calls_per_hour=5)})


def limit(core: Core, **limits: int) -> None:
    core.services.configuration.current.policy_files = limiting(**limits)


async def lease(core: Core, budgets: dict[str, int] | None = None) -> Answer:
    body: dict[str, Any] = {"scopes": ["tools:call"], "dpop_jwk": Key().jwk}
    return await core.ask("POST", "/v1/leases", body if budgets is None else body | {"budgets": budgets})


def header(answer: Answer, name: str) -> str | None:
    return dict(answer.headers).get(name)


def test_a_mapping_says_what_its_principal_may_and_policy_data_what_the_mapping_leaves_open() -> None:
    mapped, in_force = MAPPED, limiting(max_calls_per_hour=9, max_sessions=3)
    quotas = Quotas(lambda: mapped, lambda: in_force)
    assert (quotas.of("billing"), quotas.of("uid:7")) == (Quota(5, 3), Quota(9, 3))
    in_force = limiting(max_sessions=1)
    assert (quotas.of("billing"), quotas.of("uid:7")) == (Quota(5, 1), Quota(None, 1)), "a changed policy is followed"
    mapped = IdentitySettings(principals={"1004": PrincipalMapping("billing", max_calls_per_hour=6)})
    assert quotas.of("billing") == Quota(6, 1), "a changed mapping is followed"


def test_no_more_principals_are_remembered_than_there_is_room_for() -> None:
    quotas = Quotas(lambda: MAPPED, lambda: None)
    for number in range(MAX_KNOWN + 1):
        quotas.of(f"uid:{number}")
    assert len(quotas._known) <= MAX_KNOWN
    assert quotas.of("billing") == Quota(5, None)


@pytest.mark.parametrize(
    "limits",
    [
        {"defaults": {}}, {"default": {"max_calls": 1}}, [], {"default": {"max_sessions": -1}},
        {"default": {"max_sessions": "1"}}, {"default": {"max_calls_per_hour": 2**31}},
        {"default": {"max_calls_per_session": 1.5}},
    ],
)  # fmt: skip
def test_malformed_limits_in_policy_data_are_refused_with_their_line(limits: Any) -> None:
    problems = parse_data(json.dumps({"policy_version": "1", "limits": limits}, indent=1))
    assert isinstance(problems, list)
    assert [problem.startswith(":3: limits: ") for problem in problems] == [True]


async def test_a_lease_gets_at_most_the_calls_of_its_principal_and_says_how_many(core: Core) -> None:
    limit(core, max_calls_per_session=2)
    told = [msgspec.json.decode((await lease(core, asked)).body)["budgets"]
            for asked in (None, {}, {"max_calls": 9}, {"max_calls": 1}, {"max_calls": 0})]  # fmt: skip
    assert [one["max_calls"] for one in told] == [2, 2, 2, 1, 0]
    agent = await core.agent()
    codes = [(await agent.call())[0] for _ in range(3)]
    assert (codes, await core.remaining(agent)) == ([200, 200, 403], 0)
    limit(core)
    assert "budgets" not in msgspec.json.decode((await lease(core)).body)


async def test_the_lease_beyond_the_quota_is_refused_with_an_event_and_when_another_may_be_had(core: Core) -> None:
    core.clock.stop()
    limit(core, max_sessions=2)
    assert [(await lease(core)).status for _ in range(2)] == [200, 200]
    with capture_logs() as lines:
        answer = await lease(core)
    assert answer.status == 403
    told = [(one["code"], one["principal"]) for one in lines if one["event"] == "a lease was refused"]
    assert told == [("budget_exhausted", "dev:anonymous")]
    assert msgspec.json.decode(answer.body) == {"error": "budget_exhausted", "reason": "max_sessions"}
    assert 290 < int(header(answer, "Retry-After") or 0) <= 300
    event = (await core.events(event_type="LeaseIssued"))[0]
    assert (event["decision"], event["error_code"]) == ("deny", "budget_exhausted")
    assert event["reason"] == "dev:anonymous may have 2 leases at once, and has them"
    assert 'gate_quota_exhausted_total{quota="max_sessions"} 1' in await metrics(core)


async def test_the_call_beyond_the_hour_is_refused_whatever_lease_it_comes_with(core: Core) -> None:
    limit(core, max_calls_per_hour=3)
    agents = [await core.agent(), await core.agent(max_calls=5)]
    assert [(await agent.call())[0] for agent in (*agents, agents[0])] == [200, 200, 200]
    for agent in agents:
        answer = await agent.send("POST", "/v1/actions/echo/execute", {"n": 1})
        assert answer.status == 403
        assert msgspec.json.decode(answer.body) == {"error": "budget_exhausted", "reason": "max_calls_per_hour"}
        assert 3500 < int(header(answer, "Retry-After") or 0) <= 3660
    assert await core.remaining(agents[1]) == 4, "what is refused takes nothing of the session"
    event = (await core.events(event_type="ActionCall"))[0]
    assert (event["error_code"], event["reason"]) == (
        "budget_exhausted", "max_calls_per_hour of dev:anonymous, 3, is used up",
    )  # fmt: skip
    assert 'gate_quota_exhausted_total{quota="max_calls_per_hour"} 2' in await metrics(core)


async def metrics(core: Core) -> str:
    headers = signed(core.operator_key, "GET", "/metrics", API_KEY)
    return (await core.ask("GET", "/metrics", b"", headers)).body.decode()
