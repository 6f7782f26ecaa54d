"""Upstreams that repeat what they are sent, and a gateway that holds the secret: nothing that the agent or evidence
gets has it."""

import base64
import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.gateway import Gateway, config_for, gateway
from tests.support.manifests import example, open_policy, patient, write_manifests
from tests.support.worker_upstream import Upstream, upstream

VALUE = 'canary/7f31"a+c2'
RAW = VALUE.encode()


def answer_of(body: bytes, headers: str = "") -> bytes:
    return f"HTTP/1.1 200 OK\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body


def in_chunks(body: bytes) -> bytes:
    chunks = b"".join(b"1\r\n%c\r\n" % one for one in body)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"


ECHO = json.dumps({"headers": {"Authorization": f"Bearer {VALUE}"}}).encode()
ANSWERS: dict[str, bytes] = {
    "body": answer_of(ECHO),
    "chunks": in_chunks(ECHO),
    "header": answer_of(b"{}", f"X-Seen: {VALUE}\r\n"),
    "redirect": answer_of(b"", f"Location: https://elsewhere.test/?t={quote(VALUE)}\r\n").replace(b"200", b"302", 1),
    "server-error": answer_of(ECHO).replace(b"200 OK", b"500 Broken"),
    "base64": answer_of(json.dumps({"seen": base64.b64encode(b"Bearer " + RAW).decode()}).encode()),
    "compressed": answer_of(b"\x1f\x8b\x08", "Content-Encoding: gzip\r\n"),
}


@dataclass
class Stage:
    """A gateway with the secret, and the upstream that knows it too."""

    gate: Gateway
    up: Upstream


def speaks(upstreams: list[Upstream]) -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        name = upstreams[0].requests[-1].split(b" ")[1].decode().removeprefix("/")
        connection.sendall(ANSWERS.get(name, answer_of(b"{}")))

    return answer


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder: Path = tmp_path_factory.mktemp("reflecting")
    top = patient(folder / "actions")
    changed: dict[str, Any] = {
        "secrets": [{
            "name": "token", "domains": ["upstream.gateway.test"],
            "inject": {"header": "Authorization", "format": "Bearer {value}"},
        }],
    }  # fmt: skip
    write_manifests(
        folder / "actions",
        example("http_post", action_id="bound", **changed),
        example("http_post", action_id="told", expose_provider_error=True, **changed),
    )
    policy = open_policy(folder / "policy", "bound", "told")
    secrets = folder / "secrets.json"
    secrets.touch(mode=0o600)
    secrets.write_text(json.dumps({"token": VALUE, "upstream_token": VALUE, "bank_token": "of-a-bank"}))
    upstreams: list[Upstream] = []
    with upstream(speaks(upstreams)) as up:
        upstreams.append(up)
        config = config_for(up.address, f'{top}policy_dir = "{policy}"\n') + f'[secrets]\nfile = "{secrets}"\n'
        with gateway(folder, config) as running:
            yield Stage(running, up)


@pytest.mark.parametrize("action", ["bound", "told"])
@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_that_repeats_the_secret_fails_the_call_and_is_seen_by_nobody(
    at: Stage, name: str, action: str
) -> None:
    agent = at.gate.agent()
    answer = agent.execute(action, {"path": name, "message": "m"})
    assert answer.status_code == 502, answer.text
    assert VALUE in at.up.requests[-1].decode(), "it was sent"
    assert answer.json()["error"] == "action_execution_failed"
    (event,) = at.gate.events(session_id=agent.session_id, event_type="ActionCall")
    receipt = agent.get(f"/v1/receipts/{event['receipt_id']}").json()
    words = "can't be searched" if name == "compressed" else "the upstream's answer repeats the secret token"
    assert event["reason"].startswith("host_io: denied: ")
    assert words in event["reason"]
    assert receipt["failure_class"] == "provider_error"
    assert receipt["signature_status"] == "verified"
    for text in (answer.text, json.dumps(event), json.dumps(receipt), repr(answer.headers)):
        assert not holds(text.encode())


def test_no_file_of_the_gateway_has_what_an_upstream_repeated(at: Stage) -> None:
    agent = at.gate.agent()
    for name in ANSWERS:
        agent.execute("told", {"path": name, "message": "m"})
    files = [at.gate.log, *(one for one in at.gate.state.rglob("*") if one.is_file())]
    assert len(files) > 5
    assert [str(one) for one in files if holds(one.read_bytes())] == []


def holds(data: bytes) -> bool:
    return RAW in data or b"canary" in data or base64.b64encode(RAW)[:12] in data or RAW.hex().encode() in data
