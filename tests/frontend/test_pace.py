"""The rate and the concurrent calls of one session; its refusals cost neither other sessions nor the ledger
anything."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from frontend.api.route import Auth, Rate
from frontend.api.routes import ROUTES
from frontend.errors import GateError
from frontend.http.answers import Answer
from frontend.http.requests import CompleteBody, Request
from frontend.limits.rates import TELL_SECONDS
from ipc.settings import IdentitySettings, LimitSettings, PrincipalMapping
from tests.support.front_core import HOLD, Agent, Core, front_core, signed
from tests.support.proofs import Key

PATH = "/v1/actions/echo/execute"
FEW = LimitSettings(worker_wait_seconds=60.0, session_requests_per_second=5)


class Clock:
    """The sessions' clock, which stands still until a test moves it."""

    def __init__(self, core: Core) -> None:
        self.now = 1000.0
        core.services.authentication.sessions._sessions._clock = lambda: self.now


def told(answer: Answer) -> tuple[int, str | None, str | None]:
    return answer.status, msgspec.json.decode(answer.body).get("error"), dict(answer.headers).get("Retry-After")


TOO_FAST = (429, "rate_limit_exceeded", "1")


async def refusals(core: Core, agent: Agent) -> list[dict[str, Any]]:
    events = await core.events(session_id=agent.session_id, event_type="ActionCall")
    return [event for event in reversed(events) if event.get("error_code") in ("rate_limit_exceeded", "overloaded")]


def test_every_row_of_a_session_has_the_session_s_rate_and_no_other_row_has() -> None:
    for route in ROUTES:
        assert (route.rate is Rate.SESSION) == (route.auth in (Auth.LEASE, Auth.PIPELINE)), route.path


async def test_execute_poll_and_receipts_of_a_session_draw_from_one_bucket(tmp_path: Path) -> None:
    async with front_core(tmp_path, limits=FEW) as core:
        Clock(core)
        agent, other = await core.agent(), await core.agent()
        status, done = await agent.call()
        assert status == 200
        for path, wanted in ((f"/v1/receipts/{done['receipt_id']}", 200), ("/v1/approvals/apr_1/poll", 404)):
            for _ in range(2):
                assert (await agent.send("GET", path)).status == wanted
        for path, method in (("/v1/receipts/rcpt_1", "GET"), ("/v1/approvals/apr_1/poll", "GET"), (PATH, "POST")):
            assert told(await agent.send(method, path, {"n": 1} if method == "POST" else b"")) == TOO_FAST
        assert (await other.call())[0] == 200, "another session has its own"
        assert (await core.ask("GET", "/v1/actions")).status == 200, "discovery is not a session's"


async def test_a_flood_costs_the_store_nothing_and_the_ledger_one_event_in_a_while(tmp_path: Path) -> None:
    async with front_core(tmp_path, limits=FEW) as core:
        clock = Clock(core)
        agent = await core.agent(max_calls=100)
        for _ in range(5):
            assert (await agent.call())[0] == 200
        core.client.asked.clear()
        for _ in range(20):
            assert (await agent.call())[0] == 429
        # but for the pulses, which ask once a second
        assert [one for one in core.client.asked if one not in ("ReadStore", "ReadLedger")] == ["Refuse"]
        assert await core.remaining(agent) == 95
        (first,) = await refusals(core, agent)
        assert (first["decision"], first["principal"], first["action_id"]) == ("deny", "dev:anonymous", "echo")
        clock.now += TELL_SECONDS + 1
        assert [(await agent.call())[0] for _ in range(7)] == [200] * 5 + [429] * 2
        reasons = [event["reason"] for event in await refusals(core, agent)]
        assert [reason.rpartition(" ")[2] for reason in reasons] == ["1", "20"], (
            "every refusal is in some event's count"
        )
        metrics = core.services.metrics
        assert metrics.rate_limited.value("session") == 22
        assert metrics.calls_refused.value("rate") == 22


