"""The escape table: every step of an attacker, and how a worker of each profile is kept from it.

A row is refused when its worker is killed (SIGSYS), or the kernel says EPERM or EACCES. `also` names other answers that
give nothing away, each for the reason beside it; `profiles` those that may not: what a profile is for it may do.
"""

import os
import resource
import socket
from dataclasses import dataclass

from tests.support.escape_steps import (
    SIGNAL_INFO,
    Step,
    bound,
    call,
    cloned,
    connecting,
    descriptors,
    environment,
    executed_from_memory,
    forked,
    listening,
    made_executable,
    making,
    old_call,
    opened,
    path_call,
    raised_limit,
    raw,
    read_parent,
    spawned,
    started_thread,
)  # fmt: skip

ALL = ("compute", "http", "fs")
NO_NETWORK = ("compute", "fs")
REFUSED = frozenset({"SIGSYS", "EPERM", "EACCES"})
UNIX, INET, INET6, NETLINK, PACKET, VSOCK, ALG = 1, 2, 10, 16, 17, 40, 38
STREAM, DATAGRAM, RAW = socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW
NO_FAMILY = ("EAFNOSUPPORT",)
"""The verdict of the http profile's filter on every address family except the internet's."""
_AT = -100


OLD_CALL = "a call of 32 bits"
"""Needs code that the template has."""


@dataclass(frozen=True)
class Row:
    """One step."""

    name: str
    step: Step
    also: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ALL

    @property
    def allowed(self) -> frozenset[str]:
        """The errors that count as refused."""
        return REFUSED.union(self.also)


def rows_of_calls(*names: str, arguments: tuple[object, ...] = (0, 0, 0, 0, 0, 0)) -> tuple[Row, ...]:
    """Rows of calls that are refused whatever their arguments say."""
    return tuple(Row(name, call(name, *arguments)) for name in names)


FILES = (
    Row("open /etc/passwd", opened("/etc/passwd")),
    Row("open /etc/shadow", opened("/etc/shadow")),
    Row("open the configuration", opened("{outside}/gateway.toml")),
    Row("open the ledger", opened("{outside}/ledger.sqlite3")),
    Row("open a key", opened("{outside}/keys/receipt.pem")),
    Row("open a compiled module", opened("{outside}/modules-cache")),
    Row("open a key by a path that leads out of the files", opened("{files}/../keys/receipt.pem")),
    Row("open a key by a link that lies among the files", opened("{files}/link")),
    Row("open /proc/1/environ", opened("/proc/1/environ"), ("ENOENT",)),
    Row("open the parent's memory", opened("/proc/{parent}/mem", os.O_RDWR), ("ENOENT",)),
    Row("open the parent's mappings", opened("/proc/{parent}/maps"), ("ENOENT",)),
    Row("open the front's memory", opened("/proc/{front}/mem", os.O_RDWR), ("ENOENT",)),
    Row("open its own memory", opened("/proc/self/mem", os.O_RDWR), ("ENOENT",)),
    Row("open its own mappings", opened("/proc/self/maps"), ("ENOENT",)),
    Row("open sysrq-trigger", opened("/proc/sysrq-trigger", os.O_WRONLY), ("ENOENT",)),
    Row("open core_pattern", opened("/proc/sys/kernel/core_pattern", os.O_WRONLY), ("ENOENT",)),
    Row("open /dev/mem", opened("/dev/mem", os.O_RDWR), ("ENOENT",)),
    Row("open /dev/kmsg", opened("/dev/kmsg", os.O_WRONLY), ("ENOENT",)),
    Row("open /sys", opened("/sys/kernel")),
    Row("open the code of the gateway", opened("{code}", os.O_RDWR)),
    Row("write outside", opened("{outside}/new", os.O_WRONLY | os.O_CREAT)),
    Row("write into /tmp", opened("/tmp/escape-{parent}", os.O_WRONLY | os.O_CREAT)),
    Row("write into /dev/shm", opened("/dev/shm/escape-{parent}", os.O_WRONLY | os.O_CREAT), ("ENOENT",)),
    Row("write a file without a name", opened("/tmp", os.O_WRONLY | os.O_TMPFILE)),
    Row("create by creat", call("creat", "/tmp/escape", 0o600)),
    Row("truncate a key", call("truncate", "@key", 0)),
    Row("remove a key", path_call(os.unlink, "{outside}/keys/spare")),
    Row("move a key", path_call(os.rename, "{outside}/keys/spare", "{files}/stolen"), ("EXDEV",)),
    Row("move a file over a key", path_call(os.rename, "{files}/mine", "{outside}/keys/spare"), ("EXDEV",)),
    Row("link a key", call("linkat", _AT, "@key", _AT, "@new", 0), ("EXDEV",)),
    Row("make a link", call("symlinkat", "/etc/passwd", _AT, "@new")),
    Row("make a folder", path_call(os.mkdir, "/tmp/escape-{parent}")),
    Row("make a device", call("mknodat", _AT, "@new", 0o20600, 0x0103)),
    Row("make a FIFO", call("mknodat", _AT, "@new", 0o10600, 0)),
    Row("change a mode", call("fchmodat", _AT, "@key", 0o644)),
    Row("change an owner", call("fchownat", _AT, "@key", 65534, 65534, 0)),
    Row("change a time", call("utimensat", _AT, "@key", 0, 0)),
    Row("set an attribute", call("setxattr", "@key", "user.x", "y", 1, 0)),
    Row("list /", path_call(os.listdir, "/")),
    Row("list the keys", path_call(os.listdir, "{outside}/keys")),
    Row("read a link of /proc", path_call(os.readlink, "/proc/1/exe"), ("ENOENT",)),
    Row("go elsewhere", call("chdir", "/")),
    Row("watch the keys (inotify)", call("inotify_init1", 0)),
    Row("watch a file (inotify)", call("inotify_add_watch", 3, "@key", 2)),
    Row("watch everything (fanotify)", call("fanotify_init", 0, 0)),
    Row("mark for fanotify", call("fanotify_mark", 3, 1, 2, _AT, "@key")),
    Row("get a handle of a file", call("name_to_handle_at", _AT, "@key", ..., ..., 0)),
    Row("open by a handle", call("open_by_handle_at", _AT, ..., 0)),
    Row("ask for the file system", call("statfs", "/", ...)),
    Row("make a file in memory", call("memfd_create", "x", 0)),
    Row("make secret memory", call("memfd_secret", 0)),
    Row("copy between files", call("copy_file_range", 0, 0, 1, 0, 1, 0)),
    Row("splice", call("splice", 0, 0, 1, 0, 1, 0)),
)  # fmt: skip

