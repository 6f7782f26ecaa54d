"""Checks the limits of this host against the spare workers that the configuration asks for.

The check uses a lower bound of their need, so it refuses only configurations that can't work: a start would wait for
spare workers forever, or fail at the first burst of calls. Connections are limited to what fits: clients that open them
must not take the descriptors that calls need. Sizes that the configuration leaves to the host ("auto") become numbers
here.
"""

import os
import resource
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ipc.effects import PROFILES
from ipc.limits import HTTP_WORKER_THREADS
from ipc.settings import AUTO, LEAST_CALLS, LEAST_IN_FLIGHT, MOST_CALLS, Settings
from supervisor.settings.config import Loaded
from supervisor.settings.pool_shares import divided
from supervisor.settings.problems import Problem

_MIB = 1 << 20
_TASKS, _OPEN_FILES, _MEMORY_MIB = 2, 2, 2
"""An idle worker needs at least this: its main thread and its clock; both ends of its channel with the notary, which
the supervisor keeps; the memory that it does not share with the template."""
_CALL_TASKS, _CALL_OPEN_FILES, _CALL_MEMORY_MIB = 8, 4, 12
"""Twice the need of an http call with a worker to itself: half of each limit is for everything else."""
_FEWEST_HTTP_WORKERS = 3
"""Least number for one front: with fewer of them an action alone could use all."""
_OF_A_FRONT = 128
"""Open files that a front needs beside those of connections and workers, with room to spare."""
_FEWEST_CONNECTIONS = 16
_OWN_CGROUPS, _CGROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
_FIRST_VERSION = {"pids.max": ("pids", "pids.max"), "memory.max": ("memory", "memory.limit_in_bytes")}
"""Limit -> the controller that has it in the first version of control groups, and its name there."""


class Ceiling(msgspec.Struct, frozen=True):
    """A limit of this host: `most` of what, how many one idle worker needs, what sets it; how many of `most` there must
    be for each http call; how many an http worker needs, where that is more."""

    what: str
    most: int
    of_one: int
    source: str
    mend: str
    of_call: int = 1
    of_http: int = 0


