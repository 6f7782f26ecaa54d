"""GET /metrics: every family that is counted moves when its thing happens; what can't be told is absent."""

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
import trio
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from frontend.actions.registry import Registry
from frontend.errors import GateError
from frontend.http.requests import Request
from frontend.notary.errors import NotaryUnavailable
from frontend.policy.engine import PolicyRefused, PolicySources
from frontend.policy.measured import MeasuredPolicy
from frontend.telemetry.families import FAMILIES
from tests.frontend.webhooks.samples import counted, hook, notifying_core, settled
from tests.support.front_core import ALLOW, API_KEY, DENY, HOLD, Agent, Core, action, front_core, refuses, signed
from tests.support.limiting import limiting
from tests.support.proofs import Key
from tests.support.webhook_receiver import holds, says, webhook_receiver
from tests.support.worker_desk import until

GONE = NotaryUnavailable("gone")
FULL = NotaryUnavailable("full")
PATH = "/v1/actions/echo/execute"
Sample = tuple[str, str]
"""Name of a sample and its labels, written `a=1,b=2`."""


async def scraped(core: Core) -> dict[Sample, float]:
    """What an operator's scraper reads now."""
    answer = await core.ask("GET", "/metrics", b"", signed(core.operator_key, "GET", "/metrics", API_KEY))
    assert answer.status == 200
    return samples(answer.body)


def samples(text: bytes) -> dict[Sample, float]:
    """Every sample but buckets and processes."""
    values = {}
    for family in text_string_to_metric_families(text.decode()):  # type: ignore[no-untyped-call]
        for sample in family.samples:
            if "le" not in sample.labels and not sample.name.startswith("gate_process_"):
                values[sample.name, ",".join(f"{k}={v}" for k, v in sorted(sample.labels.items()))] = sample.value
    return values


def moved(before: dict[Sample, float], after: dict[Sample, float], name: str) -> dict[str, float]:
    """By how much each series of this name has grown."""
    grown = {labels: value - before.get((one, labels), 0) for (one, labels), value in after.items() if one == name}
    return {labels: value for labels, value in grown.items() if value}


Drive = Callable[[Core, Agent], Awaitable[object]]


def calls(action_id: str = "echo", *, policy: Any = ALLOW, times: int = 1, **claims: Any) -> Drive:
    """The agent calls, and policy answers so."""

    async def drive(core: Core, agent: Agent) -> None:
        core.policy.answer = policy
        for _ in range(times):
            await agent.call(action_id, **claims)

    return drive


def asks(method: str, path: str, body: bytes | object = b"") -> Drive:
    """A request without credentials."""
    return lambda core, agent: core.ask(method, path, body)


def limits(quota: dict[str, int], drive: Drive) -> Drive:
    """The same while policy data says this for all."""

    async def limited(core: Core, agent: Agent) -> None:
        core.services.configuration.current.policy_files = limiting(**quota)
        await drive(core, agent)
        core.services.configuration.current.policy_files = None

    return limited


def breaks(operation: str, drive: Drive) -> Drive:
    """The same while an operation of the notary fails."""

    async def broken(core: Core, agent: Agent) -> None:
        core.client.faults[operation] = refuses(FULL)
        await drive(core, agent)
        core.client.faults.clear()

    return broken


def settles(verb: str) -> Drive:
    """A call is held and an operator decides."""

    async def drive(core: Core, agent: Agent) -> None:
        core.policy.answer = HOLD
        _, answer = await agent.call()
        await core.operate("POST", f"/v1/approvals/{answer['approval_id']}/{verb}")

    return drive


async def replays(core: Core, agent: Agent) -> None:
    headers = signed(agent.key, "POST", PATH, agent.token)
    for _ in range(2):
        await core.ask("POST", PATH, {"n": 1}, headers)


async def drains(core: Core, agent: Agent) -> None:
    core.services.admission.drain()
    await agent.call()


async def leases(core: Core, agent: Agent) -> None:
    await core.agent()


async def fills_up(core: Core, agent: Agent) -> None:
    with ExitStack() as stack:
        for _ in range(256):
            stack.enter_context(core.services.admission.enter())
        await agent.call()


async def loads(core: Core, agent: Agent) -> None:
    core.policy.refusal = PolicyRefused(("no",))
    with pytest.raises(PolicyRefused):
        await core.services.pipeline.policy.load(PolicySources({}, "{}", "1"))


