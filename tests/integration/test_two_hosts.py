"""Two gateways on two hosts share one Redis, by TLS and as a user with the rights of the documentation: what a lease, a
proof, a budget, an approval and a revocation are at one they are at the other.

Everything is tried twice (tests/support/two_hosts.py): with a ledger in a file of each host, and with one in a
PostgreSQL, by TLS, that both share: what one of them executed both show, continue and prove.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import httpx
import psutil
import pytest

from tests.support.certificates import made_certificate
from tests.support.gateway import Bearer, wait_for
from tests.support.hosts import Network, network_or_skip
from tests.support.key_files import keys_command, lease_key_ids
from tests.support.ports import free_port
from tests.support.postgres_server import PostgresServer
from tests.support.processes import GATEWAY
from tests.support.production import Production
from tests.support.redis_server import RedisServer
from tests.support.two_hosts import CHAINS, TEXT, Pair, at, at_once, events, pair_on, postgres_on, redis_on

DIGEST = "/v1/actions/text_digest/execute"
ROUNDS = 5
shared = pytest.mark.parametrize("pair", ["postgresql"], indirect=True)


@pytest.fixture(scope="module")
def hosts() -> Iterator[Network]:
    with network_or_skip(3) as made:
        yield made


@pytest.fixture(scope="module")
def redis_port() -> int:
    """Where hosts reach the Redis by TLS."""
    return free_port()


@pytest.fixture(scope="module")
def certificate(hosts: Network, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The certificate of the Redis, for its address."""
    return made_certificate(tmp_path_factory.mktemp("certificate"), hosts.hosts[2].address)


@pytest.fixture(scope="module")
def redis_server(
    hosts: Network, redis_port: int, certificate: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RedisServer]:
    """The Redis that two hosts share, on the third one."""
    with closing(redis_on(hosts.hosts[2], redis_port, certificate, tmp_path_factory.mktemp("redis"))) as server:
        yield server


@pytest.fixture(scope="module")
def postgres_server(hosts: Network, certificate: Path) -> Iterator[PostgresServer]:
    """The PostgreSQL that two hosts share, on the third one, too."""
    with closing(postgres_on(hosts.hosts[2], certificate)) as server:
        yield server


@pytest.fixture(scope="module", params=sorted(CHAINS))
def pair(
    request: pytest.FixtureRequest, hosts: Network, redis_server: RedisServer, redis_port: int, certificate: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Pair]:  # fmt: skip
    """Two gateways on two hosts: with one ledger in the PostgreSQL, and with a ledger of each."""
    postgres = request.getfixturevalue("postgres_server") if request.param == "postgresql" else None
    files = tmp_path_factory.mktemp("files")
    folders = [tmp_path_factory.mktemp(f"host-{number}") for number in (1, 2)]
    with pair_on(hosts, (redis_server, redis_port), postgres, certificate, files, folders) as made:
        yield made


def file_at(gate: Production, name: str) -> Path:
    """A file of actions on this gateway's host."""
    return gate.log.with_name("files") / name


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("error", "")


def test_each_host_reaches_the_redis_by_tls(pair: Pair) -> None:
    for gate, host in zip(pair.both, pair.network.hosts, strict=False):
        status = gate.operator().get("/v1/admin/status").json()
        assert status["backends"] == {"store": "redis", "policy": "embedded", "ledger": pair.ledger}
        assert gate.process.pid in {int(pid) for pid in pids_of(host.name)}
    clients = str(pair.redis.ask("CLIENT", "LIST", "TYPE", "normal"))
    named = [line for line in clients.splitlines() if "name=gateway-notary" in line]
    assert {line.partition(" addr=")[2].partition(":")[0] for line in named} == {
        host.address for host in pair.network.hosts[:2]
    }
    assert all(" user=gate " in line for line in named)


def pids_of(name: str) -> list[str]:
    """Processes whose network is this namespace."""
    wanted = os.stat(f"/var/run/netns/{name}").st_ino
    pids = []
    for process in psutil.process_iter():
        try:
            if os.stat(f"/proc/{process.pid}/ns/net").st_ino == wanted:
                pids.append(str(process.pid))
        except OSError:
            continue
    return pids


def test_a_lease_of_one_host_works_on_the_other(pair: Pair) -> None:
    for issuer, user in (pair.both, pair.both[::-1]):
        agent = issuer.agent()
        for gate in (user, issuer):
            answer = at(gate, agent).execute("text_digest", TEXT)
            assert answer.status_code == 200, answer.text
    assert lease_key_ids(pair.one)[0] == lease_key_ids(pair.other)[0]


def test_a_proof_used_on_one_host_is_refused_on_the_other(pair: Pair) -> None:
    agent = pair.one.agent()
    headers = agent.headers("POST", DIGEST)
    assert pair.one.http.post(DIGEST, headers=headers, json=TEXT).status_code == 200
    assert code(pair.other.http.post(DIGEST, headers=headers, json=TEXT)) == (401, "replay_detected")


