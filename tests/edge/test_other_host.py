"""An agent on another host: all that it does with a gateway goes by TLS through the edge."""

import ctypes
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.certificates import made_certificate
from tests.support.edge_process import Edge, edge, edge_config
from tests.support.gateway import Gateway
from tests.support.hosts import Host, Network, network_or_skip
from tests.support.issued_tokens import leased
from tests.support.upstream import Upstream

PAYMENT = {"to": "acct-7", "amount_cents": 25000, "currency": "EUR"}
NEW_NETWORK = 0x40000000
"""CLONE_NEWNET of sched.h."""


@pytest.fixture(scope="module")
def hosts() -> Iterator[Network]:
    with network_or_skip(2) as made:
        yield made


@pytest.fixture(scope="module")
def before(gate: Gateway, hosts: Network, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edge]:
    folder: Path = tmp_path_factory.mktemp("edge")
    host = hosts.hosts[0]
    roots = made_certificate(folder, host.address)
    tls = '[tls]\ncertificate_file = "certificate.pem"\nkey_file = "key.pem"\n'
    config = edge_config(folder, gate.ready["client_socket"], tls, listen=f"{host.address}:8443")
    with edge(config, roots, host.within) as running:
        yield running


def enter(host: Host) -> None:
    """Let this thread's sockets be of that host."""
    with open(f"/var/run/netns/{host.name}", "rb") as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), NEW_NETWORK) != 0:
            raise OSError(ctypes.get_errno(), "setns")


@pytest.fixture(scope="module")
def elsewhere(hosts: Network) -> Iterator[ThreadPoolExecutor]:
    """Its one thread is on the other host."""
    with ThreadPoolExecutor(1, initializer=enter, initargs=(hosts.hosts[1],)) as thread:
        yield thread


def test_an_agent_on_another_host_executes_is_held_approved_and_reads_its_receipt(
    before: Edge, gate: Gateway, up: Upstream, elsewhere: ThreadPoolExecutor
) -> None:
    agent = elsewhere.submit(leased, before.client()).result()
    called = elsewhere.submit(agent.execute, "text_digest", {"text": "a"}).result()
    assert called.status_code == 200, called.text
    hold = elsewhere.submit(agent.execute, "payment_transfer", PAYMENT).result()
    assert hold.status_code == 202, hold.text
    approval = hold.json()["approval_id"]
    approved = gate.operator().post(f"/v1/approvals/{approval}/approve")
    assert approved.status_code == 200, approved.text
    assert up.seen[-1].json() == PAYMENT
    polled = elsewhere.submit(agent.get, f"/v1/approvals/{approval}/poll").result().json()
    assert (polled["state"], polled["receipt_id"]) == ("approved", approved.json()["receipt_id"])
    receipt = elsewhere.submit(agent.get, f"/v1/receipts/{polled['receipt_id']}").result()
    assert receipt.status_code == 200, receipt.text
    events = gate.events(trace_id=hold.json()["trace_id"], event_type="ActionCall")
    assert [event["identity_method"] for event in events] == ["jwt", "jwt"]
