"""Limits of memory, processes and processor time of one worker, where systemd delegates a cgroup v2 to the gateway.

Silent where it does not (`Delegate=yes` in the unit): then rlimits, fuel and deadlines are what bounds a worker. A
failure is logged once and costs the limits, never a call: these are the second bounds, not the first.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from ipc.limits import HTTP_WORKER_THREADS
from supervisor.logs import log

_ROOTS: Final = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
_DELEGATED: Final = ("user.delegate", "trusted.delegate")
_CONTROLLERS: Final = ("memory", "pids", "cpu")
MEMORY_BYTES: Final = 1536 * 1024 * 1024
"""The largest guest memory, and what the host needs beside it, twice over."""
PIDS: Final = HTTP_WORKER_THREADS + 5
"""Threads count: a worker with more of them than this could not start."""
CPU: Final = "100000 100000"
"""One processor."""


def delegated_folder(status: Path = Path("/proc/self/cgroup"), roots: tuple[Path, ...] = _ROOTS) -> Path | None:
    """The folder of our cgroup, if it is v2 and ours to divide."""
    try:
        lines = status.read_text().splitlines()
    except OSError:
        return None
    own = next((line.removeprefix("0::").lstrip("/") for line in lines if line.startswith("0::")), None)
    if own is None:
        return None
    for root in roots:
        folder = root / own
        if (folder / "cgroup.controllers").is_file() and _is_delegated(folder):
            return folder
    return None


def _is_delegated(folder: Path) -> bool:
    for name in _DELEGATED:
        with suppress(OSError):
            if os.getxattr(folder, name) == b"1":
                return os.access(folder / "cgroup.subtree_control", os.W_OK)
    return False


class WorkerLimits:
    """The cgroups of workers below a delegated one; without one, all of it does nothing."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder if folder is not None and _divided(folder) else None

    def hold(self, worker_id: str, pid: int) -> None:
        """Put a worker behind its limits."""
        if self._folder is None:
            return
        own = self._folder / f"worker-{worker_id}"
        try:
            own.mkdir(exist_ok=True)
            for name, value in (("memory.max", MEMORY_BYTES), ("pids.max", PIDS), ("cpu.max", CPU)):
                if (own / name).exists():
                    (own / name).write_text(str(value))
            (own / "cgroup.procs").write_text(str(pid))
        except OSError as error:
            log.warning("a worker has no cgroup of its own", worker_id=worker_id, cause=error.strerror)

    def forget(self, worker_id: str) -> None:
        """A worker has ended."""
        if self._folder is not None:
            with suppress(OSError):
                (self._folder / f"worker-{worker_id}").rmdir()


def _divided(folder: Path) -> bool:
    """Move ourselves into a cgroup below, since one with processes can't be divided, and divide it. Logged when not."""
    try:
        below = folder / "gateway"
        below.mkdir(exist_ok=True)
        for pid in (folder / "cgroup.procs").read_text().split():
            (below / "cgroup.procs").write_text(pid)
        there = (folder / "cgroup.controllers").read_text().split()
        wanted = [f"+{name}" for name in _CONTROLLERS if name in there]
        (folder / "cgroup.subtree_control").write_text(" ".join(wanted))
    except OSError as error:
        log.warning("the gateway's cgroup can't be divided: workers have no cgroup limits", cause=error.strerror)
        return False
    return True