async def expires(core: Core, agent: Agent) -> None:
    core.policy.answer = HOLD
    await agent.call()
    core.clock.ahead = 301
    await core.services.upkeep.expiry.expire()
    core.clock.ahead = 0


async def loses_its_module(core: Core, agent: Agent) -> None:
    core.policy.answer = HOLD
    _, answer = await agent.call()
    core.services.configuration.current.registry = Registry()
    await core.operate("POST", f"/v1/approvals/{answer['approval_id']}/approve")


async def connects(core: Core, agent: Agent) -> None:
    metrics = core.services.metrics
    for told in (metrics.opened, metrics.opened, metrics.closed, metrics.turned, metrics.cut):
        told("client")
    metrics.answered_itself(400)
    await trio.lowlevel.checkpoint()


async def loses_workers(core: Core, agent: Agent) -> None:
    core.services.metrics.worker_ended("compute-1", "SIGKILL")
    core.services.metrics.counting_kills(core.services.control.kill_worker)("fs-1", "no result in time")


EXECUTE = "route=/v1/actions/{action_id}/execute"
DRIVES: list[tuple[Drive, str, str, float]] = [
    # what happens, name, labels, how much it counts; the first one while nothing else is held
    (expires, "gate_approvals_total", "outcome=expired", 1),
    (calls(), "gate_action_calls_total", "action_id=echo,code=ok,outcome=allow", 1),
    (calls("die"), "gate_action_calls_total", "action_id=die,code=action_execution_failed,outcome=error", 1),
    (calls("nothing"), "gate_action_calls_total", "action_id=other,code=action_not_found,outcome=deny", 1),
    (calls(policy=DENY), "gate_action_calls_total", "action_id=echo,code=policy_denied,outcome=deny", 1),
    (breaks("Refuse", calls("nothing")), "gate_action_calls_total",
     "action_id=other,code=replay_cache_unavailable,outcome=error", 1),
    (calls(policy=HOLD, times=2), "gate_action_calls_total", "action_id=echo,code=ok,outcome=pending_approval", 2),
    (settles("approve"), "gate_action_calls_total", "action_id=echo,code=ok,outcome=pending_approval", 1),
    (settles("approve"), "gate_action_calls_total", "action_id=echo,code=ok,outcome=allow", 0),
    (calls(), "gate_action_call_duration_seconds_count", "", 1),
    (drains, "gate_calls_refused_total", "reason=draining", 1),
    (fills_up, "gate_calls_refused_total", "reason=ceiling", 1),
    (fills_up, "gate_action_calls_total", "action_id=echo,code=overloaded,outcome=error", 0),
    (calls(), "gate_provider_execution_duration_seconds_count", "action_id=echo", 1),
    (settles("approve"), "gate_provider_execution_duration_seconds_count", "action_id=echo", 1),
    (calls(), "gate_provider_executions_total", "action_id=echo,outcome=success", 1),
    (calls("die"), "gate_provider_executions_total", "action_id=die,outcome=worker_lost", 1),
    (calls("violates"), "gate_response_schema_violations_total", "action_id=violates", 1),
    (calls(times=4), "gate_budget_exhausted_total", "", 1),
    (limits({"max_calls_per_hour": 1}, calls(times=3)), "gate_quota_exhausted_total", "quota=max_calls_per_hour", 2),
    (limits({"max_sessions": 0}, asks("POST", "/v1/leases", {"scopes": ["tools:call"], "dpop_jwk": Key().jwk})),
     "gate_quota_exhausted_total", "quota=max_sessions", 1),
    (asks("POST", PATH, {"n": 1}), "gate_dpop_rejections_total", "code=missing_auth_header", 1),
    (asks("GET", "/v1/approvals/apr_1/poll"), "gate_dpop_rejections_total", "code=missing_auth_header", 1),
    (calls(htm="GET"), "gate_dpop_rejections_total", "code=invalid_dpop", 1),
    (replays, "gate_dpop_rejections_total", "code=replay_detected", 1),
    (asks("GET", "/v1/admin/status"), "gate_operator_auth_failures_total", "code=missing_auth_header", 1),
    (leases, "gate_leases_issued_total", "", 1),
    (asks("POST", "/v1/leases", {}), "gate_leases_refused_total", "code=invalid_request", 1),
    (calls(), "gate_policy_decisions_total", "decision=allow,rule=allow", 1),
    (calls(policy=DENY), "gate_policy_decisions_total", "decision=deny,rule=acl", 1),
    (calls(policy=HOLD), "gate_policy_decisions_total", "decision=pending_approval,rule=hold", 1),
    (calls(), "gate_policy_request_duration_seconds_count", "operation=decide", 1),
    (loads, "gate_policy_request_duration_seconds_count", "operation=load", 1),
    (loads, "gate_policy_request_errors_total", "code=refused,operation=load", 1),
    (calls(policy=GateError("policy_engine_timeout")), "gate_policy_request_errors_total",
     "code=policy_engine_timeout,operation=decide", 1),
    (calls(policy=HOLD, times=2), "gate_approvals_total", "outcome=held", 1),
    (settles("approve"), "gate_approvals_total", "outcome=approved", 1),
    (settles("deny"), "gate_approvals_total", "outcome=denied", 1),
    (calls(policy=HOLD), "gate_store_request_duration_seconds_count", "operation=hold", 1),
    (breaks("Hold", calls(policy=HOLD)), "gate_store_request_errors_total", "operation=hold", 1),
    (calls(), "gate_ledger_write_duration_seconds_count", "operation=intent", 1),
    (calls(), "gate_ledger_write_duration_seconds_count", "operation=receipt", 1),
    (calls(policy=DENY), "gate_ledger_write_duration_seconds_count", "operation=event", 1),
    (breaks("Open", calls()), "gate_audit_write_errors_total", "operation=intent", 1),
    (breaks("Close", calls()), "gate_audit_write_errors_total", "operation=receipt", 1),
    (breaks("Refuse", calls(policy=DENY)), "gate_audit_write_errors_total", "operation=event", 1),
    (calls(), "gate_worker_wait_duration_seconds_count", "profile=compute", 1),
    (loses_workers, "gate_workers_ended_total", "profile=compute,reason=SIGKILL", 1),
    (loses_workers, "gate_workers_killed_total", "profile=fs,reason=no result in time", 1),
    (breaks("ReadStore", asks("GET", "/readyz")), "gate_readiness_degraded_total", "reason=store", 1),
    (breaks("ReadLedger", asks("GET", "/readyz")), "gate_readiness_degraded_total", "reason=ledger", 1),
    (calls("nothing"), "gate_http_answers_total", f"method=POST,{EXECUTE},status=404", 1),
    (asks("PUT", PATH), "gate_http_answers_total", f"method=other,{EXECUTE},status=405", 1),
    (asks("GET", "/nowhere"), "gate_http_answers_total", "method=other,route=other,status=404", 1),
    (asks("HEAD", "/healthz"), "gate_http_answers_total", "method=GET,route=/healthz,status=200", 1),
    (connects, "gate_http_answers_total", "method=other,route=other,status=400", 1),
    (connects, "gate_http_connections", "listener=client", 1),
    (connects, "gate_http_connections_accepted_total", "listener=client", 2),
    (connects, "gate_http_connections_refused_total", "listener=client", 1),
    (connects, "gate_http_answers_cut_total", "listener=client", 1),
    (loses_its_module, "gate_approvals_total", "outcome=failed", 1),  # the last one: it ends every action
]  # fmt: skip
MOVED_ELSEWHERE = {
    "gate_policy_remembered_total": "tests/integration/test_metrics.py",
    "gate_rate_limited_total": "tests/frontend/test_pace.py",
    "gate_audit_verifications_total": "tests/integration/test_tampering.py",
    "gate_process_cpu_seconds_total": "tests/integration/test_metrics.py",
    "gate_witness_requests_total": "tests/frontend/witnesses/test_follower.py",
    "gate_webhook_deliveries_total": "test_webhooks_are_counted_by_endpoint, and tests/frontend/webhooks",
    "gate_webhook_drops_total": "test_webhooks_are_counted_by_endpoint, and tests/frontend/webhooks",
}