NETWORK = (
    Row("connect by TCP", connecting(INET, STREAM, lambda f: ("127.0.0.1", f["port"])), profiles=NO_NETWORK),
    Row("connect by TCP over IPv6", connecting(INET6, STREAM, lambda f: ("::1", f["port"])), profiles=NO_NETWORK),
    Row("send by UDP", connecting(INET, DATAGRAM, lambda f: ("127.0.0.1", f["port"])), profiles=NO_NETWORK),
    Row("connect to a Unix socket", connecting(UNIX, STREAM, lambda f: f["socket"]), NO_FAMILY),
    Row("connect to an abstract socket", connecting(UNIX, STREAM, lambda f: "\0" + f["abstract"]), NO_FAMILY),
    Row("send to a Unix socket", connecting(UNIX, DATAGRAM, lambda f: f["socket"]), NO_FAMILY),
    Row("bind TCP", bound(INET, STREAM, lambda _: ("127.0.0.1", 0))),
    Row("bind UDP", bound(INET, DATAGRAM, lambda _: ("127.0.0.1", 0))),
    Row("bind a Unix socket", bound(UNIX, STREAM, lambda f: f["new"]), NO_FAMILY),
    Row("bind an abstract socket", bound(UNIX, STREAM, lambda _: "\0escape"), NO_FAMILY),
    Row("listen", listening),
    Row("accept", call("accept4", 3, 0, 0, 0)),
    Row("a raw socket", making(INET, RAW, 1), NO_FAMILY),
    Row("a raw socket of IPv6", making(INET6, RAW, 58), NO_FAMILY),
    Row("a packet socket", making(PACKET, RAW, 0x300), NO_FAMILY),
    Row("a netlink socket", making(NETLINK, RAW, 0), NO_FAMILY),
    Row("a vsock socket", making(VSOCK, STREAM), NO_FAMILY),
    Row("a socket of the kernel's ciphers", making(ALG, socket.SOCK_SEQPACKET), NO_FAMILY),
    Row("a pair of sockets", call("socketpair", UNIX, STREAM, 0, ...)),
)  # fmt: skip

