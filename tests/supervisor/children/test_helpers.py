"""Processes that live for one command: hardened, under a deadline, gone with the block that started them."""

import os
import signal
import socket
from pathlib import Path

import psutil
import pytest

from supervisor.children.helpers import Helpers
from supervisor.programs import child_environment
from supervisor.refusal import Refused
from tests.support.supervised import wait_until


def test_one_that_hangs_is_given_up_in_time_and_killed() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(Refused, match="this took more than"), Helpers(os.environ, 0.3) as helpers:
        process = helpers.start("workers.examiner", "--channel-fd", str(theirs.fileno()), fds=(theirs.fileno(),))
        helpers.wait(process)
    assert process.returncode == -signal.SIGKILL
    assert not psutil.pid_exists(process.pid)


def test_one_sees_what_it_is_given_and_nothing_else(tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "LANG": "C", "SECRET": "canary", "PYTHONPATH": str(tmp_path)}
    assert child_environment(environ) == {"LANG": "C"}
    extra = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(extra, True)
    ours, theirs = socket.socketpair()
    try:
        with ours, theirs, Helpers(environ, 600) as helpers:
            started = helpers.start("workers.examiner", "--channel-fd", str(theirs.fileno()), fds=(theirs.fileno(),))
            process = psutil.Process(started.pid)
            wait_until(lambda: "policy examiner" in " ".join(process.cmdline()))
            assert {int(name) for name in os.listdir(f"/proc/{started.pid}/fd")} == {0, 1, 2, theirs.fileno()}
            assert process.cwd() == "/"
            assert os.getsid(started.pid) == started.pid
    finally:
        os.close(extra)
    assert started.returncode == -signal.SIGKILL
