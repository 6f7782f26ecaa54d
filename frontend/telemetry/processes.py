"""The gateway's processes as the kernel sees them: who they are comes from the supervisor, what they use from /proc.

A process is known by the pid that it was announced with and counts only while its parent is the one it must have, so
that a reused pid is never taken for ours. Titles are not read: a process writes its own.
What the kernel does not tell this user is absent, never 0.
"""

import os
import time
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Usage(NamedTuple):
    """One process: times in seconds, sizes in bytes."""

    kind: str
    """supervisor, front, notary, policy, template, or worker and its profile."""
    number: str
    """From 1 within its kind; a worker's is its place, which its successor takes over: numbers stay few."""
    cpu_seconds: float
    started: float
    """Unix time."""
    resident: int
    proportional: int | None
    open_fds: int | None

    @property
    def labels(self) -> tuple[str, str]:
        """Which process it is."""
        return self.kind, self.number


class _Stat(NamedTuple):
    parent: int
    ticks: int
    started: int
    """Ticks after boot."""
    pages: int


class Processes:
    """All processes that this front knows. `read` may block for some milliseconds: for a thread."""

    def __init__(self, number: int) -> None:
        """`number` is the front's own, and its policy process's."""
        self._number = str(number)
        self._supervisor = os.getppid()
        self._notary: int | None = None
        self._policy: int | None = None
        self._workers: dict[str, tuple[str, str, int]] = {}

    def notary_attached(self, pid: int) -> None:
        """A notary takes the place of the one before it."""
        self._notary = pid

    def policy_attached(self, pid: int) -> None:
        """A policy process takes the place of the one before it."""
        self._policy = pid

    def worker_attached(self, worker_id: str, profile: str, pid: int) -> None:
        """A worker takes the first free place of its profile."""
        kind = f"worker {profile}"
        taken = {number for other, number, _ in self._workers.values() if other == kind}
        place = next(str(number) for number in range(1, len(taken) + 2) if str(number) not in taken)
        self._workers[worker_id] = (kind, place, pid)

    def worker_gone(self, worker_id: str) -> None:
        """A worker's place is free."""
        self._workers.pop(worker_id, None)

    def read(self) -> list[Usage]:
        """What each of them uses now. Never raises: one that is gone, or that the kernel hides, is left out."""
        policy, workers, booted = self._policy, list(self._workers.values()), _boot_time()
        wanted: list[tuple[str, str, int, int | None]] = [
            ("supervisor", "1", self._supervisor, None), ("front", self._number, os.getpid(), None)
        ]  # fmt: skip
        if self._notary is not None:
            wanted.append(("notary", "1", self._notary, self._supervisor))
        if policy is not None:
            wanted.append(("policy", self._number, policy, self._supervisor))
        template = self._template(workers)
        if template is not None:
            wanted.append(("template", "1", template, self._supervisor))
            wanted += [(*worker, template) for worker in workers]
        return [usage for one in wanted if (usage := _usage(*one, booted)) is not None]

    def _template(self, workers: list[tuple[str, str, int]]) -> int | None:
        """A front is not told of the template: it is the parent of its workers, and the supervisor's child."""
        for _, _, pid in workers:
            worker = _stat(pid)
            parent = None if worker is None else _stat(worker.parent)
            if worker is not None and parent is not None and parent.parent == self._supervisor:
                return worker.parent
        return None


def _usage(kind: str, number: str, pid: int, parent: int | None, booted: float) -> Usage | None:
    stat = _stat(pid)
    if stat is None or (parent is not None and stat.parent != parent):
        return None
    return Usage(
        kind, number, stat.ticks / _TICKS, booted + stat.started / _TICKS, stat.pages * _PAGE, _proportional(pid),
        _open_fds(pid),
    )  # fmt: skip


def _stat(pid: int) -> _Stat | None:
    try:
        # The name stands in parentheses and may hold anything, so what counts comes after the last one (proc(5)).
        fields = (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        return _Stat(int(fields[1]), int(fields[11]) + int(fields[12]), int(fields[19]), int(fields[21]))
    except (OSError, ValueError, IndexError):
        return None


def _boot_time() -> float:
    """Unix time of the boot; it moves when the clock is set."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def _proportional(pid: int) -> int | None:
    """For one's own process, and for those of others with the right to trace them: ours are not dumpable."""
    try:
        lines = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    except (OSError, ValueError, StopIteration):
        return None


def _open_fds(pid: int) -> int | None:
    """Since Linux 6.2 the size of the folder, which needs no right to look into it."""
    folder = PROC / str(pid) / "fd"
    try:
        return folder.stat().st_size or len(os.listdir(folder))
    except OSError:
        return None
