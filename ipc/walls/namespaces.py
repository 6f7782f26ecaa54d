"""Namespaces: a process that sees no network, no memory shared by others, no mount of the host and no user but itself.

A user namespace without any mapping comes first: in it every process may make the others, and as whom it works towards
the outside stays what it was. SECURITY: needs a process of one thread; ends PDEATHSIG, which the caller sets again.
"""

import ctypes
import os
from typing import Final

from ipc.walls.syscalls import call, failure

MOUNT: Final = 0x00020000
IPC: Final = 0x08000000
USER: Final = 0x10000000
NETWORK: Final = 0x40000000

_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 1, 2, 4, 8, 0x4000, 0x40000
_MOUNT_POINT: Final = b"/tmp"

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(kinds: int) -> None:
    """Leave namespaces of these kinds for fresh ones. Raises OSError."""
    call("unshare", kinds)


def see_itself(uid: int, gid: int) -> None:
    """In a fresh user namespace: this user and group keep their numbers, all others look the same. Raises OSError.

    For a process that checks whose its files are. Must come while the process is dumpable.
    """
    for name, line in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        descriptor = os.open(f"/proc/self/{name}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)


def keep_mounts_private() -> None:
    """In a mount namespace of its own: what is mounted here shows nowhere else, nor the other way. Raises OSError."""
    _mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE)


def see_no_files() -> None:
    """Make an empty folder that can't be written the root of this process. Raises OSError.

    Open descriptors stay open. SECURITY: without capabilities there is no way back.
    """
    keep_mounts_private()
    flags = _MS_RDONLY | _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
    _mount(b"none", _MOUNT_POINT, b"tmpfs", flags, b"size=4k,nr_inodes=1,mode=555")
    os.chdir(_MOUNT_POINT)
    os.chroot(".")


def _mount(source: bytes, target: bytes, kind: bytes | None, flags: int, options: bytes | None = None) -> None:
    if _libc.mount(source, target, kind, ctypes.c_ulong(flags), options) != 0:
        raise failure("mount")
