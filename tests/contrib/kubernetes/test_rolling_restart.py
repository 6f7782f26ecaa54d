"""A rolling restart of contrib/kubernetes/edge, played under load: two pods with gateway and edge, which share a Redis
and a PostgreSQL, are replaced one after the other as a StatefulSet replaces them, and no call fails."""

import json
import os
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from gateway_client import Address, AgentClient, LeaseTerms

from tests.support.certificates import made_certificate
from tests.support.gateway import Bearer, Prover, wait_for
from tests.support.hosts import Host
from tests.support.kubernetes import FORMS, Resource, one_of, rendered, resources
from tests.support.pod_contents import ACTION, PRINCIPAL, PUBLIC_URL, allow, contents, made
from tests.support.pod_replica import Replica
from tests.support.pod_service import PodService
from tests.support.pods import Pod
from tests.support.ports import free_port
from tests.support.two_hosts import PASSWORD, postgres_on, redis_on

ISSUER = "https://cluster.example"
KEY = ec.generate_private_key(ec.SECP256R1())
AGENTS = 4
CALLS = 20
"""Calls of each agent between two steps of the restart."""
IDENTITY = f"""
[[identity.issuers]]
name = "cluster"
issuer = "{ISSUER}"
audience = "{PUBLIC_URL}"
jwks_file = "/etc/gateway/config/jwks.json"
algorithms = ["ES256"]
[identity.issuers.principals.agent]
principal = "{PRINCIPAL}"
owner = "team"
"""


@dataclass(frozen=True)
class Served:
    """Pods that serve, and the Service before them."""

    service: PodService
    pods: list[Replica]
    roots: Path
    """The certificate of the edges."""


class OwnAddress(Host):
    """A second loopback address, where Redis and PostgreSQL listen."""

    @property
    def within(self) -> tuple[str, ...]:
        return ()


SERVERS = OwnAddress("servers", "127.0.0.2", "")


def token() -> str:
    claims = {"iss": ISSUER, "aud": PUBLIC_URL, "sub": "agent", "exp": int(time.time()) + 3600}
    return jwt.encode(claims, KEY, "ES256", {"kid": "k"})


class Load:
    """Agents that call one after the other until they are stopped: half by the client library, on connections that they
    keep; half as plainly as can be, each call once and on a connection of its own."""

    def __init__(self, service: PodService, roots: Path) -> None:
        self._base = f"https://127.0.0.1:{service.port}"
        self._trusted = ssl.create_default_context(cafile=str(roots))
        self._done = [0] * AGENTS
        self._failed: list[str] = []
        self._is_over = threading.Event()
        ways = (self._by_library, self._plainly)
        self._threads = [threading.Thread(target=ways[one % 2], args=(one,)) for one in range(AGENTS)]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(120)

    def goes_on(self) -> None:
        """Return once each agent has called some times more, and none in vain."""
        wanted = [done + CALLS for done in self._done]
        wait_for(
            lambda: self._failed or all(done >= least for done, least in zip(self._done, wanted, strict=True)),
            "calls of each agent", 120,
        )  # fmt: skip
        assert not self._failed

    def _repeat(self, number: int, call: Callable[[], object]) -> None:
        while not self._is_over.is_set():
            try:
                call()
            except Exception as error:
                self._failed.append(repr(error))
                return
            self._done[number] += 1

    def _by_library(self, number: int) -> None:
        address = Address.parse(self._base, public_base_url=PUBLIC_URL)
        with AgentClient(address, terms=LeaseTerms(token=token)) as agent:
            self._repeat(number, lambda: agent.execute(ACTION, {"text": "a"}))

    def _plainly(self, number: int) -> None:
        limits = httpx.Limits(max_keepalive_connections=0)
        with httpx.Client(base_url=self._base, verify=self._trusted, limits=limits, timeout=60) as http:
            prover = Prover()
            asked = {"scopes": ["tools:call"], "dpop_jwk": prover.jwk}
            answer = http.post("/v1/leases", json=asked, headers={"Authorization": f"Bearer {token()}"})
            agent = Bearer(http, PUBLIC_URL, answer.raise_for_status().json()["lease_jwt"], prover)
            self._repeat(number, lambda: agent.execute(ACTION, {"text": "a"}).raise_for_status())


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """The folder that the user of the cluster keeps, with the issuer of the agents' tokens."""
    if os.geteuid() != 0:
        if os.environ.get("CI") == "true":
            pytest.fail("a pod is played by root, and this is not")
        pytest.skip("a pod is played by root: its containers have users of their own")
    folder = made(tmp_path / "etc")
    settings = folder / "gateway.toml"
    # One agent has one lease, which must hold for as long as the restart takes.
    settings.write_text(f"lease_ttl_seconds = 3600\n{settings.read_text()}{IDENTITY}")
    allow(folder, ACTION)
    return folder


