"""Resource limits: what the kernel refuses a process whatever else it may do.

Guarantees hard limits that the process can't raise again. Never decides which process gets what.
"""

import os
import resource
import stat

Limits = dict[int, int]
"""`resource.RLIMIT_*` -> value, set as both soft and hard limit."""


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


def can_forbid_files() -> bool:
    """Whether RLIMIT_FSIZE may be 0: not where the log is a regular file, to which lines must still be added."""
    return not stat.S_ISREG(os.fstat(2).st_mode)
