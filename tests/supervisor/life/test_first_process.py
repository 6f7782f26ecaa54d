"""The gateway as the first process of a container: it reaps what is left to it, and takes all with it at its end."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import msgspec
import psutil
import pytest

from ipc.process.exits import Exit
from ipc.settings import PoolSettings, Settings, WorkerSettings
from tests.supervisor.conftest import RUN_GATEWAY
from tests.support.processes import is_running
from tests.support.supervised import Running, Start, wait_until

NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]


def can_unshare() -> bool:
    """Whether this user may make a pid namespace here."""
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*NAMESPACE, "true"], check=False, stderr=subprocess.DEVNULL).returncode == 0


def test_an_orphan_is_reaped_by_the_supervisor(start: Start) -> None:
    gateway = start()
    orphan = int(gateway.ask(do="orphan"))
    wait_until(lambda: psutil.Process(orphan).ppid() == gateway.process.pid)
    os.kill(orphan, signal.SIGKILL)
    wait_until(lambda: not psutil.pid_exists(orphan))
    assert gateway.state()["front_id"]


@pytest.mark.skipif(not can_unshare(), reason="needs the right to make a pid namespace (root)")
def test_as_the_first_process_it_reaps_orphans_answers_signals_and_leaves_nothing(tmp_path: Path) -> None:
    state_dir = tmp_path / "state"
    state_dir.mkdir(mode=0o700)
    one = PoolSettings(min_spare=1, max=1)
    settings = Settings(
        state_dir=str(state_dir), public_base_url="http://gateway.test",
        listen_uds_path=str(tmp_path / "run" / "gate.sock"), listen_admin_uds_path=str(tmp_path / "run" / "admin.sock"),
        workers=WorkerSettings(compute=one, http=one, fs=one),
    )  # fmt: skip
    log = tmp_path / "log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [*NAMESPACE, *RUN_GATEWAY, msgspec.json.encode(settings).decode()],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip
    try:
        gateway = Running(process, settings, log)
        gateway.wait_ready()
        (first,) = psutil.Process(process.pid).children()
        orphan = outside(first, int(gateway.ask(do="orphan")))
        assert gateway.told("starting")[0]["pid"] == 1
        wait_until(lambda: orphan.ppid() == first.pid)
        orphan.kill()
        wait_until(lambda: not psutil.pid_exists(orphan.pid))
        gateway.ask(do="orphan")
        family = [one.pid for one in first.children(recursive=True)]
        first.send_signal(signal.SIGTERM)
        assert process.wait(60) == Exit.OK
        assert not [pid for pid in family if is_running(pid)]
    finally:
        process.kill()
        process.wait(60)
        assert process.stdout is not None
        process.stdout.close()


def outside(first: psutil.Process, pid: int) -> psutil.Process:
    """The process that has this number in the namespace of `first`."""
    for one in first.children(recursive=True):
        lines = Path(f"/proc/{one.pid}/status").read_text().splitlines()
        if next(line for line in lines if line.startswith("NSpid:")).split()[-1] == str(pid):
            return one
    raise AssertionError(f"no process {pid}")


def test_a_front_whose_channel_another_process_holds_is_missed_when_it_ends(start: Start) -> None:
    gateway = start()
    first = gateway.whole_family()["front 1"]
    orphan = int(gateway.ask(do="orphan"))
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: gateway.told("front 1 ended"))
    os.kill(orphan, signal.SIGKILL)
    gateway.eventually(lambda state: state["pid"] != first)
