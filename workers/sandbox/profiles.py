"""The walls of each worker profile: prepare, then enter, every failed step fatal.

A profile is what a manifest's `required_imports` select: compute, http or fs. `prepare` opens what must be opened while
it can be; `enter` builds the walls around the start of the worker's threads. Rejected: a worker that goes on without a
wall; one that can't build its walls leaves with Exit.SANDBOX. Only what the supervisor found missing, and was allowed
to do without, is not built.
"""

import os
import resource
import sys
from collections.abc import Callable

import msgspec

from ipc.effects import EFFECTS, WITHOUT_EFFECT
from ipc.walls import given as names
from ipc.walls.confining import Confinement, WallRefused, Walls
from ipc.walls.given import Given
from ipc.walls.landlock import Scope
from ipc.walls.limits import Limits, can_forbid_files
from ipc.walls.places import outside_places
from workers.sandbox.effects import RIGHTS, EffectRights
from workers.sandbox.filters import program_of
from workers.sandbox.places import WalledPaths, owner_of_files

MIB = 1024 * 1024

WORKER_DATA_BYTES = 1280 * MIB
"""RLIMIT_DATA: the largest guest memory (1 GiB) and what the host needs beside it. The limit of a single call is set
on its store; this one holds when that one fails."""

MAX_GUEST_MEMORY_MB = 1024
"""More than this an action can't use: the walls of a worker stand before its first plan arrives."""


YIELDING = 15
"""Niceness of the thread that runs strangers' code: whatever it computes, the processes that decide go first."""
_APART = frozenset({names.USER_NAMESPACE, names.IPC_NAMESPACE, names.MOUNT_NAMESPACE})


class Profile(msgspec.Struct, frozen=True):
    """Workers of one profile. `interfaces` are short names of host interfaces a plan may require."""

    name: str
    interfaces: frozenset[str]
    rights: EffectRights

    @property
    def limits(self) -> Limits:
        """Resource limits of this profile."""
        limits = {
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_DATA: WORKER_DATA_BYTES,
            resource.RLIMIT_NOFILE: self.rights.open_files,
            resource.RLIMIT_NPROC: 0,
        }
        if can_forbid_files():
            limits[resource.RLIMIT_FSIZE] = self.rights.largest_file
        return limits

    def warm_up(self) -> None:
        """Compute once, in the template, what all workers of this profile have in common."""
        program_of(self.rights.system_calls)
        if self.rights.may_connect:
            outside_places()

    def opens(self, files_dir: str) -> str | None:
        """The path that a worker of this profile opens by name, and that may be replaced later."""
        return self.rights.opens(files_dir)

    def walls(self, given: Given, files_dir: str) -> Walls:
        """The walls around a worker of this profile."""
        rights = self.rights
        return Walls(
            filter=program_of(rights.system_calls),
            places=rights.places(files_dir),
            scope=Scope(may_connect=rights.may_connect),
            namespaces=_APART if rights.may_connect else _APART | {names.NETWORK_NAMESPACE},
            # Files of actions are the gateway's user's, unless their folder was given to the other one.
            user=owner_of_files(files_dir, given.user) if rights.largest_file else given.user,
            limits=self.limits,
        )


PROFILES = {
    name: Profile(name, frozenset({*WITHOUT_EFFECT, *({name} & {*EFFECTS})}), rights) for name, rights in RIGHTS.items()
}


class PreparedProfile(msgspec.Struct, frozen=True):
    """A profile whose walls can be built."""

    profile: Profile
    confinement: Confinement
    standing: WalledPaths
    """The places that this worker opens by name, as they were before the walls stood."""


def prepare(name: str, given: Given, files_dir: str) -> PreparedProfile:
    """Open what the walls of this profile need. Raises WallRefused, also for a profile that does not exist."""
    profile = PROFILES.get(name)
    if profile is None:
        raise WallRefused(f"no profile {name!r}")
    try:
        confinement = Confinement(profile.walls(given, files_dir), given)
        return PreparedProfile(profile, confinement, WalledPaths(profile.opens(files_dir)))
    except (OSError, ValueError) as error:
        raise WallRefused(str(error)) from error


def enter(prepared: PreparedProfile, start_threads: Callable[[], None]) -> None:
    """Build the walls, for good; the process must have one thread. `start_threads` starts all that it will ever have,
    in the one moment when they can be started and have the walls. Raises WallRefused."""
    try:
        prepared.confinement.confine()
        start_threads()
        os.nice(YIELDING)
        # A module that was not loaded by now can't be: said as ImportError, before the kernel is asked for a file.
        sys.meta_path.clear()
        prepared.confinement.seal()
    except (OSError, ValueError, RuntimeError) as error:
        raise WallRefused(str(error)) from error
