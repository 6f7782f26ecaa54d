"""A child never outlives the parent it expects."""

import os
import signal
import subprocess
import sys
import time

from ipc.process.exits import Exit

CHILD = "\n".join(
    (
        "import os, signal, sys",
        "from ipc.process.parent import die_with_parent",
        "die_with_parent(int(sys.argv[1]))",
        "signal.pause()",
    )
)
PARENT = f"""
import os, subprocess, sys, signal
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}, str(os.getpid())])
print(child.pid, flush=True)
signal.pause()
"""


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_child_dies_with_a_killed_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
        parent.wait(60)
        deadline = time.monotonic() + 60
        while is_alive(child):
            assert time.monotonic() < deadline, "the child outlived its parent"
            os.sched_yield()


def test_a_child_whose_parent_is_gone_already_leaves_at_once() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(60)
    done = subprocess.run([sys.executable, "-c", CHILD, str(gone.pid)], timeout=120, check=False)
    assert done.returncode == Exit.ORPHANED
