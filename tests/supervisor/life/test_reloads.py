"""A drain, a reload and a change of policy reach every front, and a reload is in force in all of them or in none."""

import os
import signal

import pytest

from ipc.process.exits import Exit
from ipc.settings import PoolSettings, WorkerSettings
from tests.supervisor.conftest import NONE
from tests.support.supervised import Running, Start, wait_until, workers

# ------------------------------------------------------------------------- drain and reload


def test_a_drain_asked_for_by_an_operator_reaches_the_front_and_its_successors_and_stops_nothing(
    start: Start,
) -> None:
    gateway = start()
    before = gateway.state()
    gateway.send(type="RequestDrain")
    gateway.eventually(lambda state: state["drained"])
    gateway.send(type="RequestReload", request_id="r1", requested_by="ada")
    assert gateway.eventually(lambda state: state["reloaded"])["reloaded"] == [["r1", None, 7]], "it still reloads"
    os.kill(before["pid"], signal.SIGKILL)
    gateway.eventually(lambda state: state["pid"] != before["pid"] and state["drained"])
    gateway.signal(signal.SIGTERM)
    assert gateway.wait() == Exit.OK


def test_a_reload_by_an_operator_is_sent_to_the_front_and_answered(gateway: Running) -> None:
    before = gateway.state()
    gateway.send(type="RequestReload", request_id="r1", requested_by="operator:ada", operator_jkt="k", proof_jti="j")
    state = gateway.eventually(lambda state: len(state["reloaded"]) > len(before["reloaded"]))
    assert state["reloads"] == [*before["reloads"], ["r1", "operator:ada"]]
    assert state["operators"] == [*before["operators"], ["k", "j"]]
    assert state["reloaded"] == [*before["reloaded"], ["r1", None, 7]]
    assert gateway.told("reloaded")[-1]["by"] == "operator:ada"


def test_reloads_beyond_those_that_may_wait_are_refused_at_once(start: Start) -> None:
    gateway = start()
    gateway.ask(do="set", values={"answers_reload": False})
    for number in range(12):
        gateway.send(type="RequestReload", request_id=f"r{number}", requested_by="ada")
    # A refusal goes out at once, the first reload only after a look at the settings.
    state = gateway.eventually(lambda state: len(state["reloaded"]) == 3 and state["reloads"])
    assert state["reloaded"] == [[f"r{number}", "too many reloads are waiting", 0] for number in (9, 10, 11)]
    assert state["reloads"] == [["r0", "ada"]]


def test_a_reload_that_fails_says_why(gateway: Running) -> None:
    before = gateway.state()["reloaded"]
    gateway.ask(do="set", values={"reload_error": "payment.yaml:9 fuel"})
    gateway.send(type="RequestReload", request_id="r2", requested_by="ada")
    after = gateway.eventually(lambda state: len(state["reloaded"]) > len(before))["reloaded"]
    assert after == [*before, ["r2", "payment.yaml:9 fuel", 0]]
    gateway.ask(do="set", values={"reload_error": None})


def test_hangup_reloads_and_a_front_that_dies_in_a_reload_does_not_block_the_next_one(start: Start) -> None:
    gateway = start()
    before = gateway.state()
    gateway.signal(signal.SIGHUP)
    state = gateway.eventually(lambda state: state["reloads"])
    assert state["reloads"] == [["hangup-1", "signal"]]
    wait_until(lambda: gateway.told("reloaded"))
    gateway.ask(do="set", values={"answers_reload": False})
    gateway.signal(signal.SIGHUP)
    gateway.eventually(lambda state: len(state["reloads"]) == 2)
    os.kill(before["pid"], signal.SIGKILL)
    gateway.eventually(lambda state: state["pid"] != before["pid"])
    wait_until(lambda: "a front did not answer" in gateway.log())
    wait_until(lambda: gateway.log().count("front 1 is ready") == 2)
    gateway.signal(signal.SIGHUP)
    assert gateway.eventually(lambda state: state["reloads"])["reloads"] == [["hangup-3", "signal"]]


# ------------------------------------------------------------------------- several fronts


