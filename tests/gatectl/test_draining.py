"""gatectl drain, on a gateway of its own: it does not come back from that."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gatectl.conftest import sound, write_ready
from tests.support.background import HeldCall
from tests.support.gatectl import Gatectl
from tests.support.gateway import Gateway, config_for, gateway
from tests.support.manifests import patient
from tests.support.upstream import Upstream


@pytest.fixture
def own(up: Upstream, tmp_path: Path) -> Iterator[Gateway]:
    folder = tmp_path / "own"
    folder.mkdir()
    with gateway(folder, config_for(up.address, patient(folder / "actions"))) as running:
        yield running


def test_drain_waits_until_nothing_is_in_flight(own: Gateway, up: Upstream, empty: Gatectl) -> None:
    empty.home.mkdir()
    empty.done("context", "from-ready", str(write_ready(own, empty.home)))
    asked = empty.here("drain")
    assert (asked.code, asked.err.split(" - ")[0]) == (
        2, "gatectl: usage: this needs a yes, and there is no terminal to ask on",
    )  # fmt: skip
    call = HeldCall(up, own.agent())
    try:
        assert empty.done("status", "--json").json["in_flight_executions"] == 1
        early = empty.here("drain", "--yes", "--wait", "--timeout", "0.2")
        assert (early.code, "still_in_flight" in early.err) == (1, True)
        ran = empty.on_terminal("drain", "--yes", "--wait", until="1 in flight", then=call.release)
    finally:
        assert call.release().status() == 200
    assert ran.code == 0
    assert "1 in flight" in ran.out
    assert "draining" in ran.out.splitlines()[-1]
    assert ran.out.rstrip().endswith("already, 0 in flight")
    answer = empty.done("drain", "--yes", "--json").json
    assert {"draining", "already_draining", "in_flight_executions"} <= set(answer)
    status = sound(empty, "doctor").out
    assert "refuses new work" in status
    assert "restart the gateway: a drain is not taken back" in status