def test_every_counted_family_has_something_that_moves_it() -> None:
    counted = {family.name for family in FAMILIES if family.kind in ("counter", "histogram")}
    driven = {name.removesuffix("_count") for _, name, _, _ in DRIVES} | set(MOVED_ELSEWHERE)
    assert counted - driven == set()


def measured(core: Core) -> None:
    """The scripted engine in the real one's place."""
    object.__setattr__(core.services.pipeline, "policy", MeasuredPolicy(core.policy, core.services.metrics))
    object.__setattr__(core.services, "policy", core.policy)


async def test_whatever_happens_is_counted_as_often_as_it_happens(tmp_path: Path) -> None:
    actions = (action(), action("die"), action("violates"))
    # Leases outlive a hold: the notary may sweep at any moment, and so while the clock is ahead.
    async with front_core(tmp_path, *actions, lease_ttl_seconds=3600) as core:
        measured(core)
        core.services.rates._buckets.clear()
        wrong, agents = [], [await core.agent(max_calls=3) for _ in DRIVES]
        before = await scraped(core)
        for agent, (drive, name, labels, by) in zip(agents, DRIVES, strict=True):
            await drive(core, agent)
            after = await scraped(core)
            grown, before = moved(before, after, name), after
            if grown.get(labels, 0) != by:
                wrong.append((name, labels, grown))
            core.services.memory.drain(is_draining=False)
            core.policy.answer = ALLOW
            if not core.services.pools.census()["compute"].members:
                core.desk.start()
                await until(lambda: core.desk.idle() == 1)
        assert not wrong


