"""How the processes of a gateway end: with each other, by a signal, or after their share of calls, and what follows."""

import os
import signal
from pathlib import Path

import httpx
import pytest

from tests.support.background import Background, HeldCall, in_flight
from tests.support.gateway import START_SECONDS, STOP_SECONDS, Bearer, Gateway, config_for, gateway, wait_for
from tests.support.manifests import ENDLESS, PATIENT, example, patient
from tests.support.own_gateway import own_gateway
from tests.support.processes import family, is_running, launched, pids, started
from tests.support.upstream import Upstream

SPIN = {"fuel": 0, "memory_mb": 0, "seconds": 250}
"""Ends when its worker or its gateway does."""


def all_gone(known: dict[int, str]) -> None:
    wait_for(lambda: not [name for pid, name in known.items() if is_running(pid)], "the end of every process")


# ------------------------------------------------------------------------------------------------ dying together


doomed = own_gateway(
    "[limits]\nworker_wait_seconds = 300\n[workers]\nidle_seconds = 0.3\nhttp = {min_spare = 1, max = 4}\n",
    spin=ENDLESS, http_fetch={"isolation": "pooled"},
)  # fmt: skip
"""A gateway with small pools, whose processes are killed; the last test that has it kills it as a whole."""


def test_a_pool_grows_with_demand_and_shrinks_again(doomed: Gateway, up: Upstream) -> None:
    agent = doomed.agent()
    calls = [HeldCall(up, agent) for _ in range(3)]
    more = [Background(lambda: agent.execute("http_fetch", {"path": "x"})) for _ in range(2)]
    wait_for(lambda: in_flight(doomed) == 5, "five calls in flight")
    assert len(doomed.children("worker http")) == 3
    assert {call.release().status() for call in calls} | {call.status() for call in more} == {200}
    wait_for(lambda: len(doomed.children("worker http")) == 1, "one worker again")


def test_workers_die_with_their_template_and_policy_and_workers_with_their_front(doomed: Gateway) -> None:
    before = pids(doomed)
    os.kill(before["template"], signal.SIGKILL)
    all_gone({pid: name for name, pid in before.items() if name.startswith("worker")})
    wait_for(lambda: len(doomed.children("worker")) >= 3, "new workers")
    assert is_running(before["front 1"])
    again = pids(doomed)
    os.kill(again["front 1"], signal.SIGKILL)
    all_gone({pid: name for name, pid in again.items() if name.startswith(("worker", "policy"))})
    assert is_running(again["template"])
    assert is_running(again["notary"])
    agent = wait_for(lambda: _agent(doomed), "the next front")
    wait_for(lambda: agent.execute("text_digest", {"text": "x"}).status_code == 200, "its service")


def _agent(gate: Gateway) -> Bearer | None:
    try:
        return gate.agent()
    except httpx.TransportError:
        return None


def test_nothing_survives_a_supervisor_killed_in_the_middle_of_calls(doomed: Gateway) -> None:
    agent = doomed.agent()
    calls = [Background(lambda: agent.execute("spin", SPIN)) for _ in range(3)]
    wait_for(lambda: in_flight(doomed) == 3, "three calls in flight")
    wait_for(lambda: len(doomed.children("worker compute")) >= 3, "three workers")
    known = family(doomed.process.pid)
    doomed.process.kill()
    doomed.process.wait(STOP_SECONDS)
    all_gone(known)
    # If both die together the notary may end a moment before its front, which then has time to say so: of a
    # call that was begun (500), and of one that was not (503).
    assert {call.status() for call in calls} <= {0, 500, 503}


@pytest.mark.parametrize("count", [1, 3, 5])
def test_nothing_survives_a_supervisor_killed_while_it_starts(tmp_path: Path, count: int) -> None:
    process = launched(tmp_path)
    known: dict[int, str] = {}

    def has_children() -> bool:
        known.update(family(process.pid))
        return len(family(process.pid)) >= count

    try:
        wait_for(has_children, f"{count} children", START_SECONDS)
    finally:
        known.update(family(process.pid))
        process.kill()
        process.wait(STOP_SECONDS)
    all_gone(known)


# ------------------------------------------------------------------------------------------------ signals


def test_a_second_interrupt_and_a_hard_deadline_cut_calls_and_the_exit_code_says_so(tmp_path: Path) -> None:
    top = patient(tmp_path / "actions", spin=ENDLESS)
    with gateway(tmp_path, f"{top}[limits]\ndrain_seconds = 3600\n") as gate:
        agent = gate.agent()
        call = Background(lambda: agent.execute("spin", SPIN))
        wait_for(lambda: in_flight(gate) == 1, "a call in flight")
        known = family(gate.process.pid)
        gate.process.send_signal(signal.SIGINT)
        wait_for(lambda: '"draining"' in gate.log.read_text(), "the drain")
        assert gate.stop(signal.SIGINT) == 137
        assert call.status() == 0
        all_gone(known)
        assert not os.path.exists(gate.ready["client_socket"])
        assert not os.path.exists(gate.ready["admin_socket"])
    with gateway(tmp_path, f"{top}[limits]\ndrain_seconds = 0.5\n") as gate:  # the lock is free, and what was cut shows
        assert gate.operator().get("/v1/admin/status").json()["unresolved_intents"] == 1
        agent = gate.agent()
        call = Background(lambda: agent.execute("spin", SPIN))
        wait_for(lambda: in_flight(gate) == 1, "a call in flight")
        known = family(gate.process.pid)
        assert gate.stop(signal.SIGTERM) == 137
        assert call.status() == 0
        all_gone(known)


def test_an_interrupt_from_a_terminal_reaches_the_supervisor_alone_and_calls_end_well(
    tmp_path: Path, up: Upstream
) -> None:
    config = f"{patient(tmp_path / 'actions')}[limits]\ndrain_seconds = 120\n"
    with started(tmp_path, config_for(up.address, config)) as gate:
        call = HeldCall(up, gate.agent())
        os.killpg(gate.process.pid, signal.SIGINT)
        wait_for(lambda: '"draining"' in gate.log.read_text(), "the drain")
        assert call.release().status() == 200
        assert gate.process.wait(STOP_SECONDS) == 0


# ------------------------------------------------------------------------------------------------ pools


def served_by(gate: Gateway) -> int:
    """The highest number that a compute worker has had so far."""
    names = [name for name in family(gate.process.pid).values() if name.startswith("gateway: worker compute ")]
    return max((int(name.rsplit(" ", 1)[1]) for name in names), default=0)


isolating = own_gateway(
    "[limits]\nworker_wait_seconds = 300\n[workers]\ncompute = {min_spare = 1, max = 1}\n",
    example("text_digest", action_id="alone", isolation="process", **PATIENT), spin={"isolation": "process"},
)  # fmt: skip
"""A gateway with one compute worker at a time, and two actions that take a fresh one for every call."""


def test_an_isolated_action_gets_a_fresh_worker_for_every_call(isolating: Gateway) -> None:
    agent = isolating.agent()
    before = wait_for(lambda: served_by(isolating), "a worker")
    for number in range(5):
        assert agent.execute("alone", {"text": str(number)}).status_code == 200
    wait_for(lambda: served_by(isolating) >= before + 5, "the fifth worker after that")
    calls = [Background(lambda: agent.execute("spin", {"seconds": 0.1})) for _ in range(4)]
    assert {call.status() for call in calls} == {200}
    assert len(isolating.children("worker compute")) <= 2