PROCESSES = (
    Row("fork", forked),
    Row("vfork", cloned(0x4000 | 0x100)),
    Row("clone", cloned(0)),
    Row("clone into namespaces", cloned(0x10000000 | 0x20000)),
    Row("clone3", call("clone3", ..., 88), ("ENOSYS",)),
    Row("start a thread", started_thread),
    Row("spawn a program", spawned),
    Row("execve", call("execve", "/bin/true", 0, 0)),
    Row("execveat", call("execveat", _AT, "/bin/true", 0, 0, 0)),
    Row("execute from memory", executed_from_memory),
    Row("be traced", call("ptrace", 0, 0, 0, 0)),
    Row("trace the parent", call("ptrace", 16, "@parent", 0, 0)),
    Row("trace the front", call("ptrace", 0x4206, "@front", 0, 0)),
    Row("signal the parent", call("kill", "@parent", 0)),
    Row("signal the front", call("kill", "@front", 0)),
    Row("signal a stranger", call("kill", 1, 0)),
    Row("signal its own group", call("kill", 0, 0)),
    Row("signal a thread", call("tkill", "@front", 0)),
    Row("signal a thread of a process", call("tgkill", "@front", "@front", 0)),
    Row("signal with a value", call("rt_sigqueueinfo", "@front", 0, SIGNAL_INFO)),
    Row("a handle of the parent", call("pidfd_open", "@parent", 0)),
    Row("a handle of the front", call("pidfd_open", "@front", 0)),
    Row("signal by a handle", call("pidfd_send_signal", 3, 0, 0, 0)),
    Row("take a descriptor of another", call("pidfd_getfd", 3, 0, 0)),
    Row("read the parent's memory", read_parent("process_vm_readv")),
    Row("write the parent's memory", read_parent("process_vm_writev")),
    Row("advise on another's memory", call("process_madvise", 3, 0, 0, 0, 0)),
    Row("compare processes", call("kcmp", "@parent", "@front", 0, 0, 0)),
    Row("move another's pages", call("move_pages", "@parent", 0, 0, 0, 0, 0)),
    Row("limits of the parent", call("prlimit64", "@parent", 7, 0, ...)),
    Row("raise the number of files", raised_limit(resource.RLIMIT_NOFILE)),
    Row("raise the size of memory", raised_limit(resource.RLIMIT_DATA)),
    Row("raise the number of processes", raised_limit(resource.RLIMIT_NPROC)),
    Row("raise the size of cores", raised_limit(resource.RLIMIT_CORE)),
    Row("setrlimit", call("setrlimit", 4, ...)),
    Row("priority of the front", call("setpriority", 0, "@front", 19)),
    Row("a better priority", call("setpriority", 0, 0, 0)),
    Row("a real-time scheduler", call("sched_setscheduler", 0, 1, ...)),
    Row("processors of the front", call("sched_setaffinity", "@front", 8, ...)),
    Row("priority of reading and writing", call("ioprio_set", 1, 0, 0)),
    Row("a session of its own", call("setsid")),
    Row("another group", call("setpgid", 0, 0)),
    Row("wait for children", call("wait4", -1, 0, 1, 0)),
)  # fmt: skip

MEMORY = (
    Row("map executable memory", call("mmap", 0, 4096, 5, 0x22, -1, 0)),
    Row("map memory that is written and executed", call("mmap", 0, 4096, 7, 0x22, -1, 0)),
    Row("map executable memory with other bits", call("mmap", 0, 4096, 4 | 0x1000000, 0x22, -1, 0)),
    Row("make memory executable", made_executable(5)),
    Row("make memory written and executed", made_executable(7)),
    Row("make memory executable with a key", call("pkey_mprotect", ..., 4096, 5, 0)),
    Row("a shadow stack", call("map_shadow_stack", 0, 4096, 0)),
    Row("personality: read implies execute", call("personality", 0x0400000)),
    *rows_of_calls("userfaultfd", "modify_ldt", "arch_prctl", "iopl", "ioperm", "remap_file_pages", "mlockall"),
    Row("shared memory", call("shmget", 0x6573, 4096, 0o1600)),
    Row("attach shared memory", call("shmat", 0, 0, 0o100000)),
    Row("a queue of messages", call("msgget", 0x6573, 0o1600)),
    Row("semaphores", call("semget", 0x6573, 1, 0o1600)),
    Row("a queue of POSIX", call("mq_open", "escape", 0o102, 0o600, 0)),
)  # fmt: skip

