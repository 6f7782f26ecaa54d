"""The steps that the walls of front, notary, deliverer, broker, exporter, template and compiler refuse: rows of
the escape table, and their own."""

import os

from tests.support.escape_steps import opened, path_call
from tests.support.escape_table import ROWS, Row

OWN = (
    Row("change the ledger", opened("{ledger}", os.O_RDWR)),
    Row("cut the ledger", path_call(os.truncate, "{ledger}", 0)),
    Row("list the state directory", path_call(os.listdir, "{outside}")),
    Row("write what is mapped as code", opened("{outside}/modules-cache/new", os.O_WRONLY | os.O_CREAT)),
    Row("remove the lock of the state directory", path_call(os.unlink, "{outside}/gateway.lock")),
    Row("make a file in the state directory", opened("{outside}/new", os.O_WRONLY | os.O_CREAT)),
    Row("open the ledger to write", opened("{outside}/ledger.sqlite3", os.O_RDWR)),
    Row("put an action among the others", opened("{actions}/new.yaml", os.O_WRONLY | os.O_CREAT)),
    Row("change the configuration", opened("{configuration}", os.O_RDWR)),
    Row("open the key of another service", opened("{elsewhere}")),
    Row("open the secrets of actions", opened("{outside}/secrets.json")),
)  # fmt: skip
_EVERYBODY = (
    "execve", "execveat", "execute from memory", "be traced", "trace the parent", "trace the front",
    "take a descriptor of another", "read the parent's memory", "write the parent's memory", "compare processes",
    "io_uring", "a key of the session", "add a key", "ask for a key", "bpf", "perf", "userfaultfd", "mount",
    "pivot_root", "open by a handle", "init_module", "kexec_load", "reboot", "personality: read implies execute",
    "iopl", "make secret memory", "shared memory", "a queue of messages", "a vsock socket", "a netlink socket",
    "a packet socket", "listen", "bind TCP", "bind an abstract socket", "change a mode", "change an owner",
    "set an attribute", "a call of the x32 kind",
)  # fmt: skip
_SEALED = (
    "fork", "clone", "clone into namespaces", "spawn a program", "a user namespace", "a mount namespace", "setuid",
    "setresgid", "be dumpable", "outlive the parent", "signal the parent", "signal a stranger",
    "connect to a Unix socket", "connect to an abstract socket", "send to a Unix socket",
)  # fmt: skip
_FILES = (
    "open a key", "truncate a key", "link a key", "list the keys", "write outside", "write into /tmp",
    "open the parent's memory", "open the code of the gateway", "open /proc/1/environ", "open core_pattern",
    "make a folder", *(row.name for row in OWN if "lock" not in row.name and "secrets" not in row.name),
)  # fmt: skip
_ALONE = ("connect by TCP", "connect by TCP over IPv6", "send by UDP", "open /etc/shadow")
WALLED: dict[str, tuple[str, ...]] = {
    "front": (*_EVERYBODY, *_SEALED, *_FILES, "remove the lock of the state directory"),
    "notary": (*_EVERYBODY, *_SEALED, *_FILES, *_ALONE),
    "deliverer": (
        *_EVERYBODY,
        *_SEALED,
        *_FILES,
        *(one for one in _ALONE if "UDP" not in one),
        "remove the lock of the state directory",
        "open the secrets of actions",
    ),
    "exporter": (
        *_EVERYBODY,
        *_SEALED,
        *_FILES,
        *(one for one in _ALONE if "UDP" not in one),
        "remove the lock of the state directory",
        "open the secrets of actions",
    ),
    "broker": (
        *_EVERYBODY,
        *_SEALED,
        *_FILES,
        "open /etc/shadow",
        "remove the lock of the state directory",
        "open the secrets of actions",
    ),
    "template": _EVERYBODY,
    "compiler": (*_EVERYBODY, *_SEALED, *(one for one in _FILES if "mapped as code" not in one), *_ALONE),
}
"""Kind of process -> the rows that it tries."""
ROWS_BY_NAME = {row.name: row for row in (*ROWS, *OWN)}