async def test_a_session_beyond_its_part_of_the_places_is_overloaded_and_others_are_not(tmp_path: Path) -> None:
    class Slow(CompleteBody):
        async def read(self, cap: int) -> bytes:
            await trio.sleep_forever()
            raise AssertionError

    async with front_core(tmp_path, limits=LimitSettings(worker_wait_seconds=60.0, max_in_flight=9)) as core:
        Clock(core)
        agent, other = await core.agent(max_calls=5), await core.agent()

        async def slow() -> None:
            headers = signed(agent.key, "POST", PATH, agent.token)
            await core.dispatch.respond(Request("POST", PATH, headers=headers, body=Slow()))

        async with trio.open_nursery() as nursery:
            for number in range(6):
                nursery.start_soon(slow)
                with trio.fail_after(60):
                    while core.services.admission._held.get(f"session {agent.session_id}", 0) <= number:  # noqa: ASYNC110
                        await trio.sleep(0.002)
            for _ in range(5):
                answer = await agent.send("POST", PATH, {"n": 1})
                assert told(answer) == (503, "overloaded", "1")
            for _ in range(5):
                assert (await other.call())[0] == 200
            (event,) = await refusals(core, agent)
            assert (event["decision"], event["error_code"]) == ("error", "overloaded")
            assert core.services.metrics.calls_refused.value("share") == 5
            nursery.cancel_scope.cancel()
        assert core.services.admission.in_flight == 0
        assert (await agent.call())[0] == 200


async def test_a_session_with_too_many_holds_hears_when_the_first_of_them_expires(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0, lease_ttl_seconds=3600) as core:
        core.clock.stop()
        agent = await core.agent()
        core.policy.answer = HOLD
        for number in range(20):
            core.clock.ahead = number
            assert (await agent.call(body={"n": number}))[0] == 202
        core.clock.ahead = 200
        status, code, after = told(await agent.send("POST", PATH, {"n": 20}))
        assert (status, code) == (429, "too_many_pending_approvals")
        assert after is not None
        assert int(after) == 100
        core.clock.ahead += int(after)
        assert (await agent.call(body={"n": 20}))[0] == 202


@pytest.mark.parametrize(
    ("path", "method", "rate"),
    [("/v1/leases", "POST", 50), ("/v1/approvals/apr_1/deny", "POST", 20), ("/v1/approvals", "GET", 100)],
)
async def test_a_refusal_by_rate_is_counted_by_its_class(tmp_path: Path, path: str, method: str, rate: int) -> None:
    async with front_core(tmp_path, workers=0) as core:
        lease = {"scopes": ["tools:call"], "dpop_jwk": core.operator_key.jwk}
        for bucket in core.services.rates._buckets.values():
            bucket._clock = lambda: 0.0  # stands still
        refused = 0
        for _ in range(rate + 30):
            headers = signed(core.operator_key, method, path, "key-op-0123456789abcdef0123456789abcdef")
            body = lease if path == "/v1/leases" else b""
            answer = await core.ask(method, path, body, headers)
            if answer.status == 429:
                assert told(answer) == TOO_FAST
                refused += 1
        counted = core.services.metrics.rate_limited
        name = {50: "lease", 20: "write", 100: "read"}[rate]
        assert counted.value(name) == refused == 30
        assert core.services.metrics.leases_refused.value("rate_limit_exceeded") == (refused if name == "lease" else 0)


async def test_a_flood_of_leases_by_one_user_takes_none_of_another_s(tmp_path: Path) -> None:
    users = {"1001": PrincipalMapping("flood"), "1002": PrincipalMapping("quiet")}
    async with front_core(tmp_path, workers=0, identity=IdentitySettings(principals=users)) as core:
        for bucket in core.services.rates._buckets.values():
            bucket._clock = lambda: 0.0  # stands still
        wanted = {"scopes": ["tools:call"], "dpop_jwk": Key().jwk}

        async def ask(uid: int) -> int:
            return (await core.ask("POST", "/v1/leases", wanted, uid=uid)).status

        assert [await ask(1003) for _ in range(40)] == [403] * 5 + [429] * 35
        assert [await ask(1001) for _ in range(60)] == [200] * 50 + [429] * 10
        assert [await ask(1002) for _ in range(25)] == [200] * 25
        assert {await ask(1001), await ask(1002)} == {429}
        await core.services.refusals.tell_due()
        told = await core.events(event_type="LeaseIssued", decision="deny")
        assert [(one["principal"], one["error_code"], one["attempts"]) for one in told] == [
            ("uid:1003", "identity_forbidden", {"count": count, "uid": 1003}) for count in (4, 1)
        ]


async def test_an_operator_who_asks_without_end_leaves_others_their_part(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0) as core:
        for bucket in core.services.rates._buckets.values():
            bucket._clock = lambda: 0.0  # stands still
        for rate, number in (("read", 100), ("write", 20)):
            with pytest.raises(GateError, match="rate_limit_exceeded"):
                for _ in range(number + 1):
                    core.services.rates.take(rate, "somebody else")
        assert (await core.operate("GET", "/v1/approvals"))[0] == 200
        assert (await core.operate("POST", "/v1/approvals/apr_1/deny"))[0] == 404
