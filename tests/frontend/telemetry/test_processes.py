"""Processes as the kernel sees them: those of this gateway and no others."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from frontend.telemetry.processes import Processes, Usage

# A parent that makes one child, which tells its pid once it is sure to die with the parent. The parent lives until its
# standard input ends.
FAMILY = """
import os, sys
if os.fork() == 0:
    os.setpgid(0, 0)
    import signal, ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    print(os.getpid(), flush=True)
    signal.pause()
sys.stdin.read()
"""


@contextmanager
def template() -> Iterator[tuple[int, int]]:
    """(a process, its child), like a template with a worker."""
    with subprocess.Popen(
        [sys.executable, "-c", FAMILY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.pid, int(process.stdout.readline())
        process.kill()


def of_test() -> Processes:
    """This test takes the supervisor's part: what it starts are its children."""
    processes = Processes(1)
    processes._supervisor = os.getpid()
    return processes


def by_labels(processes: Processes) -> dict[tuple[str, str], Usage]:
    usages = processes.read()
    assert len({one.labels for one in usages}) == len(usages)
    return {one.labels: one for one in usages}


def test_a_worker_its_template_and_the_rest_are_told_by_kind_and_number() -> None:
    processes = of_test()
    with template() as (pid, worker):
        processes.worker_attached("compute-17", "compute", worker)
        usages = by_labels(processes)
        assert set(usages) == {("supervisor", "1"), ("front", "1"), ("template", "1"), ("worker compute", "1")}
        ours, theirs = usages["front", "1"], psutil.Process()
        assert abs(ours.cpu_seconds - sum(theirs.cpu_times()[:2])) < 1
        assert abs(ours.started - theirs.create_time()) < 2
        assert 0.5 < ours.resident / theirs.memory_info().rss < 2
        assert ours.open_fds is not None
        assert abs(ours.open_fds - theirs.num_fds()) <= 3
        assert ours.proportional is None or 0 < ours.proportional <= 1.2 * ours.resident
        assert time.time() - 3600 < usages["worker compute", "1"].started < time.time() + 2
        assert psutil.Process(pid).pid == pid


def test_a_process_that_is_gone_is_left_out() -> None:
    processes = of_test()
    with template() as (_, worker):
        processes.worker_attached("fs-1", "fs", worker)
    processes.policy_attached(worker)
    assert set(by_labels(processes)) == {("supervisor", "1"), ("front", "1")}


def test_a_pid_that_belongs_to_somebody_else_by_now_is_not_taken_for_ours() -> None:
    processes = of_test()
    with template() as (pid, worker):
        processes.policy_attached(worker)  # a process, but no child of the supervisor
        processes.worker_attached("http-1", "http", 1)
        assert set(by_labels(processes)) == {("supervisor", "1"), ("front", "1")}
        processes.policy_attached(pid)
        assert ("policy", "1") in by_labels(processes)


def test_a_successor_takes_the_place_of_a_worker_that_is_gone() -> None:
    processes = of_test()
    for number in range(1, 4):
        processes.worker_attached(f"http-{number}", "http", 2**22 + number)
    processes.worker_attached("fs-1", "fs", 2**22)
    processes.worker_gone("http-2")
    processes.worker_gone("nobody")
    for number in range(4, 1000):
        processes.worker_attached(f"http-{number}", "http", 2**22 + number)
        assert {one.number for one in processes._workers.values() if one.kind == "worker http"} == {"1", "2", "3"}
        processes.worker_gone(f"http-{number}")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_what_the_kernel_hides_is_absent_and_what_it_shows_is_there() -> None:
    """A front runs as a user of its own and may not look into processes that are not dumpable."""
    program = (
        "import json, os; from frontend.telemetry.processes import Processes\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"  # which makes a process not dumpable, too
        "print(json.dumps(Processes(1).read()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    supervisor, front = (Usage(*row) for row in json.loads(done.stdout))
    assert supervisor.proportional is None
    assert supervisor.resident > 0
    assert supervisor.open_fds
    assert front.cpu_seconds >= 0
    assert front.open_fds
