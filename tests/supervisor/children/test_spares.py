"""Processes that are ready before they are needed: taken by what follows one that ended, and gone with the gateway."""

import os
import signal

import psutil

from ipc.process.exits import Exit
from tests.support.processes import is_running
from tests.support.supervised import Running, Start, wait_until


def spares(gateway: Running, module: str) -> list[int]:
    """Processes of a module that have had no first message: they still have the title of an interpreter."""
    pids = []
    for process in psutil.Process(gateway.process.pid).children():
        try:
            if any(f"fake_{module}" in part for part in process.cmdline()):
                pids.append(process.pid)
        except psutil.NoSuchProcess:
            continue
    return pids


def ready_spare(gateway: Running) -> int:
    (pid,) = wait_until(lambda: spares(gateway, "front"))
    return int(pid)


def test_a_front_that_ends_is_followed_by_one_that_was_ready(start: Start) -> None:
    gateway = start()
    first, spare = gateway.whole_family()["front 1"], ready_spare(gateway)
    os.kill(first, signal.SIGKILL)
    state = gateway.eventually(lambda state: state["pid"] != first)
    assert state["pid"] == spare
    assert ready_spare(gateway) not in (first, spare), "the next one is made ready"
    assert [ended["pid"] for ended in gateway.told("front 1 ended")] == [first]


def test_a_dead_spare_is_replaced_without_effect_on_others(start: Start) -> None:
    gateway = start()
    family, spare = gateway.whole_family(), ready_spare(gateway)
    os.kill(spare, signal.SIGKILL)
    wait_until(lambda: spares(gateway, "front") not in ([], [spare]))
    assert gateway.told("spare front ended")[0]["reason"] == "SIGKILL"
    assert gateway.whole_family() == family


def test_without_a_spare_a_front_is_started_as_ever(start: Start) -> None:
    gateway = start()
    first, spare = gateway.whole_family()["front 1"], ready_spare(gateway)
    gateway.process.send_signal(signal.SIGSTOP)
    os.kill(spare, signal.SIGKILL)
    os.kill(first, signal.SIGKILL)
    gateway.process.send_signal(signal.SIGCONT)
    gateway.eventually(lambda state: state["pid"] not in (first, spare))


def test_spares_are_gone_with_the_gateway(start: Start) -> None:
    gateway = start()
    spare = ready_spare(gateway)
    gateway.signal(signal.SIGTERM)
    assert gateway.wait() == Exit.OK
    assert not is_running(spare)