def test_of_a_proof_that_reaches_both_hosts_at_once_one_is_taken(pair: Pair) -> None:
    agent = pair.one.agent()
    for _ in range(ROUNDS):
        headers = agent.headers("POST", DIGEST)
        answers = at_once(*[partial(gate.http.post, DIGEST, headers=headers, json=TEXT) for gate in pair.both])
        assert sorted(code(answer) for answer in answers) == [(200, ""), (401, "replay_detected")]


def test_a_budget_is_exact_over_both_hosts(pair: Pair) -> None:
    agent = pair.one.agent(max_calls=8)
    here, there = (at(gate, agent) for gate in pair.both)
    answers = at_once(*[partial(one.execute, "text_digest", TEXT) for one in (here, there) * 8])
    assert sorted(map(code, answers)) == [(200, "")] * 8 + [(403, "budget_exhausted")] * 8


def again(agent: Bearer, key: str) -> httpx.Response:
    """Execute under an `Idempotency-Key`."""
    return agent.http.post(DIGEST, headers=agent.headers("POST", DIGEST) | {"Idempotency-Key": key}, json=TEXT)


def test_of_calls_under_one_key_at_both_hosts_at_once_one_runs_and_the_other_host_names_its_receipt(pair: Pair) -> None:
    agents = [gate.agent() for gate in pair.both]
    for number in range(20):
        answers = at_once(*[partial(again, agent, f"key-{number}") for agent in agents * 2])
        codes = [code(answer)[1] for answer in answers]
        assert codes.count("") == 1, codes
        assert set(codes) <= {"", "call_in_progress", "already_executed"}
    first = again(agents[0], '"across"')
    repeated = again(agents[1], "across")
    assert code(repeated) == (409, "already_executed")
    assert repeated.headers["X-Receipt-Id"] == first.json()["receipt_id"]
    assert repeated.headers["Idempotent-Replayed"] == "true"


def test_one_approval_executes_once_when_both_hosts_execute_it_at_the_same_instant(pair: Pair) -> None:
    agent, operators = pair.one.agent(), [gate.operator() for gate in pair.both]
    for number in range(ROUNDS):
        held = agent.execute("file_write", {"path": f"round-{number}.txt", "content": "once"})
        assert held.status_code == 202, held.text
        approve = f"/v1/approvals/{held.json()['approval_id']}/approve"
        answers = at_once(*[partial(operator.post, approve) for operator in operators])
        assert sorted(answer.status_code for answer in answers) == [200, 404], [answer.text for answer in answers]
        written = [gate for gate in pair.both if file_at(gate, f"round-{number}.txt").exists()]
        won = pair.both[[answer.status_code for answer in answers].index(200)]
        assert written == [won], "on the host that won, and on no other"
        polls = [at(gate, agent).get(f"/v1/approvals/{held.json()['approval_id']}/poll").json() for gate in pair.both]
        assert [polled["state"] for polled in polls] == ["approved"] * 2
        receipt = at(won, agent).get(f"/v1/receipts/{polls[0]['receipt_id']}")
        assert receipt.status_code == 200, receipt.text


def test_a_hold_of_one_host_is_denied_on_the_other(pair: Pair) -> None:
    agent = pair.one.agent()
    held = agent.execute("file_write", {"path": "never.txt", "content": "x"}).json()["approval_id"]
    assert pair.other.operator().post(f"/v1/approvals/{held}/deny", {"reason": "no"}).status_code == 200
    assert agent.get(f"/v1/approvals/{held}/poll").json()["state"] == "denied"
    assert not any(file_at(gate, "never.txt").exists() for gate in pair.both)


def is_refused(agent: Bearer) -> bool:
    return code(agent.execute("text_digest", TEXT)) == (401, "invalid_lease")


def test_revoke_all_on_one_host_reaches_the_other(pair: Pair) -> None:
    agents = [gate.agent() for gate in pair.both]
    assert pair.one.operator().post("/v1/admin/revoke-all").status_code == 200
    for agent in agents:
        for gate in pair.both:
            wait_for(partial(is_refused, at(gate, agent)), "the end of every lease of before")
    epochs = {gate.operator().get("/v1/admin/epoch").json()["current_epoch"] for gate in pair.both}
    assert len(epochs) == 1
    assert at(pair.other, pair.one.agent()).execute("text_digest", TEXT).status_code == 200


def test_a_lease_key_that_is_rotated_on_one_host_and_copied_is_followed_by_the_other(pair: Pair) -> None:
    before = [gate.agent() for gate in pair.both]
    (old, *_) = lease_key_ids(pair.one)
    done = keys_command("rotate", "--purpose", "lease", "--config", pair.one.log.with_name("gateway.toml"))
    assert done.returncode == 0, done.stderr
    wait_for(lambda: lease_key_ids(pair.one)[0] != old, "the first host to follow")
    place = Path("keys") / "keys" / "lease.pem"
    target = pair.other.log.parent / place
    beside = target.with_suffix(".new")
    shutil.copy(pair.one.log.parent / place, beside)
    beside.chmod(0o600)
    beside.rename(target)
    wait_for(lambda: lease_key_ids(pair.other)[0] == lease_key_ids(pair.one)[0] != old, "the second host to follow")
    for agent in (*before, *(gate.agent() for gate in pair.both)):
        for gate in pair.both:
            answer = at(gate, agent).execute("text_digest", TEXT)
            assert answer.status_code == 200, answer.text


