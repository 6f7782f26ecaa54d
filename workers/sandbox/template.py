"""The walls of the template: no program is run, nothing of root's is kept but what builds the walls of workers.

It has no Landlock: the kernel lets no process mount that has one, and workers leave the host's files by a mount of
their own. A compiler, which reads a stranger's bytes, is walled in where it is forked.
"""

import resource
from pathlib import Path

from ipc.walls import given as names
from ipc.walls.calls import forbidden
from ipc.walls.confining import Walls
from ipc.walls.given import Given
from ipc.walls.landlock import CHANGE, PathRule
from ipc.walls.privileges import KILL, SETGID, SETPCAP, SETUID, SYS_ADMIN, SYS_CHROOT
from ipc.walls.seccomp import compile_rules

OOM_SCORE = 500
"""Before every process that decides or records: what strangers' code uses up is taken from those who run it."""
_BECOMES = (SETUID, SETGID, KILL)
"""Workers become another user, and are killed by their parent all the same."""
_LEAVES = (SETPCAP, SYS_ADMIN, SYS_CHROOT)
"""Without user namespaces it takes these to leave the others."""


def be_ended_first() -> None:
    """Have the kernel end this process and its children first where memory is short. Call before anything else: a
    process that is not dumpable can't."""
    Path("/proc/self/oom_score_adj").write_text(str(OOM_SCORE))


def walls(given: Given) -> Walls:
    """The walls around the template."""
    needs_more = names.USER_NAMESPACE in given.missing
    return Walls(
        filter=compile_rules(forbidden(forks=True), is_list_of_refused=True),
        has_files=True,
        capabilities=(*_BECOMES, *_LEAVES) if needs_more else _BECOMES,
        limits={resource.RLIMIT_CORE: 0},
        has_environment=True,
    )


def compiler_walls(folder: str | None) -> Walls:
    """The walls around a compiler, which writes to this folder or to none."""
    return Walls(
        filter=compile_rules(forbidden(), is_list_of_refused=True),
        places=() if folder is None else (PathRule(folder, CHANGE, is_required=True),),
        namespaces=frozenset(
            {names.USER_NAMESPACE, names.NETWORK_NAMESPACE, names.IPC_NAMESPACE, names.MOUNT_NAMESPACE}
        ),
    )
