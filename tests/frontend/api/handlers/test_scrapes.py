"""GET /metrics as an operator's scraper reads it: gauges as they stand, and nothing where nothing can be told."""

import sqlite3
from contextlib import closing
from pathlib import Path

import trio

from frontend.http.requests import Request
from frontend.notary.errors import NotaryUnavailable
from tests.frontend.api.handlers.test_metrics import FULL, Sample, measured, samples, scraped
from tests.frontend.webhooks.samples import counted, hook, notifying_core, settled
from tests.support.front_core import ALLOW, API_KEY, HOLD, Core, action, front_core, refuses, signed
from tests.support.webhook_receiver import holds, says, webhook_receiver
from tests.support.worker_desk import until

GONE = NotaryUnavailable("gone")


async def test_gauges_are_read_at_the_moment_of_the_scrape(tmp_path: Path) -> None:
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
            await until(lambda: core.services.pools.census()["compute"] == (0, 2, 2))
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


async def test_an_unknown_metric_is_absent_and_never_zero(tmp_path: Path) -> None:
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


async def test_agents_send_what_they_like_and_no_label_comes_of_it(core: Core) -> None:
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
