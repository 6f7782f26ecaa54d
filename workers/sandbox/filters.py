"""Which system calls a worker of each profile may make, as rules by name.

A call that is not named ends the process. Calls that libraries try and can do without get an error number instead.
The lists hold for a worker whose threads run, whose modules are mapped and whose libraries are loaded: there is no call
that makes a thread, a process or executable memory.
"""

import errno
import os
from collections.abc import Callable
from functools import cache
from typing import Final

from ipc.walls.bpf import Bits, SyscallRule
from ipc.walls.bpf import errno as refusal
from ipc.walls.calls import allow, common, internet
from ipc.walls.seccomp import Rules, compile_rules

_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | (os.O_TMPFILE & ~os.O_DIRECTORY)

_HTTP: Final = (
    "connect setsockopt sendmmsg recvmmsg select pselect6 stat lstat newfstatat statx lseek uname getuid geteuid "
    "getgid getegid"
)
_FS: Final = (
    "openat openat2 stat lstat newfstatat statx lseek pread64 pwrite64 ftruncate fsync fdatasync mkdir mkdirat "
    "unlinkat rename renameat renameat2 getdents64 fstatfs"
)


def no_rules() -> Rules:
    """For a worker that only computes."""
    return {}


def http_rules() -> Rules:
    """For a worker that connects."""
    reads = SyscallRule(conditions=(Bits(2, _WRITES),), otherwise=refusal(errno.EACCES))
    return {
        **allow(_HTTP),
        "openat": reads,
        "socket": internet(),
        "bind": SyscallRule(action=refusal(errno.EACCES)),
    }


def fs_rules() -> Rules:
    """For a worker that works on files."""
    return allow(_FS)


def rules_of(system_calls: Callable[[], Rules]) -> Rules:
    """The rules for a worker that may make these system calls beside the common ones."""
    return {**common(), **system_calls()}


@cache
def program_of(system_calls: Callable[[], Rules]) -> bytes:
    """The compiled filter."""
    return compile_rules(rules_of(system_calls))
