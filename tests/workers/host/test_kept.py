"""Connections that a worker keeps: which calls share one, for how long, and how many wait."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.configuration.secret_ways import AsHeader
from ipc.plan import Plan, SecretUse
from tests.support.http_host import URL, Client, request
from tests.support.worker_plans import http_plan
from tests.support.worker_proxy import letting_through, proxied_plan
from tests.support.worker_upstream import Upstream, certificate, lasting, upstream
from workers.host.connection import make_tls
from workers.host.http import GuestRequest
from workers.host.kept import AGE_SECONDS, IDLE_SECONDS, MAX_KEPT, KeptConnections
from workers.host.urls import parse_url

HOST = "upstream.test"


class Worker:
    """The connections of one worker, which outlive a call, and a clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.kept = KeptConnections(lambda: self.now)

    def call(self, plan: Plan, wanted: GuestRequest | None = None, **changes: Any) -> int:
        """Status of the answer to one request of a call of its own."""
        return Client(plan, kept=self.kept, **changes).send(wanted or request()).status


@pytest.fixture
def worker() -> Iterator[Worker]:
    made = Worker()
    yield made
    made.kept.close()


@pytest.fixture
def up() -> Iterator[Upstream]:
    with upstream(lasting(), then=repeat(lasting())) as up:
        yield up


def post(**changes: Any) -> GuestRequest:
    return request(method="POST", body="{}", **changes)


@pytest.mark.parametrize("wanted", [request(), post()], ids=["GET", "POST"])
def test_calls_of_one_kind_share_a_connection_and_each_is_observed_once(
    worker: Worker, up: Upstream, wanted: GuestRequest
) -> None:
    for _ in range(3):
        client = Client(http_plan(address=up.address), kept=worker.kept)
        client.send(wanted)
        assert (client.meter.io_calls, len(client.meter.observations)) == (1, 1)
    assert (up.connections, len(up.requests)) == (1, 3)
    assert not any(b"connection:" in one for one in up.requests)


def test_calls_of_one_kind_share_a_handshake(worker: Worker, tmp_path: Path) -> None:
    path, context = certificate(tmp_path, HOST)
    with upstream(lasting(), context, repeat(lasting())) as up:
        for _ in range(3):
            worker.call(http_plan(address=up.address), post(url=f"https://{HOST}/"), tls=make_tls(str(path)))
    assert (up.handshakes, len(up.requests)) == (1, 3)


def test_each_call_through_the_egress_proxy_asks_it_for_a_tunnel(worker: Worker, up: Upstream) -> None:
    with upstream(letting_through(up.address)) as proxy:
        for _ in range(3):
            worker.call(proxied_plan(proxy.address))
        assert (proxy.connections, up.connections, len(up.requests)) == (3, 3, 3)
        worker.call(http_plan(address=up.address))
        assert up.connections == 4, "a direct call does not go through a tunnel"


TOKEN = SecretUse("token", way=AsHeader("X-Token"), domains=(HOST,))


def other(plan: Plan, **egress: Any) -> Plan:
    return msgspec.structs.replace(plan, egress=msgspec.structs.replace(plan.egress, **egress))


@contextmanager
def known(worker: Worker, up: Upstream) -> Iterator[Plan]:
    """A plan with a secret, for whose calls a connection waits when the block starts and when it ends."""
    plan = http_plan(address=up.address, secrets=(TOKEN,))
    worker.call(plan, secrets={"token": "first-value"})
    yield plan
    worker.call(plan, secrets={"token": "first-value"})


@pytest.mark.parametrize(
    "changes",
    [
        {"action_id": "another"}, {"action_version": "2.0.0"}, {"principal": "another"}, {"allowed_methods": ("GET",)},
        {"secrets": {"token": "other-value"}}, {"secrets": {"token": "first-value", "more": "second-value"}},
        {"headers": (("Authorization", "Negotiate YII="),)}, {"url": f"http://{HOST}:8080/"},
    ],
    ids=["action", "version", "principal", "egress", "rotated secret", "one secret more", "authorization", "port"],
)  # fmt: skip
def test_a_call_of_another_kind_has_another_connection(
    worker: Worker, up: Upstream, changes: dict[str, Any]
) -> None:  # fmt: skip
    fields = set(Plan.__struct_fields__) - {"secrets"}
    with known(worker, up) as plan:
        planned = msgspec.structs.replace(plan, **{name: changes[name] for name in fields & changes.keys()})
        if "allowed_methods" in changes:
            planned = other(plan, allowed_methods=changes["allowed_methods"])
        wanted = request(changes.get("url", URL), headers=changes.get("headers", ()))
        worker.call(planned, wanted, secrets=changes.get("secrets", {"token": "first-value"}))
        assert up.connections == 2
    assert up.connections == 2


def test_tls_is_not_spoken_over_a_connection_without(worker: Worker, up: Upstream) -> None:
    worker.call(http_plan(address=up.address))
    kind, _ = Client(http_plan(address=up.address), kept=worker.kept, seconds=1).refused(request(f"https://{HOST}/"))
    assert kind in ("unavailable", "timeout")
    assert up.connections == 2


