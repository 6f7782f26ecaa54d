"""A whole gateway that fetches the keys of issuers: over TLS of a private network, and each answer that is no
key set."""

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from ipc.process.roles import BROKER
from tests.support.authority import Authority
from tests.support.gateway import Gateway, Prover, wait_for
from tests.support.hosts_file import can_change_hosts, gateway_with_hosts
from tests.support.manifests import open_policy, patient
from tests.support.worker_upstream import Upstream, upstream

pytestmark = pytest.mark.skipif(not can_change_hosts(), reason="needs a mount namespace, for a hosts file of its own")

HOST, WRONG_HOST, AUDIENCE = "login.gateway.test", "wrong.gateway.test", "https://gate.example"
KEYS = {kid: ec.generate_private_key(ec.SECP256R1()) for kid in ("first", "next", "never")}


def key_set(*kids: str, **more: str) -> bytes:
    to_jwk = jwt.algorithms.ECAlgorithm.to_jwk
    return json.dumps(
        {"keys": [to_jwk(KEYS[kid].public_key(), as_dict=True) | {"kid": kid} | more for kid in kids]}
    ).encode()


def answer(body: bytes, status: str = "200 OK", more: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{more}Content-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body


FIRST = answer(key_set("first"))
WRONG = {
    "half": FIRST[:-9], "garbage": b"\x00\xff not HTTP\r\n\r\n", "failing": answer(key_set("first"), "500 No"),
    "huge": answer(b" " * 9_000_000 + key_set("first")), "hanging": b"",
    "elsewhere": answer(key_set("first"), "302 Found", f"Location: https://{HOST}/fine\r\n"),
    "words": answer(b"<html>"), "private": answer(key_set("first", d="AQAB")),
    "secret": answer(key_set("first", k="a")), "none": answer(b'{"keys": []}'),
}  # fmt: skip
ALONE = ("plain-authority", "wrong-name")
"""Rows whose address is of another host than HOST."""


@dataclass
class Site:
    gate: Gateway
    up: Upstream
    says: dict[str, bytes]
    """Path -> answer."""

    def ask(self, name: str, kid: str = "first") -> tuple[int, Any]:
        """(status, error) of a request for a lease that the rate of callers without identity lets through."""
        through: httpx.Response = wait_for(
            lambda: answer if (answer := self._ask(name, kid)).status_code != 429 else None, "room for one request more"
        )
        return through.status_code, through.json().get("error")

    def _ask(self, name: str, kid: str) -> httpx.Response:
        claims = {"iss": f"https://{name}", "aud": AUDIENCE, "sub": "alice", "exp": int(time.time()) + 300}
        shown = jwt.encode(claims, KEYS[kid], "ES256", {"kid": kid})
        body = {"scopes": ["tools:call"], "dpop_jwk": Prover().jwk}
        with self.gate.over("client_socket") as http:
            return http.post("/v1/leases", json=body, headers={"authorization": f"Bearer {shown}"}, timeout=90)

    def asked(self, name: str) -> int:
        return sum(one.startswith(f"GET /{name} ".encode()) for one in self.up.requests)


def row(name: str, port: str) -> str:
    host = {"wrong-name": WRONG_HOST, "plain-authority": "localhost.gateway.test"}.get(name, HOST)
    return f"""[[identity.issuers]]
name = "{name}"
issuer = "https://{name}"
audience = "{AUDIENCE}"
jwks_url = "https://{host}:{port}/{name}"
algorithms = ["ES256"]
principal = "{name}:{{sub}}"
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder: Path = tmp_path_factory.mktemp("issuers")
    authority = Authority(folder)
    says = {"fine": FIRST, "rotating": FIRST, "outage": FIRST, "broker": FIRST} | WRONG
    servers: list[Upstream] = []

    def speak(connection: socket.socket) -> None:
        name = servers[0].requests[-1].split(b" ")[1].decode().strip("/")
        if says[name]:
            connection.sendall(says[name])
        else:
            servers[0].stop.wait(300)

    with upstream(speak, authority.server(HOST)) as up:
        servers.append(up)
        port = up.address.rpartition(":")[2]
        (folder / "hosts").write_text(f"127.0.0.1 {HOST} {WRONG_HOST} localhost.gateway.test\n")
        top = patient(folder / "actions") + f'policy_dir = "{open_policy(folder / "policy")}"\n'
        network = f"""[[egress.networks]]
name = "login"
domains = ["{HOST}", "{WRONG_HOST}"]
ranges = ["127.0.0.0/8"]
ports = [{port}]
ca_file = "{authority.file}"
"""
        identity = f'[identity]\nprovider = "peercred"\nedge_uids = [{os.geteuid()}]\n'
        rows = "".join(row(name, port) for name in (*says, *ALONE))
        with gateway_with_hosts(folder, top + network + identity + rows) as running:
            yield Site(running, up, says)


GIVEN, UNAVAILABLE, FORBIDDEN = (200, None), (503, "identity_provider_unavailable"), (403, "identity_forbidden")


def test_keys_are_fetched_over_tls_once_and_known_ones_are_not_asked_for_again(site: Site) -> None:
    for _ in range(3):
        assert site.ask("fine") == GIVEN
    assert site.asked("fine") == 1
    (request,) = [one for one in site.up.requests if one.startswith(b"GET /fine ")]
    assert b"authorization" not in request.lower()


def test_a_key_that_came_later_is_found_at_once_and_bad_ones_cost_one_question(site: Site) -> None:
    assert site.ask("rotating") == GIVEN
    site.says["rotating"] = answer(key_set("first", "next"))
    assert site.ask("rotating", "next") == GIVEN
    for _ in range(5):
        assert site.ask("rotating", "never") == FORBIDDEN
    assert site.asked("rotating") == 2
    assert site.ask("rotating", "next") == GIVEN


def test_an_unknown_key_while_its_issuer_is_down_is_unavailable_and_known_keys_serve_on(site: Site) -> None:
    assert site.ask("outage") == GIVEN
    site.says["outage"] = answer(b"", "503 Down")
    for _ in range(3):
        assert site.ask("outage", "next") == UNAVAILABLE
        assert site.ask("outage") == GIVEN
    assert site.asked("outage") == 2


@pytest.mark.parametrize("name", [one for one in WRONG if one != "none"])
def test_an_answer_that_is_no_set_of_public_keys_verifies_nothing(site: Site, name: str) -> None:
    assert site.ask(name) == UNAVAILABLE
    assert site.asked(name) == 1
    assert site.asked("fine") <= 1, "no redirect is followed"


def test_a_set_without_the_key_is_asked_for_once_and_forbids(site: Site) -> None:
    assert site.ask("none") == FORBIDDEN


@pytest.mark.parametrize(
    ("name", "said"),
    [("wrong-name", "the certificate"), ("plain-authority", "the domain leads to a private or reserved address")],
)
def test_keys_come_from_the_issuer_s_own_server_alone(site: Site, name: str, said: str) -> None:
    assert site.ask(name) == UNAVAILABLE
    (line,) = [one for one in site.gate.lines() if one.get("issuer") == name]
    assert said in line["problem"]
    assert site.asked(name) == 0


def test_a_broker_that_died_is_asked_again_and_known_keys_serve_meanwhile(site: Site) -> None:
    assert site.ask("broker") == GIVEN
    (broker,) = site.gate.children(BROKER)
    os.kill(broker.pid, signal.SIGKILL)
    assert site.ask("broker") == GIVEN
    site.says["broker"] = answer(key_set("next"))
    wait_for(lambda: site.ask("broker", "next") == GIVEN, "a lease by a key of the next broker")
