"""Gate lifecycle: serving, then draining, and nothing after it."""

import signal

import httpx

from tests.conformance.marks import row
from tests.conformance.stories import Drain
from tests.support.gateway import wait_for


@row("gate-lifecycle/serving-to-draining")
def test_new_work_is_refused_running_work_ends_and_operators_go_on(drain: Drain) -> None:
    assert drain.first.status_code == 200
    assert (drain.refused.status_code, drain.refused.json()) == (503, {"error": "draining"})
    assert (drain.refused_lease.status_code, drain.refused_lease.json()) == (503, {"error": "draining"})
    assert drain.ended == 200
    assert drain.approved.status_code == 200
    assert drain.gate.status()["draining"] is True
    assert len(drain.gate.events(event_type="AdminDrain")) >= 1


@row("gate-lifecycle/draining-again")
def test_a_second_drain_says_so(drain: Drain) -> None:
    assert drain.again.status_code == 200
    assert drain.again.json()["already_draining"] is True
    assert drain.first.json()["already_draining"] is False


@row("gate-lifecycle/irreversible")
def test_neither_a_reload_nor_a_new_front_ends_it(drain: Drain) -> None:
    assert drain.gate.reload().status_code == 200
    assert drain.agent.execute("text_digest", {"text": "x"}).json() == {"error": "draining"}
    front = drain.gate.gateway.child("front")
    front.send_signal(signal.SIGKILL)

    def is_draining() -> bool:
        try:
            return bool(drain.agent.execute("text_digest", {"text": "x"}).json() == {"error": "draining"})
        except httpx.TransportError:
            return False

    wait_for(lambda: front.pid not in [one.pid for one in drain.gate.gateway.children("front")], "the end of the front")
    wait_for(is_draining, "a front that drains", 20)
    assert drain.gate.status()["status"] == "draining"
