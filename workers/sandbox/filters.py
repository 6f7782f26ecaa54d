"""Which system calls a worker of each profile may make, as rules by name.

What is not named ends the process. What libraries try and do well without is refused with an error number instead.
The lists hold for a worker whose threads run, whose modules are mapped and whose libraries are loaded: there is no call
that makes a thread, a process or executable memory.
"""

import errno
import os
from collections.abc import Iterable
from functools import cache
from typing import Final

from ipc.walls.bpf import Bits, OneOf, Rule
from ipc.walls.bpf import errno as refuse
from ipc.walls.seccomp import Rules, compile_rules

_PROT_EXEC: Final = 4
_FIONBIO, _FIONREAD, _TCGETS = 0x5421, 0x541B, 0x5401
_AF_INET, _AF_INET6 = 2, 10
_SOCK_STREAM, _SOCK_DGRAM, _SOCK_TYPE_MASK = 1, 2, 0xF
_F_DUPFD, _F_GETFD, _F_SETFD, _F_GETFL, _F_SETFL, _F_DUPFD_CLOEXEC = 0, 1, 2, 3, 4, 1030
_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | (os.O_TMPFILE & ~os.O_DIRECTORY)

_ALLOWED: Final = (
    "read readv write writev close munmap mremap brk madvise futex sigaltstack rt_sigreturn rt_sigprocmask exit "
    "exit_group restart_syscall poll ppoll recvfrom recvmsg sendto sendmsg shutdown fstat clock_gettime clock_getres "
    "clock_nanosleep nanosleep gettimeofday time getrandom getpid gettid sched_yield membarrier rseq getrusage "
    "getsockname getpeername getsockopt"
)
"""Memory, threads that run already, the two channels, the clock and the log."""
_NOT_EXECUTABLE: Final = Rule(conditions=(Bits(2, _PROT_EXEC),))
_LOOKED_AT: Final = (
    "stat lstat newfstatat statx access faccessat faccessat2 readlink readlinkat getcwd prctl prlimit64 uname "
    "getuid geteuid getgid getegid getppid sched_getaffinity sysinfo"
)
"""What an interpreter looks at when it reports an error; refused, it reports without."""

_HTTP: Final = (
    "connect setsockopt sendmmsg recvmmsg select pselect6 stat lstat newfstatat "
    "statx lseek uname getuid geteuid getgid getegid"
)
_FS: Final = (
    "openat openat2 stat lstat newfstatat statx lseek pread64 pwrite64 ftruncate fsync fdatasync mkdir mkdirat "
    "unlinkat rename renameat renameat2 getdents64"
)


def _allow(names: str) -> dict[str, Rule]:
    return dict.fromkeys(names.split(), Rule())


def _refuse(names: str, number: int) -> dict[str, Rule]:
    return dict.fromkeys(names.split(), Rule(action=refuse(number)))


def _common() -> dict[str, Rule]:
    commands = (_F_DUPFD, _F_GETFD, _F_SETFD, _F_GETFL, _F_SETFL, _F_DUPFD_CLOEXEC)
    return {
        **_refuse(_LOOKED_AT, errno.EACCES),
        **_allow(_ALLOWED),
        "mmap": _NOT_EXECUTABLE,
        "mprotect": _NOT_EXECUTABLE,
        "ioctl": Rule(conditions=(OneOf(1, (_FIONBIO, _FIONREAD)),), otherwise=refuse(errno.ENOTTY)),
        "fcntl": Rule(conditions=(OneOf(1, commands),)),
    }


def _http() -> dict[str, Rule]:
    reads = Rule(conditions=(Bits(2, _WRITES),), otherwise=refuse(errno.EACCES))
    internet = (OneOf(0, (_AF_INET, _AF_INET6)), OneOf(1, (_SOCK_STREAM, _SOCK_DGRAM), _SOCK_TYPE_MASK))
    return {
        **_allow(_HTTP),
        "openat": reads,
        # The C library asks name service daemons over Unix sockets and the kernel over netlink, and does without.
        "socket": Rule(conditions=internet, otherwise=refuse(errno.EAFNOSUPPORT)),
        "bind": Rule(action=refuse(errno.EACCES)),
    }


def rules_of(interfaces: Iterable[str]) -> Rules:
    """The rules for a worker with these host interfaces."""
    rules = _common()
    if "http" in interfaces:
        rules |= _http()
    if "fs" in interfaces:
        rules |= _allow(_FS)
    return rules


@cache
def program_of(interfaces: frozenset[str]) -> bytes:
    """The compiled filter."""
    return compile_rules(rules_of(interfaces))
