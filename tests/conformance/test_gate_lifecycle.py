"""Gate lifecycle: serving, then draining, and nothing after it."""

from tests.conformance.marks import row
from tests.conformance.stories import Drain


@row(
    "gate-lifecycle/serving-to-draining",
    "execute-errors/503-draining",
    "behaviour/1-drain-refuses",
    "lease-request/draining",
    "other-errors/leases-503-draining",
    "status-values/draining",
)
def test_new_work_is_refused_running_work_ends_and_operators_go_on(drain: Drain) -> None:
    assert drain.first.status_code == 200
    assert (drain.refused.status_code, drain.refused.json()) == (503, {"error": "draining"})
    assert (drain.refused_lease.status_code, drain.refused_lease.json()) == (503, {"error": "draining"})
    assert drain.ended == 200
    assert drain.approved.status_code == 200
    assert (drain.during["status"], drain.idle["draining"]) == ("draining", True)
    assert len(drain.events) >= 1


@row("gate-lifecycle/draining-again", "admin-endpoints/drain")
def test_a_second_drain_says_so(drain: Drain) -> None:
    assert drain.again.status_code == 200
    assert drain.again.json()["already_draining"] is True
    assert drain.first.json() == {"draining": True, "already_draining": False, "in_flight_executions": 1}


@row("gate-lifecycle/irreversible")
def test_neither_a_reload_nor_a_new_front_ends_it(drain: Drain) -> None:
    assert drain.reloaded.status_code == 200
    assert drain.refused_after_reload.json() == {"error": "draining"}
    assert drain.refused_by_next_front.json() == {"error": "draining"}
    assert drain.last["status"] == "draining"
