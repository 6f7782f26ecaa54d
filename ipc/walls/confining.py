"""Building the walls of one process in the one order in which they can be built; every failed step is fatal.

`Walls` says what a process gets. `confine` is called while it has one thread, `seal` after it has started its last one:
the first takes away its user and its view of the system, the second its system calls. Rejected: going on without a wall
that fails. A wall that the kernel lacks is named in `Given` (`ipc/walls/found.py`); any other missing wall is fatal.
"""

import os
from collections.abc import Collection
from functools import cached_property

import msgspec

from ipc.process.parent import allow_core_dumps, die_with_parent, refuse_core_dumps
from ipc.process.private_files import note_owners
from ipc.walls import given as names
from ipc.walls.given import Given
from ipc.walls.landlock import PathRule, Scope, prepare, restrict
from ipc.walls.limits import Limits, apply_limits
from ipc.walls.namespaces import IPC, MOUNT, NETWORK, USER, keep_mounts_private, see_itself, see_no_files, unshare
from ipc.walls.privileges import SYS_ADMIN, User, become, held, keep_capabilities, refuse_new_privileges
from ipc.walls.seccomp import install

_KINDS = {names.NETWORK_NAMESPACE: NETWORK, names.IPC_NAMESPACE: IPC, names.MOUNT_NAMESPACE: MOUNT}


class WallRefused(Exception):
    """The operating system refused a wall. The process must leave with Exit.SANDBOX."""


class Walls(msgspec.Struct, frozen=True):
    """The walls of one kind of process."""

    filter: bytes
    places: tuple[PathRule, ...] = ()
    """Empty: it reaches no file at all, unless it `has_files`."""
    has_files: bool = False
    """It reaches whatever its user may: there is no Landlock."""
    scope: Scope = msgspec.field(default_factory=Scope)
    namespaces: frozenset[str] = frozenset()
    """Those of its own, by the names in `ipc/walls/given.py`."""
    user: User | None = None
    """The user that it becomes; None: it keeps its user."""
    capabilities: Collection[int] = ()
    """The capabilities that it keeps, if it has them."""
    limits: Limits = msgspec.field(default_factory=dict)
    checks_owners: bool = False
    """It looks at whose files are: in its user namespace it sees its own user as such."""
    private_files: Collection[str | None] = ()
    """Files whose owner it looks at, which may be root's: that is noted before it enters a user namespace."""
    has_environment: bool = False


class Confinement:
    """The walls of this process, between their two steps. Raises OSError or ValueError where a step fails."""

    def __init__(self, walls: Walls, given: Given) -> None:
        """Opens what can't be opened later."""
        self._walls = walls
        self._given = given
        note_owners(walls.private_files)
        self._ruleset = (
            prepare(walls.places, walls.scope) if self._has(names.LANDLOCK) and not walls.has_files else None
        )

    def confine(self) -> None:
        """All but limits and filter. One thread; nothing can be opened afterwards but in the places."""
        parent = os.getppid()
        self._leave_namespaces()
        keep_capabilities(held().intersection(self._walls.capabilities))
        refuse_new_privileges()
        # SECURITY: a process that changed its user or namespace is dumpable again, and has lost PDEATHSIG.
        refuse_core_dumps()
        die_with_parent(parent)
        if self._ruleset is not None:
            restrict(self._ruleset)
        if not self._walls.has_environment:
            os.environ.clear()

    def seal(self) -> None:
        """Limits and filter, on all threads. After this none can be started where the filter has no `clone`."""
        apply_limits(self._walls.limits)
        if self._has(names.SECCOMP):
            install(self._walls.filter)

    def _has(self, wall: str) -> bool:
        return wall not in self._given.missing

    @cached_property
    def _wanted(self) -> int:
        return sum(_KINDS[name] for name in self._walls.namespaces if name in _KINDS and self._has(name))

    def _leave_namespaces(self) -> None:
        user = self._walls.user
        has_user_namespace = self._has(names.USER_NAMESPACE) and names.USER_NAMESPACE in self._walls.namespaces
        if not has_user_namespace:
            if self._wanted and SYS_ADMIN in held():
                unshare(self._wanted)
                self._leave_mounts()
            if user is not None:
                become(user)
            return
        if user is not None:
            become(user)
        whom = os.geteuid(), os.getegid()
        if self._walls.checks_owners:
            allow_core_dumps()  # who is not dumpable can't say whom it maps; nothing is held yet
        unshare(USER | self._wanted)
        if self._walls.checks_owners:
            see_itself(*whom)
        self._leave_mounts()

    def _leave_mounts(self) -> None:
        if not self._wanted & MOUNT:
            return
        if self._has(names.EMPTY_ROOT) and not self._walls.places:
            see_no_files()
        else:
            keep_mounts_private()


def enter(walls: Walls, given: Given) -> None:
    """Build them, for good; the process must have one thread. Raises WallRefused."""
    try:
        confinement = Confinement(walls, given)
        confinement.confine()
        confinement.seal()
    except (OSError, ValueError) as error:
        raise WallRefused(str(error)) from error