def test_two_fronts_have_their_own_workers_and_both_get_drain_and_reload(start: Start) -> None:
    gateway = start(front_processes=2, workers=WorkerSettings(compute=PoolSettings(1, 1), http=NONE, fs=NONE))
    assert sorted(gateway.whole_family(8)) == [
        "front 1", "front 2", "notary", "policy 1", "policy 2", "template", "worker compute 1", "worker compute 2",
    ]  # fmt: skip
    seen: dict[str, dict[str, object]] = {}

    def both(has: str) -> bool:
        state = gateway.state()
        seen[state["front_id"]] = state
        return len(seen) == 2 and all(one[has] for one in seen.values())

    gateway.signal(signal.SIGHUP)
    wait_until(lambda: both("reloads"))
    assert all(len(workers(one, "compute")) == 1 for one in seen.values())
    gateway.send(type="RequestDrain")
    wait_until(lambda: both("drained"))
    gateway.signal(signal.SIGTERM)
    assert gateway.wait() == Exit.OK


def set_in(gateway: Running, family: dict[str, int], front: str, **values: object) -> None:
    """Change how this front of two behaves, while the other can't take the word."""
    other = "front 1" if front == "front 2" else "front 2"
    os.kill(family[other], signal.SIGSTOP)
    gateway.ask(do="set", values=values)
    os.kill(family[other], signal.SIGCONT)


@pytest.mark.parametrize("refuses", ["front 1", "front 2"])
def test_a_reload_that_one_front_refuses_is_put_in_force_by_none(start: Start, refuses: str) -> None:
    gateway = start(front_processes=2, workers=WorkerSettings(compute=NONE, http=NONE, fs=NONE))
    set_in(gateway, gateway.whole_family(6), refuses, reload_error="payment.yaml:9 fuel")
    gateway.signal(signal.SIGHUP)
    wait_until(lambda: gateway.told("reload failed, the earlier state stays active"))
    seen = gateway.states()
    assert [len(state["reloads"]) for state in seen.values()] == [1, 1]
    finishes = {name: state["finishes"] for name, state in seen.items()}
    assert finishes.pop(refuses) == []
    assert list(finishes.values()) == [["payment.yaml:9 fuel"]]


def test_a_reload_whose_evidence_can_not_be_written_is_put_in_force_by_none(start: Start) -> None:
    gateway = start(front_processes=2, workers=WorkerSettings(compute=NONE, http=NONE, fs=NONE))
    set_in(gateway, gateway.whole_family(6), "front 1", finish_error="no evidence")
    gateway.signal(signal.SIGHUP)
    wait_until(lambda: gateway.told("reload failed, the earlier state stays active"))
    assert {name: state["finishes"] for name, state in gateway.states().items()} == {
        "front 1": [None], "front 2": ["no evidence"]
    }  # fmt: skip


def test_a_front_that_can_not_finish_a_reload_is_replaced_and_the_others_keep_it(start: Start) -> None:
    gateway = start(front_processes=2, workers=WorkerSettings(compute=NONE, http=NONE, fs=NONE))
    family = gateway.whole_family(6)
    set_in(gateway, family, "front 2", finish_error="its policy process died")
    gateway.signal(signal.SIGHUP)
    wait_until(lambda: gateway.told("front 2 is killed: it did not apply a reload"))
    wait_until(lambda: len(gateway.told("front 2 is ready")) == 2)
    wait_until(lambda: gateway.told("reloaded"))
    after = gateway.whole_family(6)
    assert (after["front 1"] == family["front 1"], after["front 2"] == family["front 2"]) == (True, False)


def test_a_change_of_policy_is_sent_to_every_other_front(start: Start) -> None:
    gateway = start(front_processes=2, workers=WorkerSettings(compute=NONE, http=NONE, fs=NONE))
    gateway.send(type="PolicyEdited", digest="d1")  # by whichever of them takes the connection
    seen: dict[str, list[str]] = {}

    def told() -> bool:
        state = gateway.state()
        seen[state["front_id"]] = state["edited"]
        return len(seen) == 2 and any(seen.values())

    wait_until(told)
    assert sorted(seen.values()) == [[], ["d1"]]
