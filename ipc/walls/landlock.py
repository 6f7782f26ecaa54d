"""Landlock: which folders a process may still reach, which TCP calls it may make, and whom it may signal.

Degrades by the kernel's ABI: what an older kernel does not know is not asked of it, and `abi` says what there is.
Built in two steps, since the folders must be opened while they still can be: `prepare` returns a ruleset, `restrict`
puts this thread and all that it starts behind it.
"""

import ctypes
import os
import stat
from collections.abc import Iterable
from typing import Final

import msgspec

from ipc.walls.syscalls import call

_CREATE_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_NET_PORT: Final = 2

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE, _MAKE_CHAR, _MAKE_DIR, _MAKE_REG = 1 << 4, 1 << 5, 1 << 6, 1 << 7, 1 << 8
_MAKE_SOCK, _MAKE_FIFO, _MAKE_BLOCK, _MAKE_SYM = 1 << 9, 1 << 10, 1 << 11, 1 << 12
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_BIND_TCP, _CONNECT_TCP = 1 << 0, 1 << 1
_SCOPE_ABSTRACT_UNIX, _SCOPE_SIGNAL = 1 << 0, 1 << 1

READ: Final = _READ_FILE | _READ_DIR
READ_FILES: Final = _READ_FILE
WRITE_FILES: Final = _WRITE_FILE | _TRUNCATE
CHANGE: Final = READ | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _MAKE_SYM | _REFER | _TRUNCATE
"""Read, write, make and remove files and folders; no device, socket or FIFO is made."""
_OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV

_FS_BY_ABI: Final = (0, (1 << 13) - 1, (1 << 14) - 1, (1 << 15) - 1, (1 << 15) - 1, (1 << 16) - 1)
"""Rights that each ABI knows, from ABI 1; later ones know those of the last."""
ABI_NET: Final = 4
ABI_SCOPE: Final = 6


class _Attributes(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


class _Port(ctypes.Structure):
    _fields_ = (("allowed", ctypes.c_uint64), ("port", ctypes.c_uint64))


class PathRule(msgspec.Struct, frozen=True):
    """A file or folder and what may be done beneath it. A missing path needs no rule, unless it is required."""

    path: str
    rights: int
    is_required: bool = False


class Scope(msgspec.Struct, frozen=True):
    """The limits of a ruleset beside files: TCP, and (`is_closed`) signals to others and their abstract sockets."""

    may_bind: bool = False
    may_connect: bool = False
    ports: tuple[int, ...] = ()
    """TCP ports that may be connected to all the same, at any address."""
    is_closed: bool = True


def abi() -> int:
    """The version that this kernel has; 0 for none."""
    try:
        return call("landlock_create_ruleset", None, 0, _CREATE_VERSION)
    except (OSError, KeyError):
        return 0


def prepare(places: Iterable[PathRule], scope: Scope, version: int | None = None) -> int:
    """A descriptor of a ruleset: whatever is no place is refused. `version` is at most the kernel's ABI.

    Raises OSError.
    """
    version = abi() if version is None else version
    fs = _FS_BY_ABI[min(version, len(_FS_BY_ABI) - 1)]
    net = (0 if scope.may_bind else _BIND_TCP) | (0 if scope.may_connect else _CONNECT_TCP)
    attributes = _Attributes(
        fs,
        net if version >= ABI_NET else 0,
        _SCOPE_ABSTRACT_UNIX | _SCOPE_SIGNAL if scope.is_closed and version >= ABI_SCOPE else 0,
    )
    size = 8 if version < ABI_NET else 16 if version < ABI_SCOPE else 24
    ruleset = call("landlock_create_ruleset", ctypes.byref(attributes), size, 0)
    try:
        for place in places:
            _add(ruleset, place, fs)
        for port in scope.ports if version >= ABI_NET else ():
            rule = _Port(_CONNECT_TCP, port)
            call("landlock_add_rule", ruleset, _NET_PORT, ctypes.byref(rule), 0)
    except BaseException:
        os.close(ruleset)
        raise
    return ruleset


def _add(ruleset: int, place: PathRule, known: int) -> None:
    try:
        target = os.open(place.path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        if place.is_required:
            raise
        return
    try:
        rights = place.rights & known
        if not stat.S_ISDIR(os.fstat(target).st_mode):
            rights &= _OF_FILES
        if rights:
            rule = _Beneath(rights, target)
            call("landlock_add_rule", ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(target)


def restrict(ruleset: int) -> None:
    """Put this thread, and those it starts from now on, behind the ruleset, and close it. Needs no_new_privs.

    Raises OSError.
    """
    try:
        call("landlock_restrict_self", ruleset, 0)
    finally:
        os.close(ruleset)
