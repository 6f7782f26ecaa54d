"""The walls that the kernel offers, as the supervisor found them once and told its children."""

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
OWN_USER: Final = "user of its own"
WALLS: Final = (
    SECCOMP, LANDLOCK, USER_NAMESPACE, NETWORK_NAMESPACE, IPC_NAMESPACE, MOUNT_NAMESPACE, EMPTY_ROOT, OWN_USER
)  # fmt: skip
"""Those that a kernel, or what a container runtime leaves of it, may lack. All others every kernel has."""


class Given(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The walls that exist. SECURITY: a wall that is not named in `missing` is built, or the process does not serve."""

    missing: tuple[str, ...] = ()
    uid: int | None = None
    """The user of processes that need no file of the gateway, if root started it."""
    gid: int | None = None

    def __str__(self) -> str:
        """As an argument of a command line; `parse` reads it."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def parse(cls, text: str) -> "Given":
        """Raises ValueError."""
        return msgspec.json.decode(text, type=cls)

    @property
    def user(self) -> User | None:
        """The user of those processes; None: the gateway's own."""
        return None if self.uid is None or self.gid is None else User(self.uid, self.gid)