async def test_what_stands_still_is_read_at_the_moment_of_the_question(tmp_path: Path) -> None:
    async with front_core(tmp_path, action(), action("hang"), workers=2) as core:
        measured(core)
        agent = await core.agent()
        await core.raise_epoch()
        assert (await scraped(core))["gate_revocation_epoch", ""] == 1
        agent = await core.agent()
        core.policy.answer = HOLD
        for number in range(3):
            await agent.call(body={"n": number})
        core.policy.answer = ALLOW
        with closing(sqlite3.connect(tmp_path / "ledger.sqlite3")) as store, store:
            store.execute("UPDATE approvals SET created_at = created_at - 60, expires_at = expires_at - 60")
        core.client.faults["Close"] = refuses(FULL)
        await agent.call()
        core.client.faults.clear()
        metrics = await scraped(core)
        assert metrics["gate_pending_approvals", ""] == 3
        assert 60 <= metrics["gate_oldest_pending_approval_age_seconds", ""] < 600
        assert metrics["gate_unresolved_intents", ""] == 1
        assert 0 < metrics["gate_oldest_unresolved_intent_age_seconds", ""] < 600
        assert metrics["gate_actions_registered", ""] == 2
        assert metrics["gate_build_info", f"version={core.services.settings.version}"] == 1
        assert metrics["gate_draining", ""] == metrics["gate_in_flight_calls", ""] == 0
        assert {metrics["gate_dependency_up", f"dependency={name}"] for name in ("store", "policy", "ledger")} == {1}
        assert metrics["gate_workers", "profile=compute,state=idle"] == 2
        core.services.crash_loops = ("template", "policy 1")
        looping = {label: value for (name, label), value in (await scraped(core)).items() if name == "gate_crash_loops"}
        assert looping == {"process=template": 1, "process=policy 1": 1}
        core.services.crash_loops = ()
        assert not [name for name, _ in await scraped(core) if name == "gate_crash_loops"]
        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(agent.call, "hang")
            with trio.fail_after(60):
                while core.services.pools.census()["compute"] != (0, 2, 2):  # noqa: ASYNC110
                    await trio.sleep(0.005)
            core.services.admission.drain()
            metrics = await scraped(core)
            assert (metrics["gate_draining", ""], metrics["gate_in_flight_calls", ""]) == (1, 4)
            assert metrics["gate_workers", "profile=compute,state=busy"] == 2
            assert metrics["gate_worker_waiting_calls", "profile=compute"] == 2
            nursery.cancel_scope.cancel()


