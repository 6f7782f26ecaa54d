"""What the kernel gives for walls, as the supervisor found it once and told its children."""

from typing import Final

import msgspec

from ipc.walls.privileges import User

SECCOMP: Final = "seccomp"
LANDLOCK: Final = "landlock"
USER_NAMESPACE: Final = "user namespace"
NETWORK_NAMESPACE: Final = "network namespace"
IPC_NAMESPACE: Final = "ipc namespace"
MOUNT_NAMESPACE: Final = "mount namespace"
EMPTY_ROOT: Final = "empty root"
WALLS: Final = (
    SECCOMP, LANDLOCK, USER_NAMESPACE, NETWORK_NAMESPACE, IPC_NAMESPACE, MOUNT_NAMESPACE, EMPTY_ROOT
)  # fmt: skip
"""Those that a kernel, or what a container runtime leaves of it, may lack. All others every kernel has."""


class Given(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is there. SECURITY: a wall that is not named in `missing` is built, or the process does not serve."""

    missing: tuple[str, ...] = ()
    uid: int | None = None
    """Of processes that need no file of the gateway, when root started it."""
    gid: int | None = None

    @property
    def user(self) -> User | None:
        """The user of those processes; None: the gateway's own."""
        return None if self.uid is None or self.gid is None else User(self.uid, self.gid)
