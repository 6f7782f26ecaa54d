"""Users and capabilities: who a process is for the kernel, and that it never becomes anybody else.

SECURITY: all of it holds for the calling thread and those it starts later, so it is done while there is one thread.
"""

import ctypes
import errno
import os
from collections.abc import Collection
from typing import Final

import msgspec

from ipc.walls.syscalls import call, failure, prctl

_PR_CAPBSET_DROP: Final = 24
_PR_SET_SECUREBITS: Final = 28
_PR_SET_NO_NEW_PRIVS: Final = 38
_PR_CAP_AMBIENT: Final = 47
_AMBIENT_CLEAR_ALL: Final = 4
_VERSION_3: Final = 0x20080522

SETGID, SETUID, SETPCAP, KILL, SYS_ADMIN, SYS_CHROOT = 6, 7, 8, 5, 21, 18
"""Numbers of capabilities (linux/capability.h)."""
_MAX_CAPABILITY: Final = 63

_SECUREBITS: Final = 0b11101111
"""NOROOT, NO_SETUID_FIXUP, NO_CAP_AMBIENT_RAISE, each with its lock, and the lock of KEEP_CAPS."""


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


class User(msgspec.Struct, frozen=True):
    """A user and group by number."""

    uid: int
    gid: int


def refuse_new_privileges() -> None:
    """No set-uid program or file capability will ever add a right to this process. Raises OSError."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def become(user: User) -> None:
    """Be this user in every sense, with no other group; root only. Ends PDEATHSIG. Raises OSError."""
    os.setgroups([])
    os.setresgid(user.gid, user.gid, user.gid)
    os.setresuid(user.uid, user.uid, user.uid)


def held() -> frozenset[int]:
    """The capabilities in force for this thread. Raises OSError."""
    header, sets = _Header(_VERSION_3, 0), (_Sets * 2)()
    call("capget", ctypes.byref(header), ctypes.byref(sets))
    bits = sets[0].effective | sets[1].effective << 32
    return frozenset(number for number in range(_MAX_CAPABILITY + 1) if bits >> number & 1)


def keep_capabilities(kept: Collection[int] = ()) -> None:
    """Give up all capabilities but these, in every set, and let none come back (securebits). Raises OSError.

    Without CAP_SETPCAP the bounding set stays: a process without it, and without new privileges, can use none of it.
    """
    prctl(_PR_CAP_AMBIENT, _AMBIENT_CLEAR_ALL)
    if SETPCAP in held():
        if not kept:
            prctl(_PR_SET_SECUREBITS, _SECUREBITS)
        for number in range(_MAX_CAPABILITY + 1):
            if number not in kept and not _drop_from_bounding(number):
                break
    low = sum(1 << number for number in kept if number < 32)
    high = sum(1 << number - 32 for number in kept if number >= 32)
    header, sets = _Header(_VERSION_3, 0), (_Sets * 2)()
    sets[0], sets[1] = _Sets(low, low, 0), _Sets(high, high, 0)
    call("capset", ctypes.byref(header), ctypes.byref(sets))


def _drop_from_bounding(number: int) -> bool:
    """False if this kernel has no capability of this number."""
    try:
        prctl(_PR_CAPBSET_DROP, number)
    except OSError as error:
        if error.errno == errno.EINVAL:
            return False
        raise failure(f"dropping capability {number}") from None
    return True