async def test_webhooks_are_counted_by_endpoint(tmp_path: Path) -> None:
    with webhook_receiver() as receiver:
        receiver.answers += [says(503), says(200), says(404)]
        hooks = (hook(), hook(name="later", url="http://hooks.test:1/", disable=True))
        async with notifying_core(tmp_path, receiver, *hooks) as core:
            metrics = await scraped(core)
            names = ("gate_webhook_deliveries_total", "gate_webhook_drops_total")
            series = {sample: value for sample, value in metrics.items() if sample[0] in names}
            assert len(series) == 6, "all that can come of the one that is not disabled"
            assert not any(series.values())
            assert metrics["gate_webhook_outbox_pending", ""] == 0
            agent = await core.agent()
            await agent.call()
            await until(lambda: len(receiver.received) == 2)
            await agent.call(body={"n": 2})
            await until(lambda: counted(core).get("rejected") == 1)
            await settled(tmp_path)
            metrics = await scraped(core)
            assert metrics["gate_webhook_outbox_pending", ""] == 0
            grown = {labels: value for (name, labels), value in metrics.items() if name in names and value}
            assert grown == {
                "endpoint=chat,outcome=delivered": 1, "endpoint=chat,outcome=failed": 2,
                "endpoint=chat,reason=rejected": 1,
            }  # fmt: skip
            receiver.answer = holds()
            await agent.call(body={"n": 3})
            assert (await scraped(core))["gate_webhook_outbox_pending", ""] == 1
            core.client.faults["ReadLedger"] = refuses(FULL)
            assert ("gate_webhook_outbox_pending", "") not in await scraped(core)


async def test_what_can_not_be_told_is_absent_and_never_zero(tmp_path: Path) -> None:
    of_store = ("gate_pending_approvals", "gate_oldest_pending_approval_age_seconds", "gate_revocation_epoch")
    of_ledger = ("gate_unresolved_intents", "gate_oldest_unresolved_intent_age_seconds")
    async with front_core(tmp_path, workers=0) as core:
        shown = await scraped(core)
        assert all((name, "") in shown for name in (*of_store, *of_ledger))
        headers = signed(core.operator_key, "GET", "/metrics", API_KEY)  # the store still takes this proof
        core.client.faults["ReadStore"] = refuses(GONE)
        core.client.faults["ReadLedger"] = refuses(FULL)
        answer = await core.ask("GET", "/metrics", b"", headers)
        shown = samples(answer.body)
        assert not [name for name in (*of_store, *of_ledger) if (name, "") in shown]
        assert shown["gate_dependency_up", "dependency=store"] == shown["gate_dependency_up", "dependency=ledger"] == 0
        for name in of_store:
            assert f"# TYPE {name} gauge\n" in answer.body.decode(), "the family is there all the same"


async def test_it_is_for_operators_on_the_admin_socket_and_in_the_one_content_type(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0) as core:
        agent = await core.agent()
        assert (await core.ask("GET", "/metrics")).status == 401
        assert (await agent.send("GET", "/metrics")).status == 401
        answer = await core.ask("GET", "/metrics", b"", signed(core.operator_key, "GET", "/metrics", API_KEY))
        assert answer.content_type == "application/openmetrics-text; version=1.0.0; charset=utf-8"
        assert answer.body.endswith(b"\n# EOF\n")
        head = await core.ask("HEAD", "/metrics", b"", signed(core.operator_key, "HEAD", "/metrics", API_KEY))
        assert head.status == 200
        on_the_client_socket = Request("GET", "/metrics", listener="client")
        assert (await core.dispatch.respond(on_the_client_socket)).status == 404
        assert await core.events(event_type="ActionCall") == []


async def test_many_questions_at_once_are_answered_one_after_another(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0) as core:
        texts: list[dict[Sample, float]] = []

        async def ask() -> None:
            texts.append(await scraped(core))

        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(ask)
        answered = [text.get(("gate_http_answers_total", "method=GET,route=/metrics,status=200"), 0) for text in texts]
        assert answered == sorted(answered)


async def test_agents_send_what_they_like_and_no_label_comes_of_it(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        agent = await core.agent()
        before = set(await scraped(core))
        for number in range(30):
            await agent.call(f"unknown-{number}")
            await core.ask("POST", f"/v1/actions/{'x' * number}%0A/execute", {"n": 1})
            await core.ask(f"METHOD{number}", f"/path/{number}")
            await core.ask("GET", f"/v1/receipts/rcpt_{number}")
        new = set(await scraped(core)) - before
        assert len(new) <= 12, new
        assert not [labels for _, labels in new if "unknown" in labels or "METHOD" in labels or "rcpt" in labels]
