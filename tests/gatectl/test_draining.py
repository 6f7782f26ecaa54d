"""gatectl drain, on a gateway of its own: it does not come back from that."""

import threading
from collections.abc import Iterator

import pytest
from gateway_client import AgentClient

from tests.gatectl.conftest import write_ready
from tests.support.gatectl import Gatectl
from tests.support.gateway import Gateway, gateway, wait_for


@pytest.fixture
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with gateway(tmp_path_factory.mktemp("own")) as running:
        yield running


def test_drain_waits_until_nothing_is_in_flight(own: Gateway, empty: Gatectl) -> None:
    empty.home.mkdir()
    empty.done("context", "from-ready", str(write_ready(own, empty.home)))
    asked = empty.here("drain")
    assert (asked.code, asked.err.split(" - ")[0]) == (
        2, "gatectl: usage: this needs a yes, and there is no terminal to ask on",
    )  # fmt: skip
    with AgentClient(own.base) as agent:
        call = threading.Thread(target=agent.execute, args=("spin", {"seconds": 2.0}))
        call.start()
        try:
            wait_for(lambda: empty.done("status", "--json").json["in_flight_executions"] == 1, "the call")
            early = empty.here("drain", "--yes", "--wait", "--timeout", "0.2")
            assert (early.code, "still_in_flight" in early.err) == (1, True)
            ran = empty.on_terminal("drain", "--yes", "--wait")
        finally:
            call.join(20)
    assert ran.code == 0
    assert "1 in flight" in ran.out
    assert "draining" in ran.out.splitlines()[-1]
    assert ran.out.rstrip().endswith("already, 0 in flight")
    found = empty.done("drain", "--yes", "--json").json
    assert {"draining", "already_draining", "in_flight_executions"} <= set(found)
    status = empty.done("doctor").out
    assert "refuses new work" in status
