"""Children that end again and again: readiness reports the reason, restarts are bounded, and the state clears by
itself."""

import json
import os
import signal
from pathlib import Path

import pytest

from tests.support.supervised import Running, Start, wait_until, workers


def break_kind(gateway: Running, kind: str) -> Path:
    """The next processes of this kind leave before they serve; removing the file mends it."""
    script = Path(gateway.settings.state_dir) / f"fake-{kind}.json"
    script.write_text(json.dumps({"exit_at_start": 1}))
    return script


@pytest.mark.parametrize(("kind", "name"), [("template", "template"), ("notary", "notary")])
def test_a_crash_loop_fails_readiness_and_says_why_until_it_serves_again(start: Start, kind: str, name: str) -> None:
    gateway = start()
    family = gateway.whole_family()
    script = break_kind(gateway, kind)
    os.kill(family[name], signal.SIGKILL)
    gateway.eventually(lambda state: state["crash_loops"] == [name])
    (told,) = gateway.told(f"readiness fails: {name} is in a crash loop")
    assert (told["level"], told["last_error"]) == ("error", "FAILED")
    pauses = [ended["restart_in"] for ended in gateway.told(f"{name} ended")]
    assert all(after > 0 for after in pauses[2:]), "it must not spin"
    script.unlink()
    gateway.eventually(lambda state: not state["crash_loops"])
    assert gateway.told(f"{name} has left its crash loop")


def test_another_front_says_that_a_front_is_in_a_crash_loop(start: Start) -> None:
    gateway = start(front_processes=2)
    family = gateway.whole_family(12)
    script = break_kind(gateway, "front")
    os.kill(family["front 1"], signal.SIGKILL)
    assert gateway.eventually(lambda state: state["crash_loops"])["crash_loops"] == ["front 1"]
    script.unlink()
    gateway.eventually(lambda state: not state["crash_loops"])


def test_workers_that_no_front_is_greeted_by_fail_readiness(start: Start) -> None:
    gateway = start(front={"greeted_by_none": True})
    told: set[str] = set()

    def end_one() -> bool:
        state = gateway.state()
        for worker_id in set(workers(state, "http")) - told:  # once each: afterwards its channel may be closed
            told.add(worker_id)
            gateway.ask(do="worker", worker_id=worker_id, text="exit 1")
        return bool(state["crash_loops"])

    wait_until(end_one)
    assert gateway.state()["crash_loops"] == ["worker http"]


def test_a_policy_process_that_dies_at_once_again_and_again_fails_readiness(start: Start) -> None:
    gateway = start()

    killed: set[int] = set()

    def end_it() -> list[str]:
        """The crash loops as they were seen first: this one is over once a process has lived for two seconds."""
        state = gateway.state()
        pid, crash_loops = state["policies"][-1], list(state["crash_loops"])
        if not crash_loops and pid not in killed:
            killed.add(pid)
            os.kill(pid, signal.SIGKILL)
        return crash_loops

    assert wait_until(end_it) == ["policy 1"]
    gateway.eventually(lambda state: not state["crash_loops"])
