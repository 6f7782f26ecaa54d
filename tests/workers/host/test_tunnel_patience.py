"""A proxy that refuses what a person has just approved: it may not have read its list again yet."""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import pytest

from ipc.plan import Plan
from tests.support.http_host import Client, request
from tests.support.worker_proxy import letting_through, proxied_plan
from tests.support.worker_upstream import Upstream, ok, saying, upstream

REFUSAL = saying(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
HOST = "upstream.test"


@contextmanager
def refusing(times: int) -> Iterator[tuple[Upstream, Upstream]]:
    """(a proxy that refuses so many tunnels first, the upstream behind it)."""
    with upstream(ok(b"{}")) as up:
        answers = iter([*[REFUSAL] * times, letting_through(up.address)])
        with upstream(lambda connection: next(answers)(connection)) as proxy:
            yield proxy, up


def plan_with(proxy: Upstream, patience: int, *unresolved: str) -> Plan:
    plan = proxied_plan(proxy.address)
    egress = msgspec.structs.replace(plan.egress, proxy_patience_seconds=patience)
    return msgspec.structs.replace(plan, egress=egress, unresolved_domains=unresolved)


def test_an_unresolved_domain_is_asked_for_again_until_the_proxy_has_it() -> None:
    with refusing(5) as (proxy, up):
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


@pytest.mark.large
@pytest.mark.parametrize(("patience", "seconds"), [(1, 300), (600, 1)])
def test_patience_ends_and_never_outlives_the_calls_own_time(patience: int, seconds: float) -> None:
    with upstream(REFUSAL) as proxy:
        kind, message = Client(plan_with(proxy, patience, HOST), seconds=seconds).refused(request())
    assert (kind, "the egress proxy" in message) in {("denied", True), ("timeout", True)}
    assert len(proxy.requests) > 1
