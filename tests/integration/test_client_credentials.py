"""Tokens by client credentials in a whole gateway: who fetches them, and every way in which a server of tokens, or the
broker itself, can fail.

All tests share one gateway. Its actions have a kind, which says how their server of tokens answers, and where several
tests need the kind, a name of their own after it.
"""

import base64
import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from ipc.process.roles import BROKER
from tests.support.gateway import Gateway, gateway, wait_for
from tests.support.manifests import example, open_policy, patient, write_manifests
from tests.support.upstream import Upstream
from tests.support.worker_upstream import Upstream as TokenServer
from tests.support.worker_upstream import upstream

CLIENT_SECRET = "client secret+3f81"
POST = {"path": "/messages", "message": "hi"}
HANG = b"hang"


def json_answer(status: str, body: object, kind: str = "application/json") -> bytes:
    raw = json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(raw)}\r\nConnection: close\r\n\r\n"
    return head.encode() + raw


def token(value: str = "token-of-fine", **more: Any) -> dict[str, Any]:
    return {"access_token": value, "token_type": "Bearer"} | more


WRONG: dict[str, tuple[bytes, str]] = {
    "hanging": (HANG, "gave no whole answer within 10 s|no token came within"),
    "half": (b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{", "without a whole answer"),
    "garbage": (b"\x00\xff not HTTP\r\n\r\n", "without a whole answer"),
    "huge": (b"HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n" + b"x" * 9_000_000, "larger than 64 KiB"),
    "endless": (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + b" " * 9_000_000, "larger than 64 KiB"),
    "refusing": (json_answer("401 No", {"error": "invalid_client", "error_description": CLIENT_SECRET}),
                 "answered 401 invalid_client"),
    "odd-error": (json_answer("400 No", {"error": CLIENT_SECRET}), "answered 400"),
    "redirect": (b"HTTP/1.1 302 Found\r\nLocation: /fine?v=1\r\nContent-Length: 0\r\n\r\n", "answered 302"),
    "text": (json_answer("200 OK", token(), "text/plain"), "not of type application/json"),
    "no-token": (json_answer("200 OK", {"token_type": "Bearer"}), "not a token by RFC 6749"),
    "mac": (json_answer("200 OK", token(token_type="mac")), "not of type Bearer"),
    "line": (json_answer("200 OK", token("a-token\r\nX: y")), "not printable ASCII"),
    "long": (json_answer("200 OK", token("t" * 9000)), "not printable ASCII of at most 8000"),
    "short": (json_answer("200 OK", token("t")), "too short"),
    "over": (json_answer("200 OK", token(expires_in=0)), "whose time is over"),
    "float": (json_answer("200 OK", token(expires_in="soon")), "not a token by RFC 6749"),
}  # fmt: skip
RIGHT = {
    "fine": json_answer("200 OK", token(expires_in=3600, scope="a b")),
    "fresh": json_answer("200 OK", token("token-NUMBER")),
    "again": json_answer("200 OK", token("token-NUMBER")),
    "same": json_answer("200 OK", token("token-of-same")),
    "held": b"",
    "lower": json_answer("200 OK", token("token-of-lower", token_type="bearer"), "application/json; charset=utf-8"),
}


TWICE = ("again", "same", "held")
"""Kinds of actions whose calls may send a request once more."""
NAMES = [
    *WRONG, "hanging_killed", "fine_once", "fine_beside", "fine_refused", "fine_killed", "fine_stopped", "fresh",
    "lower", "again_once", "again_never", "again_stopped", "same", "held",
]  # fmt: skip


def kind(name: str) -> str:
    return name.partition("_")[0]


@dataclass
class Stage:
    """A gateway, the upstream of its actions, and the server that gives tokens."""

    gate: Gateway
    up: Upstream
    tokens: TokenServer
    may_renew: threading.Event
    """The server gives a second token to `held` once this is set."""
    idle: list[list[Any]]
    """The brokers that ran before any call, and after one that needs no token."""

    def asked(self, name: str) -> list[bytes]:
        """Requests for tokens of this action."""
        return [one for one in self.tokens.requests if one.startswith(f"POST /{name}?".encode())]

    def event_of(self, session_id: str) -> dict[str, Any]:
        (event,) = self.gate.events(session_id=session_id, event_type="ActionCall")
        return event


def speaks(servers: list[TokenServer], may_renew: threading.Event) -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        name = servers[0].requests[-1].split(b" ")[1].decode().strip("/").partition("?")[0]
        number = sum(one.startswith(f"POST /{name}?".encode()) for one in servers[0].requests)
        data = RIGHT[kind(name)] if kind(name) in RIGHT else WRONG[kind(name)][0]
        data = data.replace(b"NUMBER", b"%06d" % number)
        if name == "held":
            assert number == 1 or may_renew.wait(300)
            data = json_answer("200 OK", token(f"token-of-held-{number}"))
        if data is HANG:
            servers[0].stop.wait(300)
        else:
            connection.sendall(data)

    return answer


def with_token(name: str) -> dict[str, Any]:
    way = {"token_url": f"http://login.gateway.test/{name}?v=1", "client_id": "client:7", "scopes": ["read", "write"],
           "audience": "https://api"}  # fmt: skip
    secrets = [{"name": "client", "inject": {"oauth2_client_credentials": way}}]
    limits = {"timeout_seconds": 4.0 if name == "hanging" else 60.0, "max_io_calls": 2 if kind(name) in TWICE else 1}
    return example("http_post", action_id=name, secrets=secrets, resource_limits=limits)


@pytest.fixture(scope="module")
def at(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder: Path = tmp_path_factory.mktemp("tokens")
    top = patient(folder / "actions")
    write_manifests(folder / "actions", *map(with_token, NAMES))
    policy = open_policy(folder / "policy", *NAMES)
    secrets = folder / "secrets.json"
    secrets.touch(mode=0o600)
    secrets.write_text(json.dumps({"client": CLIENT_SECRET, "upstream_token": "t" * 20, "bank_token": "b" * 20}))
    servers: list[TokenServer] = []
    may_renew = threading.Event()
    with upstream(speaks(servers, may_renew)) as tokens:
        servers.append(tokens)
        places = f'"upstream.gateway.test" = "{up.address}", "login.gateway.test" = "{tokens.address}"'
        text = f'{top}policy_dir = "{policy}"\n[egress]\nunsafe_resolve = {{{places}}}\n[secrets]\nfile = "{secrets}"\n'
        with gateway(folder, text) as running:
            idle = [running.children(BROKER)]
            assert running.agent().execute("http_post", POST).status_code == 200
            yield Stage(running, up, tokens, may_renew, [*idle, running.children(BROKER)])
            assert running.stop() == 0


def test_a_call_has_a_token_that_was_fetched_once_and_its_client_secret_is_nowhere_else(at: Stage) -> None:
    agent = at.gate.agent()
    assert at.idle == [[], []], "no call needs it yet"
    for _ in range(3):
        assert agent.execute("fine_once", POST).status_code == 200
        assert at.up.seen[-1].headers["authorization"] == "Bearer token-of-fine"
    assert agent.execute("lower", POST).status_code == 200
    assert at.up.seen[-1].headers["authorization"] == "Bearer token-of-lower"
    (asked,) = at.asked("fine_once")
    head, _, body = asked.partition(b"\r\n\r\n")
    fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    assert base64.b64decode(fields["authorization"].removeprefix("Basic ")) == b"client%3A7:client+secret%2B3f81"
    assert parse_qs(body.decode()) == {
        "grant_type": ["client_credentials"], "scope": ["read write"], "audience": ["https://api"]
    }  # fmt: skip
    found = [one for one in (at.gate.log, *at.gate.state.rglob("*")) if one.is_file()]
    for value in (b"token-of-fine", CLIENT_SECRET.encode()):
        assert [str(one) for one in found if value in one.read_bytes()] == []


def test_each_wrong_answer_of_a_token_server_fails_the_call_by_name_before_anything_is_sent(at: Stage) -> None:
    agent, sent = at.gate.agent(max_calls=1), len(at.up.seen)
    for name, (_, words) in WRONG.items():
        one = at.gate.agent(max_calls=1)
        answer = one.execute(name, POST)
        assert (name, answer.status_code, answer.json()) == (name, 502, {"error": "action_execution_failed"})
        event = at.event_of(one.session_id)
        assert any(word in event["reason"] for word in words.split("|")), (name, event["reason"])
        assert "intent_id" not in event
        assert CLIENT_SECRET not in json.dumps(event)
        assert one.execute("text_digest", {"text": "x"}).status_code == 200, "the call was given back to the budget"
    assert len(at.up.seen) == sent
    assert agent.execute("fine_beside", POST).status_code == 200, "the broker serves others"


def test_a_call_after_an_upstreams_401_has_another_token_where_the_server_gives_one(at: Stage) -> None:
    agent = at.gate.agent()
    assert agent.execute("fresh", POST).status_code == 200
    first = at.up.seen[-1].headers["authorization"]
    assert agent.execute("fresh", POST).status_code == 200
    assert at.up.seen[-1].headers["authorization"] == first
    agent.execute("fresh", {"path": "/status/401", "message": "hi"})
    assert len(at.asked("fresh")) == 1
    assert agent.execute("fresh", POST).status_code == 200
    assert at.up.seen[-1].headers["authorization"] != first
    agent.execute("fine_refused", {"path": "/status/401", "message": "hi"})
    assert agent.execute("fine_refused", POST).status_code == 200, "a server that gives the same token again"
    assert len(at.asked("fine_refused")) == 2


def test_a_call_whose_token_is_refused_is_sent_once_more_with_another_and_is_verified(at: Stage) -> None:
    agent, before = at.gate.agent(max_calls=2), len(at.up.seen)
    answer = agent.execute("again_once", {"path": "/bearer/02", "message": "hi"})
    assert (answer.status_code, len(at.asked("again_once"))) == (200, 2)
    sent = [(one.path, one.headers["authorization"], one.body) for one in at.up.seen[before:]]
    path, body = "/bearer/02", b'{"message":"hi"}'
    assert sent == [(path, "Bearer token-000001", body), (path, "Bearer token-000002", body)]
    event = at.event_of(agent.session_id)
    assert (event["decision"], event["verification_outcome"]) == ("allow", "verified")
    assert agent.execute("again_once", POST).status_code == 200, "it was one call of the budget"
    assert (at.up.seen[-1].headers["authorization"], len(at.asked("again_once"))) == ("Bearer token-000002", 2)
    found = [one for one in (at.gate.log, *at.gate.state.rglob("*")) if one.is_file()]
    assert [str(one) for one in found if b"token-00000" in one.read_bytes()] == []


def test_a_call_whose_second_token_is_refused_too_has_that_answer(at: Stage) -> None:
    agent, before = at.gate.agent(), len(at.up.seen)
    refused = agent.execute("again_never", {"path": "/bearer/never", "message": "hi"})
    assert len(at.up.seen) == before + 2
    assert at.event_of(agent.session_id)["verification_outcome"] == "verification_failed"
    assert refused.json()["output"]["status"] == 401
    assert agent.execute("again_never", POST).status_code == 200
    assert at.up.seen[-1].headers["authorization"] == "Bearer token-000002"
    assert len(at.asked("again_never")) == 2


def test_a_call_is_sent_once_where_the_server_gives_the_refused_token_again(at: Stage) -> None:
    agent, before = at.gate.agent(), len(at.up.seen)
    agent.execute("same", {"path": "/bearer/never", "message": "hi"})
    assert (len(at.up.seen), len(at.asked("same"))) == (before + 1, 2)
    assert at.event_of(agent.session_id)["verification_outcome"] == "verification_failed"
    assert agent.execute("same", POST).status_code == 200


def test_a_broker_that_hangs_while_a_call_asks_for_another_token_leaves_it_the_refusal(at: Stage) -> None:
    agent = at.gate.agent()
    assert agent.execute("again_stopped", POST).status_code == 200
    first, sent, before = at.gate.child(BROKER).pid, len(at.up.seen), failures(at)
    with ThreadPoolExecutor(1) as pool:
        one = at.gate.agent()
        answer = pool.submit(one.execute, "again_stopped", {"path": "/wait/refused", "message": "hi"})
        wait_for(lambda: len(at.up.seen) == sent + 1, "the request")
        os.kill(first, signal.SIGSTOP)
        at.up.refused.add("/wait/refused")
        at.up.held("refused").set()
        answer.result(120)
    assert at.event_of(one.session_id)["verification_outcome"] == "verification_failed"
    assert len(at.up.seen) == sent + 1
    wait_for(lambda: failures(at) > before, "the log line")
    broker_after(at, first)
    assert agent.execute("again_stopped", POST).status_code == 200


def failures(at: Stage) -> int:
    """How often a call has got no other token."""
    return sum(line["message"] == "no other token for a call" for line in at.gate.lines())


def test_shared_calls_go_on_beside_one_that_waits_for_another_token(at: Stage) -> None:
    before = len(at.up.seen)
    with ThreadPoolExecutor(2) as pool:
        beside = pool.submit(at.gate.agent().execute, "held", {"path": "/wait/beside", "message": "hi"})
        wait_for(lambda: len(at.up.seen) == before + 1, "the call beside it")
        waiting = pool.submit(at.gate.agent().execute, "held", {"path": "/bearer/-2", "message": "hi"})
        wait_for(lambda: len(at.asked("held")) == 2, "the question for another token")
        at.up.held("beside").set()
        assert beside.result(60).status_code == 200
        assert not waiting.done()
        at.may_renew.set()
        assert waiting.result(60).status_code == 200
    assert [one.headers["authorization"] for one in at.up.seen[-2:]] == [
        "Bearer token-of-held-1", "Bearer token-of-held-2",
    ]  # fmt: skip


def broker_after(at: Stage, pid: int) -> int:
    """The broker that follows this one, once it serves."""
    found = wait_for(lambda: [one.pid for one in at.gate.children(BROKER) if one.pid != pid], "another broker")
    return int(found[0])


@pytest.mark.parametrize("name", ["fine_killed", "fine_stopped"])
def test_a_broker_that_dies_or_hangs_in_the_middle_fails_its_calls_by_name_and_is_replaced(
    at: Stage, name: str
) -> None:
    agent = at.gate.agent()
    assert agent.execute(name, POST).status_code == 200
    first, sent = at.gate.child(BROKER).pid, len(at.up.seen)
    if name == "fine_stopped":
        os.kill(first, signal.SIGSTOP)
        answer = agent.execute(name, POST)
        assert "the broker did not answer within" in at.gate.events(decision="error")[0]["reason"]
    else:
        answer = killed_in_the_middle(at, first)
        assert "the broker ended" in at.gate.events(decision="error")[0]["reason"]
    assert (answer.status_code, answer.json()) == (502, {"error": "action_execution_failed"})
    assert len(at.up.seen) == sent
    broker_after(at, first)
    assert agent.execute(name, POST).status_code == 200
    wait_for(at.gate.is_ready, "readiness")


def killed_in_the_middle(at: Stage, pid: int) -> Any:
    """The answer of a call whose broker is killed while a token server keeps it waiting."""
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(at.gate.agent().execute, "hanging_killed", POST)
        wait_for(lambda: at.asked("hanging_killed"), "the question of the broker")
        os.kill(pid, signal.SIGKILL)
        return answer.result(60)