def test_a_host_that_loses_the_redis_refuses_alone_and_goes_on_with_it(pair: Pair) -> None:
    agent = pair.one.agent(max_calls=100)
    here, there = (at(gate, agent) for gate in pair.both)
    cut = pair.network.hosts[1]
    pair.network.unplug(cut)
    try:
        wait_for(lambda: there.execute("text_digest", TEXT).status_code == 503, "the host without a Redis to refuse")
        if pair.chains == 1:  # it may have been cut off within a unit, whose lock the server takes from it
            wait_for(lambda: here.execute("text_digest", TEXT).status_code == 200, "the lock of the ledger")
        assert here.execute("text_digest", TEXT).status_code == 200
        assert pair.other.http.get("/readyz").json()["redis"] is False
        assert pair.one.http.get("/readyz").json()["redis"] is True
    finally:
        pair.network.plug(cut)
    wait_for(pair.other.is_ready, "its readiness")
    assert there.execute("text_digest", TEXT).status_code == 200


def test_the_evidence_of_both_hosts_is_whole_and_in_as_many_chains_as_there_are_ledgers(pair: Pair) -> None:
    for gate in pair.both:
        report = gate.operator().get("/v1/audit/verify").json()
        assert (report["intact"], report["broken_at"]) == (True, None)

    def found() -> set[frozenset[str]] | None:
        chains = {frozenset(event["event_id"] for event in events(gate)) for gate in pair.both}
        return chains if len(chains) == pair.chains else None

    # A host that was cut off may still be writing what it refused.
    chains: set[frozenset[str]] = wait_for(found, "as many chains as there are ledgers")
    assert sum(map(len, chains)) == len(frozenset.union(*chains)), "no event is in two"
    logs = {gate.operator().get("/v1/audit/checkpoint").json()["origin"] for gate in pair.both}
    assert len(logs) == pair.chains, "each tree has a name of its own"
    every = {event["event_id"]: event for gate in pair.both for event in events(gate)}
    granted = [event["approval_id"] for event in every.values() if event["event_type"] == "ApprovalGranted"]
    assert len(granted) == len(set(granted)) == ROUNDS


@shared
def test_both_hosts_reach_the_ledger_by_tls_and_keep_no_file_of_it(pair: Pair, postgres_server: PostgresServer) -> None:
    question = "SELECT host(client_addr), ssl FROM pg_stat_activity JOIN pg_stat_ssl USING (pid) WHERE usename = 'gate'"
    wanted = {(host.address, True) for host in pair.network.hosts[:2]}
    wait_for(lambda: set(postgres_server.ask(question)) == wanted, "a connection of each host, by TLS")
    assert not [path for gate in pair.both for path in gate.log.parent.rglob("*sqlite*")]


@shared
def test_what_one_host_executed_the_other_shows_and_proves(pair: Pair) -> None:
    for executing, asked in (pair.both, pair.both[::-1]):
        agent = executing.agent()
        done = agent.execute("text_digest", TEXT).json()
        receipt = at(asked, agent).get(f"/v1/receipts/{done['receipt_id']}").json()
        assert receipt["signature_status"] == "verified"
        (event,) = asked.events(trace_id=done["trace_id"])
        assert event["receipt_id"] == done["receipt_id"]
        bundles = [gate.operator().get(f"/v1/audit/proof?receipt_id={done['receipt_id']}") for gate in pair.both]
        assert [answer.status_code for answer in bundles] == [200, 200]


@shared
def test_calls_at_both_hosts_at_once_are_one_chain_that_each_of_them_continues(pair: Pair) -> None:
    before = {event["event_id"] for event in events(pair.one)}
    agents = [gate.agent() for gate in pair.both]
    answers = at_once(*[partial(agent.execute, "text_digest", TEXT) for agent in agents * 12])
    traces = {answer.json()["trace_id"] for answer in answers}
    assert [answer.status_code for answer in answers] == [200] * 24
    for gate in pair.both:
        new = [event for event in events(gate) if event["event_id"] not in before and event["trace_id"] in traces]
        assert len(new) == len(traces) == 24
        report = gate.operator().get("/v1/audit/verify").json()
        assert (report["intact"], report["verified_links"]) == (True, report["total_events"])


@shared
def test_the_shared_ledger_is_verified_without_a_gateway_against_the_checkpoints_of_both(
    pair: Pair, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    kept = []
    for gate in pair.both:
        gate.agent().execute("text_digest", TEXT)
        gate.operator().get("/v1/audit/checkpoint")
        kept += ["--checkpoint", str(gate.log.parent / "state" / "checkpoints")]
    keys = tmp_path / "keys.json"
    keys.write_text(pair.other.operator().get("/v1/receipt-keys").text)
    command = [GATEWAY, "ledger", "verify", postgres_server.url("ledger"), "--keys", str(keys), *kept]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "is intact" in done.stdout