def ceilings_here(own: Path = _OWN_CGROUPS, mounted: Path = _CGROUPS) -> Iterator[Ceiling]:
    """The limits that apply to this process and its children. `own` names its control groups, below `mounted`."""
    yield from _of_process(
        resource.RLIMIT_NOFILE, "open files", _OPEN_FILES, "ulimit -n", "LimitNOFILE=", _CALL_OPEN_FILES
    )
    # The kernel counts no processes of root, but those of the user that root gives its workers.
    what = "processes and threads"
    for one in _of_process(resource.RLIMIT_NPROC, what, _TASKS, "ulimit -u", "LimitNPROC=", _CALL_TASKS):
        yield replace(one, of_http=HTTP_WORKER_THREADS)
    for name, what, unit, of_one, setting, of_call, of_http in (
        ("pids.max", "processes and threads", 1, _TASKS, "TasksMax=", _CALL_TASKS, HTTP_WORKER_THREADS),
        ("memory.max", "MiB of memory", _MIB, _MEMORY_MIB, "MemoryMax=", _CALL_MEMORY_MIB, 0),
    ):
        least = min(_of_cgroups(name, own, mounted), default=None)
        if least is not None:
            yield Ceiling(what, least // unit, of_one, f"{name} of its control group", setting, of_call, of_http)


def _of_process(limit: int, what: str, of_one: int, source: str, setting: str, of_call: int) -> Iterator[Ceiling]:
    soft, _ = resource.getrlimit(limit)
    if soft != resource.RLIM_INFINITY:
        yield Ceiling(what, soft, of_one, source, setting, of_call)


def _of_cgroups(name: str, own: Path, mounted: Path) -> Iterator[int]:
    """A limit of this process's control groups, of either version, and of every one around them."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    controller, older_name = _FIRST_VERSION[name]
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if not controllers:
            yield from _of_group(name, mounted, group)
        elif controller in controllers.split(","):
            yield from _of_group(older_name, mounted / controller, group)


def _of_group(name: str, top: Path, own: str) -> Iterator[int]:
    """A container's group may have another name outside: within, the topmost folder is the group itself."""
    group = top / own.strip("/")
    for folder in (group, *group.parents):
        try:
            said = (folder / name).read_text().strip()
        except OSError:
            said = ""
        if said.isdecimal():
            yield int(said)
        if folder == top:
            return


def sized(settings: Settings, ceilings: Iterable[Ceiling], memory_mib: int | None = None) -> Settings:
    """The same settings with a number for each "auto", and with no more http workers than half of the threads allow:
    without threads no other process of the gateway can work, either. `memory_mib`: of the host, where another one is
    meant."""
    http, limits, known = settings.workers.http, settings.limits, tuple(ceilings)
    if fitting_workers := [one.most // 2 // one.of_http for one in known if one.of_http]:
        fewest = max(_FEWEST_HTTP_WORKERS * settings.front_processes, http.min_spare)
        http = replace(http, workers=max(min(fitting_workers), fewest))
    if http.max == AUTO:
        memory = _memory_mib() if memory_mib is None else memory_mib
        fitting = min(memory // _CALL_MEMORY_MIB, *(one.most // one.of_call for one in known), MOST_CALLS)
        http = replace(http, max=max(fitting, LEAST_CALLS, http.min_spare))
    if limits.max_in_flight == AUTO:  # one session may have two thirds of them, and some only wait
        limits = replace(limits, max_in_flight=max(2 * http.most, LEAST_IN_FLIGHT))
    return replace(settings, workers=replace(settings.workers, http=http), limits=limits)


def _memory_mib() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _MIB


def fitting_connections(settings: Settings) -> int:
    """`limits.max_connections`, or fewer where all listening sockets of a front together could take more open files
    than it may have. `settings` have the pools of one front."""
    most, wanted = resource.getrlimit(resource.RLIMIT_NOFILE)[0], settings.limits.max_connections
    if most == resource.RLIM_INFINITY:
        return wanted
    sockets = 2 + (settings.listen_http_addr is not None) + (settings.metrics.address is not None)
    workers: int = sum(getattr(settings.workers, profile).most_workers for profile in PROFILES)
    return max(min(wanted, (most - _OF_A_FRONT - workers) // sockets), _FEWEST_CONNECTIONS)


def connection_warnings(loaded: Loaded) -> list[Problem]:
    """A warning if open files do not allow `limits.max_connections`."""
    settings = loaded.judged
    if settings is None or not all(map(loaded.is_judged, ("limits", "workers", "front_processes"))):
        return []
    wanted, fitting = settings.limits.max_connections, fitting_connections(divided(sized(settings, ceilings_here())))
    if fitting >= wanted:
        return []
    text = f"limits.max_connections = {wanted}: the limit of open files allows {fitting} for each listening socket."
    mend = "Lower it, or raise the limit (ulimit -n, LimitNOFILE=)."
    return [loaded.document.problem(("limits", "max_connections"), text, mend)]


def ceiling_problems(loaded: Loaded, ceilings: Iterable[Ceiling]) -> list[Problem]:
    """Return a problem for each limit that is too low for `min_spare` of the pools, summed over all fronts."""
    settings = loaded.judged
    if settings is None or not (loaded.is_judged("workers") and loaded.is_judged("front_processes")):
        return []
    share = divided(settings).workers
    spare = {name: getattr(share, name).min_spare * settings.front_processes for name in PROFILES}
    count, largest = sum(spare.values()), max(PROFILES, key=lambda name: spare[name])
    path = ("workers", largest, "min_spare")
    told = []
    for one in ceilings:
        needed = count * one.of_one + spare["http"] * max(one.of_http - one.of_one, 0)
        if needed > one.most:
            wanted = getattr(settings.workers, largest).min_spare
            text = (
                f"{'.'.join(path)} = {wanted}: the {count} spare workers of all pools need {needed} "
                f"{one.what}, and {one.most} are allowed here ({one.source})."
            )
            told.append(loaded.document.problem(path, text, f"Lower min_spare, or raise the limit ({one.mend})."))
    return told