KERNEL = (
    Row("a key of the session", call("keyctl", 0, -3, 0, 0, 0)),
    Row("add a key", call("add_key", "user", "x", "y", 1, -3)),
    Row("ask for a key", call("request_key", "user", "x", 0, -3)),
    Row("io_uring", call("io_uring_setup", 4, ...)),
    Row("enter io_uring", call("io_uring_enter", 3, 1, 0, 0, 0, 0)),
    Row("register with io_uring", call("io_uring_register", 3, 0, 0, 0)),
    Row("bpf", call("bpf", 0, ..., 72)),
    Row("perf", call("perf_event_open", ..., 0, -1, -1, 0)),
    Row("a user namespace", call("unshare", 0x10000000)),
    Row("a mount namespace", call("unshare", 0x20000)),
    Row("a network namespace", call("unshare", 0x40000000)),
    Row("another's namespace", call("setns", 3, 0)),
    Row("mount", call("mount", "none", "/tmp", "tmpfs", 0, 0)),
    Row("unmount", call("umount2", "/proc", 2)),
    Row("pivot_root", call("pivot_root", "/", "/")),
    Row("chroot", call("chroot", "/")),
    Row("fsopen", call("fsopen", "tmpfs", 0)),
    Row("fspick", call("fspick", _AT, "/", 0)),
    Row("open_tree", call("open_tree", _AT, "/", 1)),
    Row("move_mount", call("move_mount", _AT, "/", _AT, "/", 0)),
    *rows_of_calls("fsconfig", "fsmount", "mount_setattr"),
    Row("setuid", call("setuid", 0)),
    Row("setgid", call("setgid", 0)),
    Row("setreuid", call("setreuid", 0, 0)),
    Row("setregid", call("setregid", 0, 0)),
    Row("setresuid", call("setresuid", 0, 0, 0)),
    Row("setresgid", call("setresgid", 0, 0, 0)),
    Row("setgroups", call("setgroups", 0, 0)),
    *rows_of_calls("setfsuid", "setfsgid"),
    Row("capset", call("capset", ..., ...)),
    Row("be dumpable", call("prctl", 4, 1, 0, 0, 0)),
    Row("take new privileges", call("prctl", 38, 0, 0, 0, 0)),
    Row("raise an ambient capability", call("prctl", 47, 2, 21, 0, 0)),
    Row("keep capabilities", call("prctl", 8, 1, 0, 0, 0)),
    Row("change securebits", call("prctl", 28, 0, 0, 0, 0)),
    Row("let any process trace it", call("prctl", 0x59616D61, -1, 0, 0, 0)),
    Row("outlive the parent", call("prctl", 1, 0, 0, 0, 0)),
    Row("a filter of its own", call("seccomp", 1, 0, ...)),
    Row("rules for files of its own", call("landlock_create_ruleset", 0, 0, 1)),
    Row("catch the signal of the filter", call("rt_sigaction", 31, ..., 0, 8)),
    *rows_of_calls("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot"),
    *rows_of_calls("swapon", "swapoff", "quotactl", "quotactl_fd", "syslog", "adjtimex", "clock_adjtime"),
    Row("acct", call("acct", "/tmp/acct")),
    Row("settimeofday", call("settimeofday", 0, ...)),
    Row("clock_settime", call("clock_settime", 99, ...)),
    Row("sethostname", call("sethostname", "x", 100)),
    Row("setdomainname", call("setdomainname", "x", 100)),
    Row("uselib", call("uselib", "/nothing")),
    Row("asynchronous reading", call("io_setup", 1, ...)),
    Row("type into a terminal", call("ioctl", 0, 0x5412, ...), ("ENOTTY",)),
    Row("paste into a console", call("ioctl", 0, 0x541C, ...), ("ENOTTY",)),
    Row("close a descriptor at the next program", call("ioctl", 0, 0x5451, 0), ("ENOTTY",)),
    Row("have another signalled", call("fcntl", 3, 8, "@front")),
    Row("choose its signal", call("fcntl", 3, 10, 9)),
    Row("a lease on a file", call("fcntl", 0, 1024, 1)),
    Row("a call of the x32 kind", lambda _: raw(0x40000000 | 39)),
    Row(OLD_CALL, old_call, ("SIGSEGV",)),  # of a kernel that has none
)  # fmt: skip

ROWS = (*FILES, *NETWORK, *PROCESSES, *MEMORY, *KERNEL)
FOUND: dict[str, Step] = {"descriptors": descriptors, "environment": environment}
"""The facts about its surroundings that a worker gets."""
STEPS = {row.name: row.step for row in ROWS} | FOUND
