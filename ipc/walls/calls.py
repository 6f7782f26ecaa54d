"""System calls that several kinds of processes may make, or may not, as rules by name.

`common` is for a process that only computes and talks over sockets it was given. `FORBIDDEN` is for processes that are
too large for a list of allowed calls: calls that none of them makes, and that an attacker in one of them would make.
"""

import errno
from typing import Final

from ipc.walls.bpf import KILL, Bits, OneOf, SyscallRule
from ipc.walls.bpf import errno as refusal

_PROT_EXEC: Final = 4
_FIONBIO, _FIONREAD = 0x5421, 0x541B
_CLONE_THREAD: Final = 0x10000
_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_SOCK_STREAM, _SOCK_DGRAM, _SOCK_TYPE_MASK = 1, 2, 0xF
_PR_GET_DUMPABLE, _PR_SET_NAME, _PR_GET_NAME, _PR_SET_VMA = 3, 15, 16, 0x53564D41
_F_DUPFD, _F_GETFD, _F_SETFD, _F_GETFL, _F_SETFL, _F_DUPFD_CLOEXEC = 0, 1, 2, 3, 4, 1030
_F_GETLK, _F_SETLK, _F_SETLKW = 5, 6, 7
_COMMANDS: Final = (_F_DUPFD, _F_GETFD, _F_SETFD, _F_GETFL, _F_SETFL, _F_DUPFD_CLOEXEC)

_ALLOWED: Final = (
    "read readv write writev close munmap mremap brk madvise futex sigaltstack rt_sigreturn rt_sigprocmask exit "
    "exit_group restart_syscall poll ppoll recvfrom recvmsg sendto sendmsg shutdown fstat clock_gettime clock_getres "
    "clock_nanosleep nanosleep gettimeofday time getrandom getpid gettid sched_yield membarrier rseq getrusage "
    "getsockname getpeername getsockopt"
)
"""Memory, threads that run already, sockets that are open, the clock and the log."""
_NOT_EXECUTABLE: Final = SyscallRule(conditions=(Bits(2, _PROT_EXEC),))
_LOOKED_AT: Final = (
    "stat lstat newfstatat statx access faccessat faccessat2 readlink readlinkat getcwd prctl prlimit64 uname "
    "getuid geteuid getgid getegid getppid sched_getaffinity sysinfo open openat"
)
"""Calls of an interpreter and libraries at an error or at their first use; if refused, they do without."""

_EXECUTES: Final = "execve execveat fork vfork ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd"
_LEAVES: Final = (
    "unshare setns mount umount2 pivot_root chroot mount_setattr open_tree move_mount fsopen fsconfig fsmount fspick "
    "setuid setgid setreuid setregid setresuid setresgid setgroups setfsuid setfsgid"
)
_ADMINISTERS: Final = (
    "bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register keyctl add_key request_key "
    "init_module finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff acct settimeofday "
    "clock_settime adjtimex clock_adjtime sethostname setdomainname iopl ioperm open_by_handle_at quotactl syslog "
    "vhangup lookup_dcookie nfsservctl personality fanotify_init modify_ldt uselib memfd_secret "
    "shmget shmat msgget semget mq_open"
)

_BY_PATH: Final = (
    "chmod fchmodat fchmodat2 chown lchown fchownat setxattr lsetxattr removexattr lremovexattr"
)  # fmt: skip
"""Landlock knows none of these: each would open a file to others that the process itself can't open."""


def allow(names: str) -> dict[str, SyscallRule]:
    """These calls are made."""
    return dict.fromkeys(names.split(), SyscallRule())


def refuse(names: str, number: int) -> dict[str, SyscallRule]:
    """These calls fail with this error number."""
    return dict.fromkeys(names.split(), SyscallRule(action=refusal(number)))


def kill_for(names: str) -> dict[str, SyscallRule]:
    """These calls end the process."""
    return dict.fromkeys(names.split(), SyscallRule(action=KILL))


def common() -> dict[str, SyscallRule]:
    """Rules for a process whose libraries are loaded and whose threads run. None allows executable memory."""
    return {
        **refuse(_LOOKED_AT, errno.EACCES),
        **allow(_ALLOWED),
        "mmap": _NOT_EXECUTABLE,
        "mprotect": _NOT_EXECUTABLE,
        "ioctl": SyscallRule(conditions=(OneOf(1, (_FIONBIO, _FIONREAD)),), otherwise=refusal(errno.ENOTTY)),
        "fcntl": SyscallRule(conditions=(OneOf(1, _COMMANDS),)),
    }


def file_locks() -> dict[str, SyscallRule]:
    """Locks on files beside what `common` has: none that has another process signalled."""
    return {"fcntl": SyscallRule(conditions=(OneOf(1, (*_COMMANDS, _F_GETLK, _F_SETLK, _F_SETLKW)),))}


def internet(*, or_unix: bool = False) -> SyscallRule:
    """A socket of TCP or UDP; with `or_unix` one of a service on this host, too. Otherwise the C library does without
    name service daemons, which it asks over Unix sockets; and always without the kernel's netlink."""
    families = OneOf(0, (_AF_INET, _AF_INET6, _AF_UNIX) if or_unix else (_AF_INET, _AF_INET6))
    kinds = OneOf(1, (_SOCK_STREAM, _SOCK_DGRAM), _SOCK_TYPE_MASK)
    return SyscallRule(conditions=(families, kinds), otherwise=refusal(errno.EAFNOSUPPORT))


def forbidden(*, forks: bool = False, connects: bool = False, or_unix: bool = False) -> dict[str, SyscallRule]:
    """A list of what is refused. `forks`: its children build walls of their own, and leave users and namespaces.
    `connects`: it opens connections of the internet, with `or_unix` Unix sockets too; sockets that it listens on it was
    given.

    `listen` is refused since the kernel binds a socket that was not, whatever Landlock says of `bind`.
    """
    rules = kill_for(_EXECUTES) | kill_for(_ADMINISTERS)
    rules |= refuse(_BY_PATH, errno.EPERM) | refuse("bind listen", errno.EACCES)
    if not forks:
        rules |= kill_for(_LEAVES)
        rules |= {"socket": internet(or_unix=or_unix)} if connects else refuse("socket connect", errno.EACCES)
        names = (_PR_GET_DUMPABLE, _PR_SET_NAME, _PR_GET_NAME, _PR_SET_VMA)
        rules["prctl"] = SyscallRule(conditions=(OneOf(0, names),), otherwise=refusal(errno.EPERM))
        # A thread is made by clone too; clone3 hides its flags from a filter, and the C library does without it.
        rules["clone"] = SyscallRule(conditions=(OneOf(0, (_CLONE_THREAD,), _CLONE_THREAD),))
        rules["clone3"] = SyscallRule(action=refusal(errno.ENOSYS))
    else:
        for name in ("fork", "vfork"):
            del rules[name]
        families = OneOf(0, (_AF_UNIX, _AF_INET, _AF_INET6))
        rules["socket"] = SyscallRule(conditions=(families,), otherwise=refusal(errno.EAFNOSUPPORT))
    return rules