def test_connections_are_kept_under_a_hash_that_differs_between_workers() -> None:
    plan, secrets = http_plan(), {"token": "first-value"}
    keys = [KeptConnections().key(plan, parse_url(URL), secrets, ()) for _ in range(2)]
    assert keys[0] != keys[1]
    assert b"first-value" not in keys[0]


@pytest.mark.parametrize(
    "wanted",
    [request(method="HEAD"), request(body="x")],
    ids=["an answer that may be wrong about its body", "a body that may be read as a request"],
)
def test_a_request_whose_end_may_be_misread_has_a_connection_of_its_own(
    worker: Worker, up: Upstream, wanted: GuestRequest
) -> None:
    worker.call(http_plan(address=up.address))
    worker.call(http_plan(address=up.address), wanted)
    assert up.connections == 2
    assert b"\r\nconnection: close\r\n" in up.requests[1]


def test_a_worker_for_one_call_keeps_nothing(worker: Worker, up: Upstream) -> None:
    for _ in range(2):
        worker.call(http_plan(address=up.address, isolation="process"))
    assert up.connections == 2
    assert all(b"\r\nconnection: close\r\n" in one for one in up.requests)


def test_a_connection_that_has_waited_too_long_is_not_used(worker: Worker, up: Upstream) -> None:
    plan = http_plan(address=up.address)
    worker.call(plan)
    worker.now += IDLE_SECONDS - 0.1
    worker.call(plan)
    assert up.connections == 1
    worker.now += IDLE_SECONDS
    worker.call(plan)
    assert up.connections == 2


def test_a_connection_that_is_old_is_not_used_however_busy_it_was(worker: Worker, up: Upstream) -> None:
    for _ in range(int(AGE_SECONDS) + 1):
        worker.call(http_plan(address=up.address))
        worker.now += 1
    assert up.connections == 2


def test_a_request_that_is_sent_once_uses_a_connection_that_has_just_served(worker: Worker, up: Upstream) -> None:
    plan = http_plan(address=up.address)
    worker.call(plan)
    worker.now += 1.1
    worker.call(plan, post())
    assert up.connections == 2
    worker.now += 0.9
    worker.call(plan, post())
    assert up.connections == 2


def test_an_upstream_that_says_when_it_ends_a_connection_is_believed(worker: Worker) -> None:
    with upstream(lasting(more=b"Keep-Alive: timeout=2, max=9\r\n"), then=repeat(lasting())) as up:
        worker.call(http_plan(address=up.address))
        worker.now += 1.1
        worker.call(http_plan(address=up.address))
    assert up.connections == 2


def test_few_connections_wait_and_the_one_that_waited_longest_makes_room(worker: Worker, up: Upstream) -> None:
    plans = [http_plan(address=up.address, action_id=f"a{number}") for number in range(MAX_KEPT + 1)]
    for plan in plans:
        worker.call(plan)
    for plan in reversed(plans[1:]):
        worker.call(plan)
    assert up.connections == MAX_KEPT + 1
    worker.call(plans[0])
    assert up.connections == MAX_KEPT + 2


def test_a_connection_whose_time_is_over_is_closed_without_another_call(worker: Worker) -> None:
    ended = threading.Event()

    def waits(connection: socket.socket) -> None:
        lasting()(connection)
        if not connection.recv(1):
            ended.set()

    with upstream(waits) as up:
        worker.call(http_plan(address=up.address))
        worker.kept.close_old()
        assert not ended.is_set()
        worker.now += IDLE_SECONDS
        worker.kept.close_old()
        assert ended.wait(60)


def test_a_connection_serves_one_call_at_a_time(worker: Worker) -> None:
    together = threading.Barrier(3)

    def waits(connection: socket.socket) -> None:
        together.wait(60)
        lasting()(connection)

    with upstream(waits, then=repeat(lasting())) as up:
        plan = http_plan(address=up.address)
        calls = [threading.Thread(target=worker.call, args=(plan,)) for _ in range(3)]
        for one in calls:
            one.start()
        for one in calls:
            one.join(60)
        for _ in range(3):
            worker.call(plan)
        assert (up.connections, len(up.requests)) == (3, 6)


def test_an_answer_over_a_kept_connection_is_confirmed_at_once(worker: Worker, up: Upstream) -> None:
    """An upstream may not send the body before the packet with the head is confirmed."""
    for _ in range(5):
        worker.call(http_plan(address=up.address))
    (way,) = worker.kept._waiting
    assert isinstance(way.stream, socket.socket)
    assert way.stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK) == 1


def test_an_answer_that_was_refused_ends_its_connection(worker: Worker) -> None:
    with upstream(lasting(b"the secret is first-value"), then=repeat(lasting())) as up:
        plan = http_plan(address=up.address, secrets=(TOKEN,))
        client = Client(plan, kept=worker.kept, secrets={"token": "first-value"})
        assert client.refused(request())[0] == "denied"
        assert client.refused(request())[0] == "denied", "on another connection, whose first answer it is"
        assert up.connections == 2
