"""GET /metrics: every family that is counted moves when its thing happens, and by as much."""

from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import trio
from msgspec.structs import force_setattr
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from frontend.actions.registry import Registry
from frontend.errors import GateError
from frontend.notary.errors import NotaryUnavailable
from frontend.policy.engine import PolicyRefused, PolicySources
from frontend.policy.measured import MeasuredPolicy
from frontend.telemetry.families import FAMILIES
from ipc.messages.modules import ModuleVerdict
from tests.support.front_core import (
    ALLOW,
    API_KEY,
    DENY,
    DIGEST,
    HOLD,
    Agent,
    Core,
    action,
    front_core,
    refuses,
    signed,
)
from tests.support.held_calls import template_says
from tests.support.limiting import limiting
from tests.support.proofs import Key
from tests.support.worker_desk import until

FULL = NotaryUnavailable("full")
PATH = "/v1/actions/echo/execute"
Sample = tuple[str, str]
"""Name of a sample and its labels, written `a=1,b=2`."""


async def scraped(core: Core) -> dict[Sample, float]:
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
    grown = {labels: value - before.get((one, labels), 0) for (one, labels), value in after.items() if one == name}
    return {labels: value for labels, value in grown.items() if value}


Drive = Callable[[Core, Agent], Awaitable[object]]


def calls(action_id: str = "echo", *, policy: Any = ALLOW, times: int = 1, **claims: Any) -> Drive:
    async def drive(core: Core, agent: Agent) -> None:
        core.policy.answer = policy
        for _ in range(times):
            await agent.call(action_id, **claims)

    return drive


def asks(method: str, path: str, body: bytes | object = b"") -> Drive:
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


def loses_store(part: str, drive: Drive) -> Drive:
    """The same while this part of the key-value store fails, so that no call is opened."""

    async def broken(core: Core, agent: Agent) -> None:
        core.client.faults["Open"] = refuses(NotaryUnavailable("Redis is gone", part))
        await drive(core, agent)
        core.client.faults.clear()

    return broken


def settles(verb: str) -> Drive:
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
        await core.services.pipeline.deciding.policy.load(PolicySources({}, "{}", "1"))


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
    template_says(core, ModuleVerdict(DIGEST, "missing", None, "gone"))
    await core.operate("POST", f"/v1/approvals/{answer['approval_id']}/approve")


async def connects(core: Core, agent: Agent) -> None:
    metrics = core.services.metrics
    for told in (metrics.opened, metrics.opened, metrics.closed, metrics.turned, metrics.cut):
        told("client")
    metrics.answered_itself(400)
    await trio.lowlevel.checkpoint()


async def is_not_heard(core: Core, agent: Agent) -> None:
    for so_far in (2, 5):
        core.services.metrics.dropped_lines(so_far)
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
    (calls(), "gate_store_request_duration_seconds_count", "operation=proof", 2),  # and the scrape's own
    (calls(), "gate_store_request_duration_seconds_count", "operation=debit", 1),
    (calls(policy=DENY), "gate_store_request_duration_seconds_count", "operation=proof", 2),
    (loses_store("store", calls()), "gate_store_request_errors_total", "operation=proof", 1),
    (loses_store("budget", calls()), "gate_store_request_errors_total", "operation=debit", 1),
    (loses_store("store", calls()), "gate_audit_write_errors_total", "operation=intent", 0),
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
    (is_not_heard, "gate_log_lines_dropped_total", "", 5),
    (loses_its_module, "gate_approvals_total", "outcome=failed", 1),  # the last one: it ends every action
]  # fmt: skip
MOVED_ELSEWHERE = {
    "gate_policy_remembered_total": "tests/integration/test_metrics.py",
    "gate_rate_limited_total": "tests/frontend/test_pace.py",
    "gate_audit_verifications_total": "tests/integration/test_tampering.py",
    "gate_process_cpu_seconds_total": "tests/integration/test_metrics.py",
    "gate_witness_requests_total": "tests/frontend/witnesses/test_follower.py",
    "gate_otlp_spans_total": "tests/integration/test_spans.py",
    "gate_otlp_events_total": "tests/integration/test_event_logs.py",
    "gate_otlp_ledger_changes_total": "tests/notary/ledger/test_following.py",
    "gate_webhook_deliveries_total": "tests/frontend/api/handlers/test_scrapes.py, and tests/frontend/webhooks",
    "gate_webhook_drops_total": "tests/frontend/api/handlers/test_scrapes.py, and tests/frontend/webhooks",
}


def test_every_counted_family_has_something_that_moves_it() -> None:
    counted = {family.name for family in FAMILIES if family.kind in ("counter", "histogram")}
    driven = {name.removesuffix("_count") for _, name, _, _ in DRIVES} | set(MOVED_ELSEWHERE)
    assert counted - driven == set()


def measured(core: Core) -> None:
    """The scripted engine in the real one's place."""
    force_setattr(core.services.pipeline.deciding, "policy", MeasuredPolicy(core.policy, core.services.metrics))
    object.__setattr__(core.services, "policy", core.policy)


async def test_every_event_is_counted_exactly_once(tmp_path: Path) -> None:
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
