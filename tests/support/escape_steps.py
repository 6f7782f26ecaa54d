"""The attempts of a provider that has taken over its worker: one step each, as native code and not through wasm.

A step runs in a worker of the product, behind its walls (tests/support/escape_template.py). It returns what it gained,
or raises OSError. The arguments are chosen so that without walls a step works, or fails harmlessly for another
reason. `facts` are what an attacker would know: paths, ports, process ids.
"""

import ctypes
import os
import platform
import resource
import signal
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any

Facts = Mapping[str, Any]
Step = Callable[[Facts], object]

IS_X86 = platform.machine() == "x86_64"
NUMBERS = {
    "execve": 59, "execveat": 322, "fork": 57, "vfork": 58, "clone": 56, "clone3": 435, "ptrace": 101, "kill": 62,
    "tkill": 200, "tgkill": 234, "rt_sigqueueinfo": 129, "pidfd_open": 434, "pidfd_send_signal": 424,
    "pidfd_getfd": 438, "process_vm_readv": 310, "process_vm_writev": 311, "process_madvise": 440, "kcmp": 312,
    "mmap": 9, "mprotect": 10, "pkey_mprotect": 329, "keyctl": 250, "add_key": 248, "request_key": 249,
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "bpf": 321, "perf_event_open": 298,
    "unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "fsopen": 430,
    "fsconfig": 431, "fsmount": 432, "fspick": 433, "move_mount": 429, "open_tree": 428, "mount_setattr": 442,
    "userfaultfd": 323, "setuid": 105, "setgid": 106, "setreuid": 113, "setregid": 114, "setresuid": 117,
    "setresgid": 119, "setgroups": 116, "setfsuid": 122, "setfsgid": 123, "capset": 126, "prctl": 157, "prlimit64": 302,
    "setrlimit": 160, "reboot": 169, "kexec_load": 246, "kexec_file_load": 320, "init_module": 175, "finit_module": 313,
    "delete_module": 176, "swapon": 167, "swapoff": 168, "settimeofday": 164, "clock_settime": 227, "adjtimex": 159,
    "clock_adjtime": 305, "sethostname": 170, "setdomainname": 171, "acct": 163, "quotactl": 179, "syslog": 103,
    "inotify_init1": 294, "inotify_add_watch": 254, "fanotify_init": 300, "fanotify_mark": 301,
    "name_to_handle_at": 303, "open_by_handle_at": 304, "shmget": 29, "shmat": 30, "msgget": 68, "semget": 64,
    "mq_open": 240, "personality": 135, "iopl": 172, "ioperm": 173, "modify_ldt": 154, "arch_prctl": 158, "ioctl": 16,
    "fcntl": 72, "memfd_create": 319, "memfd_secret": 447, "seccomp": 317, "landlock_create_ruleset": 444,
    "rt_sigaction": 13, "setsid": 112, "setpgid": 109, "ioprio_set": 251, "setpriority": 141, "sched_setscheduler": 144,
    "sched_setaffinity": 203, "mknodat": 259, "utimensat": 280, "setxattr": 188, "truncate": 76, "fchmodat": 268,
    "fchownat": 260, "linkat": 265, "symlinkat": 266, "creat": 85, "chdir": 80, "statfs": 137, "listen": 50,
    "accept4": 288, "socketpair": 53, "splice": 275, "copy_file_range": 326, "remap_file_pages": 216, "move_pages": 279,
    "mlockall": 151, "uselib": 134, "io_setup": 206, "map_shadow_stack": 453, "quotactl_fd": 443, "wait4": 61,
}  # fmt: skip
"""System call numbers of x86_64, separate from the product's, so that a wrong number in the product shows."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_buffer = ctypes.create_string_buffer(4096)
SIGNAL_INFO = ctypes.create_string_buffer(b"\0" * 8 + b"\xff" * 4, 128)
"""A siginfo that may be sent to other processes: its si_code is below zero."""
_ANONYMOUS = 0x22


def raw(name: str | int, *arguments: Any) -> int:
    """One system call as it is. Raises OSError."""
    number = NUMBERS[name] if isinstance(name, str) else name
    passed = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    result = int(_libc.syscall(ctypes.c_long(number), *passed))
    if result < 0:
        raise OSError(ctypes.get_errno(), str(name))
    return result


def call(name: str, *arguments: Any) -> Step:
    """A step that is one system call; text arguments are C strings, `@name` is a fact."""

    def act(facts: Facts) -> object:
        given = [_meant(one, facts) for one in arguments]
        return raw(name, *given)

    return act


def _meant(argument: Any, facts: Facts) -> Any:
    if isinstance(argument, str) and argument.startswith("@"):
        argument = facts[argument[1:]]
    if isinstance(argument, str):
        return ctypes.c_char_p(argument.encode())
    return _buffer if argument is ... else argument


def opened(path: str, flags: int = os.O_RDONLY) -> Step:
    """A step that opens a file; `@name` is a fact."""

    def act(facts: Facts) -> object:
        meant = path.format(**facts)
        return os.open(meant, flags | os.O_CLOEXEC, 0o600)

    return act


def path_call(act: Callable[..., object], *arguments: Any) -> Step:
    """A step that is one function of `os`."""
    return lambda facts: act(*(one.format(**facts) if isinstance(one, str) else one for one in arguments))


def connecting(family: int, kind: int, address: Callable[[Facts], Any], protocol: int = 0) -> Step:
    """A step that connects a new socket."""

    def act(facts: Facts) -> object:
        with socket.socket(family, kind, protocol) as sock:
            sock.settimeout(5)
            sock.connect(address(facts))
            sock.send(b"x")
            return "sent"

    return act


def making(family: int, kind: int, protocol: int = 0) -> Step:
    """A step that makes a socket."""

    def act(_facts: Facts) -> object:
        with socket.socket(family, kind, protocol) as sock:
            return sock.fileno()

    return act


def bound(family: int, kind: int, address: Callable[[Facts], Any]) -> Step:
    """A step that binds a socket."""

    def act(facts: Facts) -> object:
        with socket.socket(family, kind) as sock:
            sock.bind(address(facts))
            return sock.getsockname()

    return act


def listening(_facts: Facts) -> object:
    """Listen without binding: the kernel chooses a port."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        raw("listen", sock.fileno(), 1)
        return sock.getsockname()


