"""A gateway that has an egress proxy: a real squid, and two actions that go out through it.

The outage of the proxy happens once, when the first row asks for it.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import httpx

from tests.conformance.deployment import Deployment, deployment, prepare
from tests.conformance.scene import PATIENCE
from tests.support.gateway import wait_for
from tests.support.manifests import write_manifests
from tests.support.proxied import HOST, REFUSED, through
from tests.support.squid import Squid, squid
from tests.support.upstream import Upstream

HOSTS = {"proxied_fetch": HOST, "proxied_elsewhere": REFUSED}
"""Action -> host. Squid lets through to the first alone."""


@dataclass
class ProxyOutage:
    """The answers of a gateway without its egress proxy, and after it was back."""

    call: httpx.Response
    reason: str
    """The trace id in the event of that call."""
    readiness: httpx.Response
    others: list[httpx.Response]
    """Calls that need no proxy."""
    later: httpx.Response
    """Readiness, once it is well again."""


@dataclass
class Proxied:
    """One running gateway and its proxy."""

    gate: Deployment
    squid: Squid
    port: int
    """The address of the upstream."""

    def was_asked(self, status: int, action_id: str) -> None:
        """Squid was asked for a tunnel to the action's host, and answered so."""
        line = (status, "CONNECT", f"{HOSTS[action_id]}:{self.port}")
        wait_for(lambda: line in self.squid.lines(), f"{line} in squid's log")

    @cached_property
    def outage(self) -> ProxyOutage:
        """Squid is killed, and started again."""
        agent = self.gate.agent()
        with self.squid.gone():
            call = agent.execute("proxied_fetch", {"path": "gone"})
            reason = self.gate.events(trace_id=call.headers["x-trace-id"])[0]["reason"]
            readiness = self._ready_as("degraded")
            others = [
                agent.execute("text_digest", {"text": "x"}),
                agent.execute("file_write", {"path": "without-proxy", "content": "x"}),
            ]
        return ProxyOutage(call, reason, readiness, others, self._ready_as("ready"))

    def _ready_as(self, status: str) -> httpx.Response:
        def as_wanted() -> httpx.Response | None:
            answer = self.gate.client.get("/readyz")
            return answer if (answer.status_code, answer.json()["status"]) == (200, status) else None

        answer: httpx.Response = wait_for(as_wanted, f"readiness {status}")
        return answer


@contextmanager
def proxied_deployment(mode: str, folder: Path, up: Upstream) -> Iterator[Proxied]:
    """Run one until the block ends, with the scene's actions and those two."""
    port = int(up.address.rpartition(":")[2])
    prepare(folder, mode)
    patience = {"resource_limits": {"timeout_seconds": PATIENCE}}
    write_manifests(folder / "actions", *(through(one, host, port, **patience) for one, host in HOSTS.items()))
    data = json.loads((folder / "policy" / "data.json").read_text())
    for entry in data["acl"].values():
        entry["actions"] = sorted({*entry["actions"], *HOSTS})
    (folder / "policy" / "data.json").write_text(json.dumps(data))
    with (
        squid(HOSTS.values(), [port], allowed=[HOST]) as proxy,
        deployment(mode, folder, top=f'egress_proxy_url = "{proxy.url}"') as gate,
    ):
        yield Proxied(gate, proxy, port)
