"""A signal to the whole service ends no child, however young it is: the supervisor alone answers it."""

import os

import pytest

from ipc.process.parent import LEFT_TO_PARENT
from supervisor.children.children import Children
from supervisor.programs import Programs
from tests.support import processes
from tests.support.processes import is_running
from tests.support.supervised import wait_until

PROGRAMS = Programs()


def names(pid: int, line: str) -> set[int]:
    """The signals that a line of /proc/PID/status names."""
    mask = int(processes.status(pid, line), 16)
    return {number for number in LEFT_TO_PARENT if mask & 1 << (number - 1)}


@pytest.mark.parametrize(
    "program",
    [PROGRAMS.front, PROGRAMS.notary, PROGRAMS.policy, PROGRAMS.template, PROGRAMS.deliverer],
    ids=lambda program: program[0],
)
def test_a_child_that_was_started_a_moment_ago_lives_on(program: tuple[str, ...]) -> None:
    children = Children(os.environ)
    option = "channel-fd" if program == PROGRAMS.policy else "control-fd"
    child, pair = children.start("child", program, option)
    assert pair is not None
    try:
        for number in LEFT_TO_PARENT:
            os.kill(child.pid, number)
        wait_until(lambda: not is_running(child.pid) or names(child.pid, "SigIgn") == set(LEFT_TO_PARENT))
        wait_until(lambda: not is_running(child.pid) or not names(child.pid, "SigBlk"))
        assert is_running(child.pid)
    finally:
        child.kill()
        pair[0].close()
        _, status = os.waitpid(child.pid, 0)
        child.note_end(os.waitstatus_to_exitcode(status))
