"""What this host lets the gateway have, held against the workers that the configuration wants idle at all times.

A lower bound of what they need, so that only what can't be is refused: a start would wait for spare workers without
end, or fail at the first burst of calls. Connections are bounded by what fits: clients that open them must not take the
descriptors that calls need.
"""

import os
import resource
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ipc.settings import Settings
from supervisor.config import Loaded
from supervisor.pool_shares import PROFILES, divided
from supervisor.problems import Problem

_MIB = 1 << 20
_TASKS, _OPEN_FILES, _MEMORY_MIB = 2, 2, 2
"""Of one idle worker: its main thread and its clock; both ends of its channel with the notary, which the supervisor
keeps; what it does not share with the template."""
_OF_A_FRONT = 128
"""Open files that a front needs beside those of connections and workers, with room to spare."""
_FEWEST_CONNECTIONS = 16
_CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Ceiling:
    """A limit of this host: `most` of what, how many one worker needs, what sets it."""

    what: str
    most: int
    of_one: int
    source: str
    mend: str


def ceilings_here() -> Iterator[Ceiling]:
    """The limits that apply to this process and what it starts."""
    yield from _of_process(resource.RLIMIT_NOFILE, "open files", _OPEN_FILES, "ulimit -n", "LimitNOFILE=")
    if os.geteuid() != 0:  # the kernel counts no processes of root
        yield from _of_process(resource.RLIMIT_NPROC, "processes and threads", _TASKS, "ulimit -u", "LimitNPROC=")
    for name, what, unit, of_one, setting in (
        ("pids.max", "processes and threads", 1, _TASKS, "TasksMax="),
        ("memory.max", "MiB of memory", _MIB, _MEMORY_MIB, "MemoryMax="),
    ):
        least = min(_of_cgroups(name), default=None)
        if least is not None:
            yield Ceiling(what, least // unit, of_one, f"{name} of its control group", setting)


def _of_process(limit: int, what: str, of_one: int, source: str, setting: str) -> Iterator[Ceiling]:
    soft, _ = resource.getrlimit(limit)
    if soft != resource.RLIM_INFINITY:
        yield Ceiling(what, soft, of_one, source, setting)


def _of_cgroups(name: str) -> Iterator[int]:
    """A limit of this process's control group and of every one around it; nothing where there is no such thing."""
    try:
        (own,) = [line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")]
    except (OSError, ValueError):
        return
    group = _CGROUPS / own.strip("/")
    for folder in (group, *group.parents):
        try:
            said = (folder / name).read_text().strip()
        except OSError:
            said = ""
        if said.isdecimal():
            yield int(said)
        if folder == _CGROUPS:
            return


def fitting_connections(settings: Settings) -> int:
    """`limits.max_connections`, or fewer where all listening sockets of a front together could take more open files
    than it may have. `settings` have the pools of one front."""
    most, wanted = resource.getrlimit(resource.RLIMIT_NOFILE)[0], settings.limits.max_connections
    if most == resource.RLIM_INFINITY:
        return wanted
    sockets = 2 + (settings.listen_http_addr is not None) + (settings.metrics.address is not None)
    workers: int = sum(getattr(settings.workers, profile).max for profile in PROFILES)
    return max(min(wanted, (most - _OF_A_FRONT - workers) // sockets), _FEWEST_CONNECTIONS)


def connection_warnings(loaded: Loaded) -> list[Problem]:
    """A warning if open files do not allow `limits.max_connections`."""
    settings = loaded.judged
    if settings is None or not all(map(loaded.is_judged, ("limits", "workers", "front_processes"))):
        return []
    wanted, fitting = settings.limits.max_connections, fitting_connections(divided(settings))
    if fitting >= wanted:
        return []
    text = f"limits.max_connections = {wanted}: the limit of open files allows {fitting} for each listening socket."
    mend = "Lower it, or raise the limit (ulimit -n, LimitNOFILE=)."
    return [loaded.document.problem(("limits", "max_connections"), text, mend)]


def ceiling_problems(loaded: Loaded, ceilings: Iterable[Ceiling]) -> list[Problem]:
    """Limits below which `min_spare` of the pools, all fronts together, can't be had."""
    settings = loaded.judged
    if settings is None or not (loaded.is_judged("workers") and loaded.is_judged("front_processes")):
        return []
    share = divided(settings).workers
    spare = {name: getattr(share, name).min_spare * settings.front_processes for name in PROFILES}
    count, largest = sum(spare.values()), max(PROFILES, key=lambda name: spare[name])
    path = ("workers", largest, "min_spare")
    told = []
    for one in ceilings:
        if count * one.of_one > one.most:
            wanted = getattr(settings.workers, largest).min_spare
            text = (
                f"{'.'.join(path)} = {wanted}: the {count} spare workers of all pools need {count * one.of_one} "
                f"{one.what}, and {one.most} are allowed here ({one.source})."
            )
            told.append(loaded.document.problem(path, text, f"Lower min_spare, or raise the limit ({one.mend})."))
    return told
