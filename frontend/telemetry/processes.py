"""The gateway's processes as the kernel sees them: the supervisor names them, /proc has their usage. Other fronts
report the processes that they know (frontend/telemetry/present.py).

A process is known by the pid that it was announced with and counts only while its parent is the one it must have, so
that a reused pid is never counted. Titles are not read: a process writes its own. A value that the kernel hides from
this user is absent, never 0.
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from frontend.telemetry.present import AnnouncedProcess, Present

PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Usage(NamedTuple):
    """One process: times in seconds, sizes in bytes."""

    kind: str
    """supervisor, front, notary, deliverer, broker, exporter, policy, template, or worker and its profile."""
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

    def __init__(self, number: int, fronts: int = 1) -> None:
        """`number` is the front's own, and its policy process's; its workers have every so many-eth number from it on
        as there are `fronts`."""
        self._number = str(number)
        self._fronts = fronts
        self._supervisor = os.getppid()
        self._notary: int | None = None
        self._deliverer: int | None = None
        self._broker: int | None = None
        self._exporter: int | None = None
        self._policy: int | None = None
        self._workers: dict[str, AnnouncedProcess] = {}

    def notary_attached(self, pid: int) -> None:
        """A notary takes the place of the one before it."""
        self._notary = pid

    def deliverer_started(self, pid: int) -> None:
        """A deliverer takes the place of the one before it."""
        self._deliverer = pid

    def broker_attached(self, pid: int) -> None:
        """A broker takes the place of the one before it."""
        self._broker = pid

    def exporter_attached(self, pid: int) -> None:
        """An exporter takes the place of the one before it."""
        self._exporter = pid

    def policy_attached(self, pid: int) -> None:
        """A policy process takes the place of the one before it."""
        self._policy = pid

    def worker_attached(self, worker_id: str, profile: str, pid: int) -> None:
        """A worker takes the first free place of its profile."""
        kind = f"worker {profile}"
        taken = {one.number for one in self._workers.values() if one.kind == kind}
        places = (str(int(self._number) + turn * self._fronts) for turn in range(len(taken) + 1))
        self._workers[worker_id] = AnnouncedProcess(kind, next(one for one in places if one not in taken), pid)

    def worker_gone(self, worker_id: str) -> None:
        """A worker's place is free."""
        self._workers.pop(worker_id, None)

    def announced(self) -> tuple[AnnouncedProcess, ...]:
        """Those that no other front knows: itself, its policy process and its workers."""
        policy = () if self._policy is None else (AnnouncedProcess("policy", self._number, self._policy),)
        return (AnnouncedProcess("front", self._number, os.getpid()), *policy, *self._workers.values())

    def read(self, others: Sequence[Present] = ()) -> list[Usage]:
        """The present usage of each process. Never raises: a process that is gone, or that the kernel hides, is left
        out."""
        booted, own = _boot_time(), self.announced()
        known = [*own, *(one for other in others for one in other.processes)]
        workers = [one for one in known if one.kind.startswith("worker ")]
        wanted: list[tuple[AnnouncedProcess, int | None]] = [
            (AnnouncedProcess("supervisor", "1", self._supervisor), None), (own[0], None)
        ]  # fmt: skip
        if self._notary is not None:
            wanted.append((AnnouncedProcess("notary", "1", self._notary), self._supervisor))
        if self._deliverer is not None:
            wanted.append((AnnouncedProcess("deliverer", "1", self._deliverer), self._supervisor))
        if self._broker is not None:
            wanted.append((AnnouncedProcess("broker", "1", self._broker), self._supervisor))
        if self._exporter is not None:
            wanted.append((AnnouncedProcess("exporter", "1", self._exporter), self._supervisor))
        wanted += [(one, self._supervisor) for one in known if one.kind in ("front", "policy") and one is not own[0]]
        template = self._template(workers)
        if template is not None:
            wanted.append((AnnouncedProcess("template", "1", template), self._supervisor))
            wanted += [(worker, template) for worker in workers]
        usages = [usage for one, parent in wanted if (usage := _usage(one, parent, booted)) is not None]
        told = {one.number: other.proportional for other in others for one in other.processes if one.kind == "front"}
        return [
            one._replace(proportional=told.get(one.number)) if one.kind == "front" and one.proportional is None else one
            for one in usages
        ]

    @staticmethod
    def proportional() -> int | None:
        """The proportional share of this front's memory. Blocks for a millisecond."""
        return _proportional(os.getpid())

    def _template(self, workers: list[AnnouncedProcess]) -> int | None:
        """A front is not told of the template: it is the parent of its workers, and the supervisor's child."""
        for pid in (one.pid for one in workers):
            worker = _stat(pid)
            parent = None if worker is None else _stat(worker.parent)
            if worker is not None and parent is not None and parent.parent == self._supervisor:
                return worker.parent
        return None


def _usage(process: AnnouncedProcess, parent: int | None, booted: float) -> Usage | None:
    kind, number, pid = process.kind, process.number, process.pid
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
