"""The supervisor over the real template and the real policy process; front and notary are fakes."""

import os
import signal

from ipc.process.exits import Exit
from tests.support.processes import is_running
from tests.support.supervised import Start, wait_until


def test_the_real_template_forks_workers_and_gets_its_modules_again_after_a_kill(start: Start) -> None:
    gateway = start(front={"modules": ["builtin:text_digest"]}, is_real=True)
    before = gateway.eventually(lambda state: len(state["workers"]) == 3 and state["policies"])
    assert before["loaded"] == [["first", 1, ["ok"]]]
    family = gateway.whole_family()
    os.kill(family["template"], signal.SIGKILL)
    after = gateway.eventually(lambda state: len(state["gone"]) == 3 and len(state["workers"]) == 3)
    assert all(generation == 2 for _, _, generation in after["workers"].values())
    gateway.signal(signal.SIGTERM)
    assert gateway.wait() == Exit.OK
    assert not [pid for pid in gateway.known if is_running(pid)]


def test_real_children_die_with_a_killed_supervisor(start: Start) -> None:
    gateway = start(front={"modules": ["builtin:text_digest"]}, is_real=True)
    family = gateway.whole_family()
    gateway.process.kill()
    wait_until(lambda: not [title for title, pid in family.items() if is_running(pid)])
