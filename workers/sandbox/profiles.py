"""The walls of each worker profile: prepare, then enter, every failed step fatal.

A profile is what a manifest's `required_imports` select: compute, http or fs. `prepare` runs while the process may
still start threads and open files; after `enter` it may not get more than the profile needs. Rejected: a degraded mode
that goes on without a wall; a worker that can't build its walls leaves with Exit.SANDBOX.
"""

import os
import resource
from dataclasses import dataclass

from workers.sandbox.limits import Limits, apply_limits, is_root, refuse_new_privileges

MIB = 1024 * 1024

WORKER_DATA_BYTES = 1280 * MIB
"""RLIMIT_DATA: the largest guest memory (1 GiB) and what the host needs beside it. The limit of a single call is set
on its store; this one holds when that one fails."""

MAX_GUEST_MEMORY_MB = 1024
"""More than this an action can't use: the walls of a worker stand before its first plan arrives."""


YIELDING = 15
"""Niceness of the thread that runs strangers' code: whatever it computes, the processes that decide go first."""


class SandboxRefused(Exception):
    """The operating system refused a wall. The process must leave with Exit.SANDBOX."""


@dataclass(frozen=True)
class Profile:
    """What a worker of one profile may do. `interfaces` are short names of host interfaces a plan may require."""

    name: str
    interfaces: frozenset[str]
    open_files: int

    @property
    def limits(self) -> Limits:
        """Resource limits of this profile."""
        limits = {
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_DATA: WORKER_DATA_BYTES,
            resource.RLIMIT_NOFILE: self.open_files,
        }
        if not is_root():
            limits[resource.RLIMIT_NPROC] = 0
        return limits


PROFILES = {
    profile.name: profile
    for profile in (
        Profile("compute", frozenset({"log", "clock"}), open_files=8),
        Profile("http", frozenset({"http", "log", "clock"}), open_files=32),
        Profile("fs", frozenset({"fs", "log", "clock"}), open_files=32),
    )
}


def prepare(name: str) -> Profile:
    """The profile of this name. Raises SandboxRefused when there is none: no walls are known for it."""
    profile = PROFILES.get(name)
    if profile is None:
        raise SandboxRefused(f"no profile {name!r}")
    return profile


def enter(profile: Profile) -> None:
    """Build the walls, for good. Call once, after the last thread has started. Raises SandboxRefused."""
    try:
        refuse_new_privileges()
        apply_limits(profile.limits)
        os.nice(YIELDING)
    except (OSError, ValueError) as error:
        raise SandboxRefused(str(error)) from error
