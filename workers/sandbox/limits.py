"""Resource limits and no_new_privs: what the kernel refuses a worker whatever its profile's host calls are.

Guarantees hard limits that the process can't raise again (unless it is root, which a deployment is not). Never
decides which profile gets what: that is `profiles.py`.
"""

import ctypes
import os
import resource

_PR_SET_NO_NEW_PRIVS = 38

_libc = ctypes.CDLL(None, use_errno=True)

Limits = dict[int, int]
"""`resource.RLIMIT_*` -> value, set as both soft and hard limit."""


def refuse_new_privileges() -> None:
    """No set-uid program or file capability will ever add a right to this process. Raises OSError."""
    if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"no_new_privs: {os.strerror(number)}")


def apply_limits(limits: Limits) -> None:
    """Set every limit, lowering only. Raises OSError or ValueError when the kernel refuses one."""
    for which, wanted in limits.items():
        _, hard = resource.getrlimit(which)
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(which, (value, value))


def data_in_use() -> int:
    """Bytes that RLIMIT_DATA would count for this process now (proc(5), statm)."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[5]) * resource.getpagesize()


def is_root() -> bool:
    """RLIMIT_NPROC binds everybody but root, for whom it would say nothing."""
    return os.geteuid() == 0
