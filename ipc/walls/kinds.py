"""Which walls each kind of process has, by name: what `gateway doctor` tells, held against the real walls by tests."""

from typing import Final

from ipc.walls.given import (
    EMPTY_ROOT,
    IPC_NAMESPACE,
    LANDLOCK,
    MOUNT_NAMESPACE,
    NETWORK_NAMESPACE,
    OWN_USER,
    SECCOMP,
    USER_NAMESPACE,
)

ALWAYS: Final = ("no new privileges", "no capabilities", "not dumpable")
"""Every kernel has these, and every child but a template that root started has lost all capabilities."""

_APART = (USER_NAMESPACE, IPC_NAMESPACE, MOUNT_NAMESPACE)

KINDS: Final[dict[str, tuple[str, ...]]] = {
    "worker compute": (SECCOMP, LANDLOCK, *_APART, NETWORK_NAMESPACE, EMPTY_ROOT, OWN_USER),
    "worker http": (SECCOMP, LANDLOCK, *_APART, OWN_USER),
    "worker fs": (SECCOMP, LANDLOCK, *_APART, NETWORK_NAMESPACE),
    "policy": (SECCOMP, LANDLOCK, *_APART, NETWORK_NAMESPACE, EMPTY_ROOT, OWN_USER),
    "reader": (SECCOMP, LANDLOCK, *_APART, NETWORK_NAMESPACE),
    "compiler": (SECCOMP, LANDLOCK, *_APART, NETWORK_NAMESPACE),
    "notary": (SECCOMP, LANDLOCK, USER_NAMESPACE, IPC_NAMESPACE, NETWORK_NAMESPACE),
    "deliverer": (SECCOMP, LANDLOCK, USER_NAMESPACE, IPC_NAMESPACE),
    "broker": (SECCOMP, LANDLOCK, USER_NAMESPACE, IPC_NAMESPACE),
    "exporter": (SECCOMP, LANDLOCK, USER_NAMESPACE, IPC_NAMESPACE),
    "front": (SECCOMP, LANDLOCK),
    "template": (SECCOMP,),
}

MENDS: Final = {
    SECCOMP: "Use a kernel with CONFIG_SECCOMP_FILTER (4.14 or later) on x86_64 or aarch64.",
    LANDLOCK: "Use a kernel with CONFIG_SECURITY_LANDLOCK (5.13 or later) and landlock in its lsm= list.",
    USER_NAMESPACE: "Let the gateway's user make user namespaces: user.max_user_namespaces over 0, and no security "
    "module or container profile that refuses unshare.",
    NETWORK_NAMESPACE: "Let the gateway's user make user namespaces, in which it makes this one.",
    IPC_NAMESPACE: "Let the gateway's user make user namespaces, in which it makes this one.",
    MOUNT_NAMESPACE: "Let the gateway's user make user namespaces, in which it makes this one.",
    EMPTY_ROOT: "Let a process mount a tmpfs in a mount namespace of its own: a container profile or a security module "
    "refuses it.",
    OWN_USER: "Start the gateway as an ordinary user, or as a root that has CAP_SETUID and CAP_SETGID.",
}
"""How to get a missing wall back."""
