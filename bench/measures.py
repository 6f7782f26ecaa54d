"""Figures of processes from the kernel: processor time and memory. Figures in seconds and bytes."""

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import psutil

LONGEST_WAIT = 30.0
SERVERS = frozenset({"redis-server", "postgres", "opa"})


def cpu_seconds(pid: int) -> float:
    """Processor time of all threads of a process so far, to the nanosecond (schedstat); 0 when it is gone."""
    total = 0
    for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            total += int(task.read_text().split()[0])
        except (OSError, IndexError, ValueError):
            continue
    return total / 1e9


def kind_of(pid: int) -> str:
    """The kind of a process by its title: front, policy, template, worker compute, …; a server by its name."""
    try:
        process = psutil.Process(pid)
        title, name = " ".join(process.cmdline()), process.name()
    except psutil.Error:
        return "gone"
    if name in SERVERS:
        return name
    words = title.removeprefix("gateway: ").split()
    return " ".join(words[:2]) if words[:1] == ["worker"] else words[0] if title.startswith("gateway: ") else "other"


def family(pid: int) -> list[int]:
    """A process and all below it."""
    return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]


def families(pids: Iterable[int]) -> list[int]:
    """The processes of several families."""
    return [one for pid in pids for one in family(pid)]


def usage_of(pids: Iterable[int]) -> dict[int, tuple[str, float]]:
    """Kind and processor time so far of each process."""
    return {pid: (kind_of(pid), cpu_seconds(pid)) for pid in pids}


def spent(before: Mapping[int, tuple[str, float]], after: Mapping[int, tuple[str, float]]) -> dict[str, float]:
    """Processor time between two readings, summed by kind. A process that started meanwhile counts whole; what one used
    that has ended meanwhile can't be read any more.
    """
    used: dict[str, float] = {}
    for pid, (kind, seconds) in after.items():
        earlier = before[pid][1] if pid in before else 0.0
        used[kind] = used.get(kind, 0.0) + seconds - earlier
    return used


def pss_by_kind(pids: Iterable[int]) -> dict[str, list[int]]:
    """Proportional set size of each process, by kind."""
    sizes: dict[str, list[int]] = {}
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        pss = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
        sizes.setdefault(kind_of(pid), []).append(pss)
    return sizes


def quantile(sorted_values: list[float], part: float) -> float:
    """The value below which `part` of them lie; 0 for none."""
    if not sorted_values:
        return 0.0
    return sorted_values[min(int(part * len(sorted_values)), len(sorted_values) - 1)]


def wait_until(condition: Callable[[], Any], what: str, seconds: float = LONGEST_WAIT) -> Any:
    """Ask until true; raises TimeoutError with `what`."""
    deadline = time.monotonic() + seconds
    while not (held := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.001)
    return held
