"""The process that delivers: beside whom its work goes on, when there is one, and what a reload makes of it."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ipc.process.roles import DELIVERER
from tests.integration.test_webhooks import config, digest, lines_of, rows, table
from tests.support.gateway import Gateway, gateway, wait_for
from tests.support.upstream import Upstream
from tests.support.webhook_receiver import Receiver, drips, floods, holds, sends, webhook_receiver

GARBAGE = (sends(b"\x00\xff not HTTP at all\r\n\r\n"), drips(b"HTTP/1.1 2", b"0"), floods(b"HTTP/1.1 200 "))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with webhook_receiver() as one:
        yield one


def at(name: str, host: str, **more: str) -> str:
    """An endpoint that is tried once more, at once."""
    lines = {"url": f'"http://{host}/in"', "max_retries": "1", "retry_backoff_seconds": "[0.01]"} | more
    return table(name, **lines)


def reload(gate: Gateway, text: str) -> list[str]:
    """Have another configuration followed; names of what came into force."""
    (gate.state.parent / "gateway.toml").write_text(text)
    answer = gate.operator().post("/v1/admin/reload")
    assert answer.status_code == 200, answer.text
    return list(answer.json()["changed"])


def connected_to(gate: Gateway, port: int) -> list[str]:
    """Titles of the processes of a gateway that have a connection to this port."""
    return [
        " ".join(one.cmdline()).strip()
        for one in gate.children()
        if any(connection.raddr[1:] == (port,) for connection in one.net_connections("tcp"))
    ]


def test_beside_dead_slow_and_garbage_endpoints_a_healthy_one_hears_of_everything_and_calls_go_on(
    tmp_path: Path, receiver: Receiver, up: Upstream
) -> None:
    with ExitStack() as stack:
        slow, *odd = (stack.enter_context(webhook_receiver()) for _ in range(1 + len(GARBAGE)))
        slow.answer = holds()
        for one, answer in zip(odd, GARBAGE, strict=True):
            one.answer = answer
        places = {"slow.gateway.test": slow.address, "dead.gateway.test": "127.0.0.1:1"}
        places |= {f"odd-{number}.gateway.test": one.address for number, one in enumerate(odd)}
        tables = [at(name.partition(".")[0], name, timeout_seconds="1") for name in places]
        tables[0] = at("slow", "slow.gateway.test")
        text = config(tmp_path, receiver, up, table("chat"), *tables)
        names = "".join(f', "{name}" = "{address}"' for name, address in places.items())
        text = text.replace(f'= "{receiver.address}"', f'= "{receiver.address}"{names}')
        with gateway(tmp_path, text) as gate:
            ids = [digest(gate, str(number)) for number in range(12)]
            wait_for(lambda: set(ids) <= set(receiver.ids), "all that the healthy one is to hear")
            assert len(receiver.ids) == len(set(receiver.ids))
            wait_for(lambda: {row["endpoint"] for row in rows(gate, "outbox")} == {"slow"}, "the end of all others")
            letters = rows(gate, "given_up")
            gone = {"dead", *(f"odd-{number}" for number in range(len(odd)))}
            assert {row["endpoint"] for row in letters} == gone
            assert sorted(row["event_id"] for row in letters if row["endpoint"] == "dead") == sorted(ids)
            assert gate.operator().get("/readyz").json()["status"] == "ready"
            assert lines_of(gate, "deliverer ended") == []
            assert gate.stop() == 0


def test_there_is_a_deliverer_exactly_while_there_is_somebody_to_deliver_to(
    tmp_path: Path, receiver: Receiver, up: Upstream
) -> None:
    """And a reload brings another one, with the endpoints and the secrets of now."""
    secret = tmp_path / "elsewhere" / "secret"
    secret.parent.mkdir()
    secret.touch(mode=0o600)
    secret.write_text("another secret of words")
    filed = table("pager", secret="").replace('secret = ""', f'secret_file = "{secret}"')
    nobody = config(tmp_path, receiver, up)
    with gateway(tmp_path, nobody) as gate:
        assert gate.children(DELIVERER) == []
        digest(gate)
        assert gate.operator().get("/v1/admin/status").json()["webhooks"]["active"] is False
        assert reload(gate, config(tmp_path, receiver, up, table("chat"))) == ["webhooks"]
        chat = digest(gate)
        wait_for(lambda: receiver.ids == [chat], "the first message")
        first = gate.child(DELIVERER)
        assert reload(gate, config(tmp_path, receiver, up, table("chat"))) == []
        assert gate.child(DELIVERER) == first, "nothing has changed"
        assert reload(gate, config(tmp_path, receiver, up, table("chat", disable="true"), filed)) == ["webhooks"]
        assert not first.is_running()
        pager = digest(gate)
        wait_for(lambda: receiver.ids == [chat, pager], "the message of the other endpoint")
        wait_for(lambda: rows(gate, "outbox") == [], "the end of what has arrived")
        assert gate.operator().get("/v1/admin/webhooks").json()["endpoints"] == [
            {"name": "chat", "state": "disabled", "waiting": 0, "given_up": 0},
            {"name": "pager", "state": "active", "waiting": 0, "given_up": 0},
        ]
        assert reload(gate, nobody) == ["webhooks"]
        assert gate.children(DELIVERER) == []
        digest(gate)
        assert receiver.ids == [chat, pager]
        assert gate.operator().get("/readyz").json()["status"] == "ready"
        assert gate.stop() == 0


def test_the_deliverer_alone_connects_to_an_endpoint_and_finishes_a_request_that_is_under_way_at_the_stop(
    tmp_path: Path, receiver: Receiver, up: Upstream
) -> None:
    receiver.answer = holds()
    with gateway(tmp_path, config(tmp_path, receiver, up, table("chat"))) as gate:
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


def test_an_operators_attempt_whose_deliverer_dies_is_answered_as_a_failure(
    tmp_path: Path, receiver: Receiver, up: Upstream
) -> None:
    receiver.answer = holds()
    with gateway(tmp_path, config(tmp_path, receiver, up, table("chat"))) as gate:
        answers: list[Any] = []
        operator = gate.operator()
        asks = threading.Thread(target=lambda: answers.append(operator.post("/v1/admin/webhooks/chat/test").json()))
        asks.start()
        wait_for(lambda: receiver.received, "the attempt")
        gate.child(DELIVERER).kill()
        asks.join(60)
        (answer,) = answers
        assert (answer["outcome"], answer["error"]) == ("failed", "the process that delivers is not there")
        assert answer["event_id"] == receiver.ids[0]