def specification(redis_port: int, postgres_port: int) -> Resource:
    """The pods' specification, each time with another port of the edge: here they share one network."""
    urls = {
        "redis": f"rediss://gate@{SERVERS.address}:{redis_port}",
        "postgres": f"postgresql://gate@{SERVERS.address}:{postgres_port}/ledger",
    }
    more = [part for name, url in urls.items() for part in ("--set", f"{name}.deploy=false,{name}.url={url}")]
    found = resources(rendered(*FORMS["edge"], *more, "--set", f"edge.port={free_port()}"))
    template: Resource = one_of(found, "StatefulSet", "gateway")["spec"]["template"]["spec"]
    settings = one_of(found, "ConfigMap", "gateway-edge")["data"]
    return template | {"edge_settings": settings}


@pytest.fixture
def served(user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """Two pods."""
    for name in ("servers", "edge"):
        (tmp_path / name).mkdir()
    servers, edge = (
        made_certificate(tmp_path / "servers", SERVERS.address),
        made_certificate(tmp_path / "edge", "127.0.0.1"),
    )
    monkeypatch.setenv("SSL_CERT_FILE", str(edge))
    public = {**jwt.algorithms.ECAlgorithm.to_jwk(KEY.public_key(), as_dict=True), "kid": "k"}
    shared = {"password": PASSWORD.encode(), "ca.crt": servers.read_bytes()}
    given = contents(user) | {
        "gateway-redis": shared,
        "gateway-postgres": shared,
        "gateway-edge-tls": {"tls.crt": edge.read_bytes(), "tls.key": edge.with_name("key.pem").read_bytes()},
    }
    given["gateway-config"]["jwks.json"] = json.dumps({"keys": [public]}).encode()
    redis_port = free_port()
    with ExitStack() as stack:
        stack.enter_context(closing(redis_on(SERVERS, redis_port, servers, tmp_path / "redis")))
        postgres = stack.enter_context(closing(postgres_on(SERVERS, servers)))
        service = stack.enter_context(closing(PodService()))
        found = []
        for number in range(2):
            spec = specification(redis_port, postgres.port)
            settings = {name: text.encode() for name, text in spec.pop("edge_settings").items()}
            one = Replica(spec, given | {"gateway-edge": settings}, tmp_path / f"replica-{number}", service, edge)
            stack.enter_context(closing(one))
            one.start()
            found.append(one)
        yield Served(service, found, edge)


def test_no_call_fails_while_each_pod_is_replaced(served: Served) -> None:
    with closing(Load(served.service, served.roots)) as load:
        load.goes_on()
        for one in served.pods:
            one.leave()
            load.goes_on()  # so that each connection that was new has had its call
            one.end()
            load.goes_on()
            one.follow()
            load.goes_on()
    for one in served.pods:
        assert served.service.connections[one.port] > CALLS
        # The gateway looks at its ledger now and then: its count may still be that of the last calls under way.
        wait_for(partial(has_ended_every_call, one.pod), "the end of every call", 60)


def has_ended_every_call(pod: Pod) -> bool:
    command = pod.container("gateway")["readinessProbe"]["exec"]["command"]
    return " 0 unresolved" in pod.run("gateway", *command).stdout
