"""The process that delivers: beside whom its work goes on, when there is one, and what a reload makes of it."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ipc.process.roles import DELIVERER
from tests.integration.test_webhooks import (
    HOST,
    Hooked,
    config,
    digest,
    hooked_gateway,
    lines_of,
    rows,
    table,
)  # fmt: skip
from tests.support.gateway import Gateway, gateway, wait_for
from tests.support.upstream import Upstream
from tests.support.webhook_receiver import drips, floods, holds, sends, webhook_receiver

GARBAGE = (sends(b"\x00\xff not HTTP at all\r\n\r\n"), drips(b"HTTP/1.1 2", b"0"), floods(b"HTTP/1.1 200 "))


@pytest.fixture(scope="module")
def all_hooked(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hooked]:
    with hooked_gateway(tmp_path_factory.mktemp("hooked"), up, 7) as one:
        assert one.gate.children(DELIVERER) == [], "nobody is to be delivered to at the start"
        yield one


@pytest.fixture
def hooked(all_hooked: Hooked) -> Iterator[Hooked]:
    yield all_hooked
    all_hooked.follow()


def at(name: str, url: str, **more: str) -> str:
    """An endpoint that is tried once more, at once."""
    return table(name, **({"url": url, "max_retries": "1", "retry_backoff_seconds": "[0.01]"} | more))


def connected_to(gate: Gateway, port: int) -> list[str]:
    """Titles of the processes of a gateway that have a connection to this port."""
    return [
        " ".join(one.cmdline()).strip()
        for one in gate.children()
        if any(connection.raddr[1:] == (port,) for connection in one.net_connections("tcp"))
    ]


def test_beside_dead_slow_and_garbage_endpoints_a_healthy_one_hears_of_everything_and_calls_go_on(
    hooked: Hooked,
) -> None:
    gate, (url, receiver), (slow_url, slow) = hooked.gate, hooked.take(), hooked.take()
    slow.answer = holds()
    tables = [at("dead", f'"http://dead.{HOST}/in"', timeout_seconds="1"), at("slow", slow_url)]
    odd = {f"odd-{number}": answer for number, answer in enumerate(GARBAGE)}
    for name, answer in odd.items():
        odd_url, one = hooked.take()
        one.answer = answer
        tables.append(at(name, odd_url, timeout_seconds="1"))
    ended = len(lines_of(gate, "deliverer ended"))
    hooked.follow(table("healthy", url=url), *tables)
    ids = [digest(gate, str(number)) for number in range(12)]
    names = ("healthy", "dead", "slow", *odd)
    wait_for(lambda: set(ids) <= set(receiver.ids), "all that the healthy one is to hear")
    assert len(receiver.ids) == len(set(receiver.ids))
    wait_for(lambda: {row["endpoint"] for row in rows(gate, "outbox", *names)} == {"slow"}, "the end of all others")
    letters = rows(gate, "given_up", *names)
    assert {row["endpoint"] for row in letters} == {"dead", *odd}
    assert sorted(row["event_id"] for row in letters if row["endpoint"] == "dead") == sorted(ids)
    wait_for(lambda: gate.operator().get("/readyz").json()["status"] == "ready", "readiness")
    assert len(lines_of(gate, "deliverer ended")) == ended


def test_there_is_a_deliverer_exactly_while_there_is_somebody_to_deliver_to(hooked: Hooked, tmp_path: Path) -> None:
    """And a reload brings another one, with the endpoints and the secrets of now."""
    secret = tmp_path / "elsewhere" / "secret"
    secret.parent.mkdir()
    secret.touch(mode=0o600)
    secret.write_text("another secret of words")
    gate, (url, receiver) = hooked.gate, hooked.take()
    filed = table("pager", secret="", url=url).replace('secret = ""', f'secret_file = "{secret}"')
    assert gate.children(DELIVERER) == []
    digest(gate)
    assert gate.operator().get("/v1/admin/status").json()["webhooks"]["active"] is False
    assert hooked.follow(table("chat", url=url)) == ["webhooks"]
    chat = digest(gate)
    wait_for(lambda: receiver.ids == [chat], "the first message")
    first = gate.child(DELIVERER)
    assert hooked.follow(table("chat", url=url)) == []
    assert gate.child(DELIVERER) == first, "nothing has changed"
    assert hooked.follow(table("chat", url=url, disable="true"), filed) == ["webhooks"]
    assert not first.is_running()
    pager = digest(gate)
    wait_for(lambda: receiver.ids == [chat, pager], "the message of the other endpoint")
    wait_for(lambda: rows(gate, "outbox", "chat", "pager") == [], "the end of what has arrived")
    endpoints = gate.operator().get("/v1/admin/webhooks").json()["endpoints"]
    assert [one for one in endpoints if one["name"] in ("chat", "pager")] == [
        {"name": "chat", "state": "disabled", "waiting": 0, "given_up": 0},
        {"name": "pager", "state": "active", "waiting": 0, "given_up": 0},
    ]
    assert hooked.follow() == ["webhooks"]
    assert gate.children(DELIVERER) == []
    digest(gate)
    assert receiver.ids == [chat, pager]
    wait_for(lambda: gate.operator().get("/readyz").json()["status"] == "ready", "readiness")


def test_the_deliverer_alone_connects_to_an_endpoint_and_finishes_a_request_that_is_under_way_at_the_stop(
    tmp_path: Path, up: Upstream
) -> None:
    with webhook_receiver() as receiver, gateway(tmp_path, config(tmp_path, receiver, up, table("chat"))) as gate:
        receiver.answer = holds()
        event_id = digest(gate)
        wait_for(lambda: receiver.received, "a request")
        port = int(receiver.address.rpartition(":")[2])
        assert connected_to(gate, port) == ["gateway: deliverer"]
        assert [one.path for one in gate.child(DELIVERER).open_files() if str(gate.state) in one.path] == []
        stopper = threading.Thread(target=gate.stop)
        stopper.start()
        wait_for(lambda: not gate.children("front"), "the end of the front")
        receiver.let_go.set()
        stopper.join()
        assert gate.process.returncode == 0
        assert rows(gate, "given_up") == []
        assert event_id not in {row["event_id"] for row in rows(gate, "outbox")}
        assert receiver.ids.count(event_id) == 1


def test_an_operators_attempt_whose_deliverer_dies_is_answered_as_a_failure(hooked: Hooked) -> None:
    gate, (url, receiver) = hooked.gate, hooked.take()
    hooked.follow(table("tried", url=url))
    first = digest(gate)
    wait_for(lambda: receiver.ids == [first], "a deliverer that serves")
    receiver.answer = holds()
    answers: list[Any] = []
    operator = gate.operator()
    asks = threading.Thread(target=lambda: answers.append(operator.post("/v1/admin/webhooks/tried/test").json()))
    asks.start()
    wait_for(lambda: len(receiver.received) == 2, "the attempt")
    gate.child(DELIVERER).kill()
    asks.join(60)
    (answer,) = answers
    assert (answer["outcome"], answer["error"]) == ("failed", "the process that delivers is not there")
    assert answer["event_id"] == receiver.ids[1]
