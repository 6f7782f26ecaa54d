"""A proxy that refuses what a person has just approved, or is silent: it may not have read its list again yet."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import pytest

from ipc.plan import Plan
from tests.support.http_host import Client, request
from tests.support.worker_proxy import letting_through, proxied_plan
from tests.support.worker_upstream import Answer, Upstream, ok, saying, upstream
from workers.host.network import ProxyLimits

REFUSAL = saying(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
SILENCE = saying(b"")
HOST = "upstream.test"


@contextmanager
def refusing(times: int, refusal: Answer = REFUSAL) -> Iterator[tuple[Upstream, Upstream]]:
    """(a proxy that refuses so many tunnels first, the upstream behind it)."""
    with upstream(ok(b"{}")) as up:
        answers = iter([*[refusal] * times, letting_through(up.address)])
        with upstream(lambda connection: next(answers)(connection)) as proxy:
            yield proxy, up


def plan_with(proxy: Upstream, patience: int, *unresolved: str) -> Plan:
    plan = proxied_plan(proxy.address)
    egress = msgspec.structs.replace(plan.egress, proxy_patience_seconds=patience)
    return msgspec.structs.replace(plan, egress=egress, unresolved_domains=unresolved)


@pytest.mark.parametrize("refusal", [REFUSAL, SILENCE], ids=["refused", "hung up"])
def test_an_unresolved_domain_is_asked_for_again_until_the_proxy_has_it(refusal: Answer) -> None:
    with refusing(5, refusal) as (proxy, up):
        assert Client(plan_with(proxy, 60, HOST)).send(request()).status == 200
        assert (len(proxy.requests), len(up.requests)) == (6, 1)


@pytest.mark.parametrize(("patience", "unresolved"), [(60, ()), (60, ("other.test",)), (0, (HOST,))])
def test_any_other_refusal_is_final(patience: int, unresolved: tuple[str, ...]) -> None:
    with refusing(1) as (proxy, up):
        assert Client(plan_with(proxy, patience, *unresolved)).refused(request()) == (
            "denied",
            "the egress proxy refused the upstream",
        )
        assert (len(proxy.requests), len(up.requests)) == (1, 0)


class PlayedClock:
    """A clock for waits between two tries: what they sleep goes by at once."""

    def __init__(self) -> None:
        self._now = time.monotonic()

    def __call__(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        (REFUSAL, ("denied", "the egress proxy refused the upstream")),
        (SILENCE, ("unavailable", "the egress proxy hung up without an answer")),
    ],
    ids=["refused", "hung up"],
)
@pytest.mark.parametrize(("patience", "seconds"), [(100, 6000), (6000, 100)])
def test_patience_ends_and_never_outlives_the_calls_own_time(
    patience: int, seconds: float, refusal: Answer, said: tuple[str, str]
) -> None:
    clock = PlayedClock()
    limits = ProxyLimits(pauses_seconds=(), look_again_seconds=30, clock=clock, sleep=clock.sleep)
    with upstream(refusal) as proxy:
        assert Client(plan_with(proxy, patience, HOST), seconds=seconds, proxy_limits=limits).refused(request()) == said
    assert len(proxy.requests) == 4, "now, and after 30, 60 and 90 seconds"
