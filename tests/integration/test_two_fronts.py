"""Two fronts are one gateway: what one has answered holds in the other, and what is counted is counted once."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.background import HeldCall
from tests.support.coded import Coded
from tests.support.fronts import clients_of, through
from tests.support.gateway import Bearer, Gateway, config_for, gateway
from tests.support.manifests import example, limit_all, open_policy, patient, write_manifests
from tests.support.upstream import Upstream

PAYMENT = {"to": "acct-7", "amount_cents": 25000, "currency": "EUR"}
ME = "dev:anonymous"
ROUNDS = 3
WRITES_A_SECOND = 20
"""docs/contract.md, "Limits"."""

Clients = list[httpx.Client]


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the gateway's policy."""
    return open_policy(tmp_path_factory.mktemp("policy"), "later")


@pytest.fixture(scope="module")
def gate(up: Upstream, policy: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with two fronts, its manifests and its policy in folders of its own."""
    folder: Path = tmp_path_factory.mktemp("two")
    top = f'front_processes = 2\n{patient(folder / "actions")}policy_dir = "{policy}"\n'
    with gateway(folder, config_for(up.address, top)) as running:
        yield running


@pytest.fixture(scope="module")
def clients(gate: Gateway) -> Iterator[Clients]:
    """A client of each front."""
    with clients_of(gate) as by_front:
        yield by_front


def both_ways(clients: Clients) -> list[Clients]:
    """Each front first, the other second, twice."""
    return [[*clients], [*reversed(clients)]] * 2


def at_once(*calls: Callable[[], httpx.Response]) -> list[httpx.Response]:
    """The answers to calls that begin together."""
    barrier, answers = threading.Barrier(len(calls)), list[httpx.Response]()

    def run(call: Callable[[], httpx.Response]) -> None:
        barrier.wait()
        answers.append(call())

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == len(calls)
    return answers


def codes(answers: list[httpx.Response]) -> Counter[str]:
    """How often each status and code."""
    return Counter(f"{one.status_code} {one.json().get('error', '')}".strip() for one in answers)


def test_a_proof_that_is_sent_to_both_fronts_at_once_is_used_once(gate: Gateway, clients: Clients) -> None:
    agent = gate.agent()
    path = "/v1/actions/text_digest/execute"
    for _ in range(ROUNDS):
        headers = agent.headers("POST", path)
        calls = [partial(client.post, path, headers=headers, json={"text": "x"}) for client in clients]
        assert codes(at_once(*calls)) == {"200": 1, "401 replay_detected": 1}


def test_a_budget_is_exact_across_fronts(gate: Gateway) -> None:
    most = 5
    with ExitStack() as stack:
        http_clients = [client for _ in range(6) for client in stack.enter_context(clients_of(gate))]
        for _ in range(ROUNDS):
            agent = gate.agent(max_calls=most)
            callers = [through(client, agent) for client in http_clients]
            calls = [partial(caller.execute, "text_digest", {"text": "x"}) for caller in callers]
            assert codes(at_once(*calls)) == {"200": most, "403 budget_exhausted": len(http_clients) - most}


def test_a_quota_is_exact_across_fronts_and_leases_and_a_reload_changes_it(gate: Gateway, policy: Path) -> None:
    most = 5
    limit_all(policy, max_calls_per_hour=most)
    assert gate.operator().post("/v1/admin/reload").status_code == 200
    try:
        with ExitStack() as stack:
            http_clients = [client for _ in range(6) for client in stack.enter_context(clients_of(gate))]
            callers = [through(client, gate.agent()) for client in http_clients]
            calls = [partial(caller.execute, "text_digest", {"text": "x"}) for caller in callers]
            assert codes(at_once(*calls)) == {"200": most, "403 budget_exhausted": len(http_clients) - most}
            assert gate.agent().execute("text_digest", {"text": "x"}).json()["reason"] == "max_calls_per_hour"
    finally:
        limit_all(policy)
        assert gate.operator().post("/v1/admin/reload").status_code == 200
    assert gate.agent().execute("text_digest", {"text": "x"}).status_code == 200


def test_an_approval_that_is_given_through_both_fronts_at_once_runs_once(gate: Gateway, clients: Clients) -> None:
    agent = gate.agent()
    for number in range(ROUNDS):
        held = agent.execute("payment_transfer", PAYMENT | {"amount_cents": 100 + number}).json()
        path = f"/v1/approvals/{held['approval_id']}/approve"
        calls = [partial(through(client, gate.operator()).post, path) for client in clients]
        answers = at_once(*calls)
        assert sorted(one.status_code for one in answers) == [200, 404]
        (ran,) = gate.events(trace_id=held["trace_id"], decision="allow", event_type="ActionCall")
        assert ran["approval_id"] == held["approval_id"]


def test_a_revocation_that_one_front_has_answered_is_in_force_in_the_other(gate: Gateway, clients: Clients) -> None:
    for first, second in both_ways(clients):
        before = through(second, gate.agent())
        held = before.execute("payment_transfer", PAYMENT).json()
        assert through(first, gate.operator()).post("/v1/admin/revoke-all").status_code == 200
        assert before.execute("text_digest", {"text": "x"}).json() == Coded("invalid_lease")
        assert before.get(f"/v1/approvals/{held['approval_id']}/poll").status_code == 401
        after = through(first, gate.agent(http=second))
        assert after.execute("text_digest", {"text": "x"}).status_code == 200


def test_a_reload_that_one_front_has_answered_is_in_force_in_the_other_and_told_once(
    gate: Gateway, clients: Clients
) -> None:
    folder = gate.state.parent / "actions"
    for number, (first, second) in enumerate(both_ways(clients)):
        before = len(gate.events(event_type="AdminReload"))
        write_manifests(folder, example("text_digest", action_id="later", version=f"1.0.{number}"))
        answer = through(first, gate.operator()).post("/v1/admin/reload")
        assert answer.status_code == 200, answer.text
        assert second.get("/v1/actions/later").json()["version"] == f"1.0.{number}"
        assert len(gate.events(event_type="AdminReload")) == before + 1


def test_a_reload_that_is_refused_changes_neither_front(gate: Gateway, clients: Clients) -> None:
    broken = gate.state.parent / "actions" / "broken.yaml"
    before = [client.get("/v1/actions").json() for client in clients]
    broken.write_text("action_id: [")
    try:
        for first in clients:
            assert through(first, gate.operator()).post("/v1/admin/reload").json() == {"error": "reload_failed"}
        assert [client.get("/v1/actions").json() for client in clients] == before
    finally:
        broken.unlink()


def test_a_change_of_policy_that_one_front_has_answered_decides_in_the_other(gate: Gateway, clients: Clients) -> None:
    agent = gate.agent()
    for first, second in both_ways(clients):
        for verb, wanted in (("revoke", 403), ("grant", 200)):
            change = {"principal": ME, "actions": ["text_digest"]}
            answer = through(first, gate.operator()).post(f"/v1/admin/policy/{verb}", change)
            assert answer.status_code == 200, answer.text
            assert through(second, agent).execute("text_digest", {"text": "x"}).status_code == wanted


def test_changes_of_policy_through_both_fronts_at_once_all_come_into_force(gate: Gateway, clients: Clients) -> None:
    for number in range(ROUNDS):
        principals = [f"both-{number}-{index}" for index in range(len(clients))]
        calls = [
            partial(through(client, gate.operator()).post, "/v1/admin/policy/grant", change)
            for client, change in zip(clients, [{"principal": one, "actions": ["text_digest"]} for one in principals],
                                      strict=True)
        ]  # fmt: skip
        assert codes(at_once(*calls)) == {"200": len(clients)}
    operator = gate.operator()
    acl = operator.get("/v1/admin/policy").json()["principals"]
    assert {f"both-{number}-{index}" for number in range(ROUNDS) for index in range(2)} <= set(acl)


def test_a_learned_domain_counts_in_the_other_front_once_it_is_answered(gate: Gateway, clients: Clients) -> None:
    for number, (first, second) in enumerate(both_ways(clients)):
        rule = {"action_id": "http_fetch", "domain": f"d{number}.example.com"}
        assert through(first, gate.operator()).post("/v1/admin/domains", rule).status_code == 200
        listed = through(second, gate.operator()).get("/v1/admin/domains").json()["domains"]
        assert rule["domain"] in {one["domain"] for one in listed}


def test_the_rates_of_operators_are_the_gateway_s_whichever_front_is_asked(gate: Gateway, clients: Clients) -> None:
    answers: list[int] = []

    def ask(client: httpx.Client) -> None:
        operator = through(client, gate.operator())
        operator.writes = None  # as fast as it goes
        for _ in range(3 * WRITES_A_SECOND):
            answers.append(operator.post("/v1/approvals/apr_1/deny").status_code)

    threads = [threading.Thread(target=ask, args=(client,)) for client in clients]
    gate.paces.writes.rest()
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    most = WRITES_A_SECOND * (1 + time.monotonic() - began) + 1
    assert set(answers) <= {404, 429}
    assert WRITES_A_SECOND <= answers.count(404) <= most


def test_either_front_tells_what_is_in_flight_in_both(gate: Gateway, up: Upstream, clients: Clients) -> None:
    calls = [HeldCall(up, through(client, gate.agent())) for client in clients]
    with clients_of(gate) as free:  # the calls have the connections of the others
        for client in free:
            status = through(client, gate.operator()).get("/v1/admin/status").json()
            assert status["in_flight_executions"] == 2
            assert "gate_in_flight_calls 2.0\n" in through(client, gate.operator()).get("/metrics").text
    assert [call.release().status() for call in calls] == [200, 200]


def test_either_front_shows_the_counts_of_both(gate: Gateway, clients: Clients) -> None:
    agent, name = gate.agent(), 'gate_action_calls_total{action_id="text_digest",code="ok",outcome="allow"}'
    before = samples(through(clients[0], gate.operator()))[name]
    for client in clients * ROUNDS:
        assert through(client, agent).execute("text_digest", {"text": "x"}).status_code == 200
    shown = [samples(through(client, gate.operator())) for client in clients]
    assert [one[name] for one in shown] == [before + 2 * ROUNDS] * 2
    assert [one["gate_fronts"] for one in shown] == [2, 2]
    assert [kinds(one) for one in shown] == [{"supervisor": 1, "notary": 1, "template": 1, "front": 2, "policy": 2}] * 2


def test_the_start_and_the_end_of_the_gateway_are_told_once(up: Upstream, tmp_path: Path) -> None:
    config = config_for(up.address, "front_processes = 2\n" + patient(tmp_path / "actions"))
    with gateway(tmp_path, config) as gate:
        assert len(gate.events(event_type="GatewayStarted")) == 1
    with gateway(tmp_path, config) as gate, clients_of(gate) as clients:
        told = [event["event_type"] for event in gate.events() if event["event_type"].startswith("Gateway")]
        assert told == ["GatewayStarted", "GatewayStopped", "GatewayStarted"]
        agent, operator = gate.agent(), gate.operator()
        drained = [through(client, operator).post("/v1/admin/drain").json()["already_draining"] for client in clients]
        assert drained == [False, True]
        for client in clients:
            assert through(client, agent).execute("text_digest", {"text": "x"}).json() == {"error": "draining"}
            assert through(client, operator).get("/v1/admin/status").json()["status"] == "draining"


def samples(operator: Bearer) -> dict[str, float]:
    """Every sample of a scrape by its name with labels."""
    text = operator.get("/metrics").text
    return {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if not line.startswith("#")
    }  # fmt: skip


def kinds(scrape: dict[str, Any]) -> dict[str, int]:
    """How many processes of each kind a scrape shows, workers left out."""
    name = "gate_process_start_time_seconds"
    counts = Counter(one.split('kind="')[1].split('"')[0] for one in scrape if one.startswith(name))
    return {kind: count for kind, count in counts.items() if not kind.startswith("worker")}
