"""The http host call for one call: its plan, its names and its meter, and short ways to use it once."""

import ssl
import time
import weakref
from typing import Any

import pytest

from ipc.plan import Plan
from tests.support.worker_plans import http_plan
from tests.support.worker_upstream import Answer, Upstream, upstream
from workers.host.connection import make_tls
from workers.host.http import GuestRequest, HttpHost, Renew, no_other
from workers.host.kept import KeptConnections
from workers.host.meter import HostError, Meter
from workers.host.network import NetworkContext, ProxyLimits
from workers.host.resolver import Resolver
from workers.host.wire import Response

URL = "http://upstream.test/path?q=1"
TLS = make_tls()
AT_ONCE = ProxyLimits(pauses_seconds=(0.0,) * len(ProxyLimits().pauses_seconds), look_again_seconds=0.01)
"""Retries are as many as usual, and come almost at once."""


class Names(Resolver):
    """A resolver whose answers a test decides; it remembers what it was asked."""

    def __init__(self, *answers: list[str]) -> None:
        super().__init__()
        self.answers = list(answers)
        self.questions: list[str] = []

    def resolve(self, host: str, seconds: float) -> list[str]:
        self.questions.append(host)
        return self.answers.pop(0)


def request(url: str = URL, method: str = "GET", **changes: Any) -> GuestRequest:
    values: dict[str, Any] = {"headers": (), "body": "", "body_encoding": "utf8", "timeout_ms": None}
    return GuestRequest(method, url, **(values | changes))


class Client:
    """A host for one call."""

    def __init__(
        self, plan: Plan, *, secrets: dict[str, str] | None = None, seconds: float = 300, names: Resolver | None = None,
        tls: ssl.SSLContext | None = None, is_approved: bool = False, budget: int = 10,
        proxy_limits: ProxyLimits = AT_ONCE, proxy_tls: ssl.SSLContext | None = None,
        kept: KeptConnections | None = None, renew: Renew = no_other, **outside: Any,
    ) -> None:  # fmt: skip
        """`kept`: those of a worker that serves other calls, too; they are the caller's to close. `outside` is the rest
        of the network's context."""
        self.meter = Meter(budget, time.monotonic() + seconds)
        own = KeptConnections()
        weakref.finalize(self, own.close)
        context = NetworkContext(names or Names(), tls or TLS, proxy_limits, proxy_tls, kept or own, **outside)
        self.host = HttpHost(plan, secrets or {}, self.meter, context, is_approved=is_approved, renew=renew)

    def send(self, wanted: GuestRequest) -> Response:
        return self.host.send(wanted)

    def refused(self, wanted: GuestRequest) -> tuple[str, str]:
        """(kind, message) of a request that had no response."""
        with pytest.raises(HostError) as caught:
            self.host.send(wanted)
        seen = self.meter.observations[-1]
        assert (seen.kind, seen.ok, seen.status) == ("http", False, None)
        return caught.value.failure.kind, caught.value.failure.message


def asked(
    answer: Answer, wanted: GuestRequest, seconds: float = 300, **changes: Any
) -> tuple[Response, Upstream, Client]:
    with upstream(answer) as up:
        client = Client(http_plan(address=up.address, **changes), seconds=seconds)
        return client.send(wanted), up, client


def failing(
    answer: Answer, wanted: GuestRequest | None = None, seconds: float = 300, **changes: Any
) -> tuple[str, str]:
    with upstream(answer) as up:
        return Client(http_plan(address=up.address, **changes), seconds=seconds).refused(wanted or request())
