"""Exit codes: the vocabulary with which a child tells its supervisor why it left.

The supervisor decides restart, back-off or halt from the code alone; the same numbers are what
``gateway run`` and ``gateway dev`` return to systemd or a shell. `docs/operations.md` lists them.
"""

from enum import IntEnum


class Exit(IntEnum):
    """Why a process of the gateway ended. Values follow sysexits(3) where one fits."""

    OK = 0
    """Asked to stop, stopped."""
    FAILED = 1
    """An unexpected error; the log has the stack trace."""
    USAGE = 2
    """The command line does not parse."""
    RECYCLED = 10
    """A worker served its share of calls, or was retired; not a fault."""
    ORPHANED = 11
    """The parent was gone before PDEATHSIG could be armed, or a channel to it closed."""
    PROTOCOL = 12
    """The peer sent what the session table does not allow in this state."""
    SANDBOX = 13
    """The operating system refused a wall that the profile needs. Never retried."""
    MODULE = 14
    """A module could not be mapped in a process that must serve it."""
    MEMORY = 15
    """A policy process took more memory than it may."""
    REPLACED = 16
    """The gateway's files were replaced after its start, and it needed another process."""
    CHECK_FAILED = 8
    """`gateway ledger verify` found a break."""
    ROLLED_BACK = 9
    """The ledger is shorter than its last checkpoint, or another one (docs/evidence.md)."""
    UNAVAILABLE = 69
    """A dependency that start-up needs is not there (store, ledger, port in use)."""
    NO_PERMISSION = 77
    """A folder or file cannot be written or read."""
    CONFIG = 78
    """The configuration, a policy or a question is refused; every problem has been printed."""
    LOCKED = 75
    """The state directory is in use by another gateway."""
    KILLED = 137
    """The hard deadline passed, and the remaining processes were killed."""


RESTART_IS_POINTLESS = frozenset({
    Exit.CONFIG, Exit.SANDBOX, Exit.NO_PERMISSION, Exit.LOCKED, Exit.USAGE, Exit.ROLLED_BACK
})  # fmt: skip
"""A child that leaves with one of these would leave the same way again: the supervisor halts."""
