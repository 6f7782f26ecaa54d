"""The backends of a gateway in the benchmark: names, columns, and a whole one on real servers."""

from argparse import ArgumentTypeError

import pytest

from bench.__main__ import options
from bench.backends import Backends, chosen, column, running
from bench.generator import generator
from bench.subjects import fresh_gate


def test_backends_are_named_in_any_order_and_each_once() -> None:
    assert chosen("redis,opa+redis+postgresql,redis") == (("redis",), ("redis", "postgresql", "opa"))
    assert chosen("none") == ()
    assert [column(one) for one in options([]).backends] == [
        "Redis + SQLite", "Redis + PostgreSQL", "Redis + PostgreSQL + OPA"
    ]  # fmt: skip
    assert column(("opa",)) == "SQLite + OPA"


@pytest.mark.parametrize("text", ["", "sqlite", "redis+", "redis+mysql", "postgresql"])
def test_what_no_gateway_can_lie_on_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError):
        chosen(text)


def test_a_gateway_on_real_servers_serves_and_their_processors_count_with_its_own() -> None:
    with (
        running(("redis", "postgresql", "opa")) as backends,
        fresh_gate(backends=backends) as gate,
        generator() as load,
    ):
        assert gate.operator.get("/v1/admin/status")["backends"] == {
            "store": "redis", "policy": "opa", "ledger": "postgresql"
        }  # fmt: skip
        used = load.calls(gate, 2, 0.5)["cpu_us"]
    assert used.keys() >= {"front", "notary", "worker compute", "redis-server", "postgres", "opa"}
    assert min(used[name] for name in ("redis-server", "postgres", "opa")) > 0


def test_without_backends_nothing_is_started() -> None:
    with running(()) as backends:
        assert backends == Backends()