def started_thread(_facts: Facts) -> object:
    """A thread, as Python starts one."""
    try:
        threading.Thread(target=lambda: None).start()
    except RuntimeError as error:
        raise PermissionError(1, str(error)) from None
    return "started"


def executed_from_memory(facts: Facts) -> object:
    """A program that is in no file system."""
    memory = raw("memfd_create", ctypes.c_char_p(b"x"), 0)
    os.write(memory, b"#!/bin/sh\n")
    return raw("execveat", memory, ctypes.c_char_p(b""), None, None, 0x1000)


def spawned(_facts: Facts) -> object:
    """A program as the C library starts one."""
    return os.posix_spawn("/bin/true", ["true"], {})


def made_executable(flags: int) -> Step:
    """Memory that is written first and made executable then."""

    def act(_facts: Facts) -> object:
        _libc.mmap.restype = ctypes.c_void_p
        place = _libc.mmap(None, ctypes.c_size_t(4096), 3, _ANONYMOUS, -1, ctypes.c_long(0))
        return raw("mprotect", ctypes.c_void_p(place), 4096, flags)

    return act


def raised_limit(which: int) -> Step:
    """A limit of its own, made larger."""

    def act(_facts: Facts) -> object:
        resource.setrlimit(which, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        return "raised"

    return act


def iovec_of(place: int) -> Any:
    """One struct iovec."""
    return (ctypes.c_uint64 * 2)(place, 8)


def read_parent(name: str) -> Step:
    """Memory of the parent."""
    ours = iovec_of(ctypes.addressof(_buffer))
    return lambda facts: raw(name, facts["parent"], ours, 1, iovec_of(0x400000), 1, 0)


def forked(_facts: Facts) -> object:
    """The child, if there is one, leaves at once."""
    pid = raw("fork")
    if pid == 0:
        os._exit(0)
    return pid


def cloned(flags: int) -> Step:
    """The same by clone."""

    def act(_facts: Facts) -> object:
        pid = raw("clone", flags | signal.SIGCHLD, 0, 0, 0, 0)
        if pid == 0:
            os._exit(0)
        return pid

    return act


def old_call(facts: Facts) -> object:
    """A 32-bit system call, by code that lay there before the walls."""
    return facts["int80"]()


# ------------------------------------------------------------------- what it finds


def descriptors(_facts: Facts) -> object:
    """The numbers of all that are open, and what they are."""
    kinds = []
    for number in range(1024):
        try:
            raw("fcntl", number, 1, 0)
        except OSError:
            continue
        try:
            sock = socket.socket(fileno=number)
        except OSError:
            kinds.append("other")
        else:
            kinds.append({socket.SOCK_STREAM: "stream", socket.SOCK_SEQPACKET: "packets"}.get(sock.type, "socket"))
            sock.detach()
    return sorted(kinds)


def environment(_facts: Facts) -> object:
    """The remaining environment, as Python and the C library see it."""
    variables = ctypes.POINTER(ctypes.c_char_p).in_dll(_libc, "environ")
    return [dict(os.environ), bool(variables and variables[0])]
