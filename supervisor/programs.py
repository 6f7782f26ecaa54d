"""Which programs the children are, and with what interpreter and environment they start."""

import os
import site
import socket
import sys
from collections.abc import Mapping, Sequence
from itertools import dropwhile
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from ipc.process.log_level import VARIABLE
from ipc.process.stderr import TERMINAL

_INHERITED = (
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TERM",
    "NO_COLOR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "JOURNAL_STREAM",
    "CREDENTIALS_DIRECTORY",
    TERMINAL,
    VARIABLE,
)
"""Environment that children see; everything they must know comes in a message."""


def libraries(path: Sequence[str]) -> list[str]:
    """The folders of a module search path that hold installed libraries: those behind the standard library's, as
    `site` adds them, `.pth` files' included. Leaves out PYTHONPATH, the user's own packages, and what their `.pth`
    files name, which `site` adds before all others."""
    standard = os.path.dirname(os.__file__)
    last = max(at for at, folder in enumerate(path) if folder in (standard, os.path.join(standard, "lib-dynload")))
    folders = list(path[last + 1 :])
    if site.USER_SITE in folders:
        installed = {os.path.abspath(folder) for folder in site.getsitepackages()}
        begin = folders.index(site.USER_SITE)
        folders[begin:] = dropwhile(lambda folder: folder not in installed, folders[begin:])
    return [folder for folder in folders if os.path.isdir(folder)]


LAUNCH = Path(__file__).resolve().parents[1] / "launch.py"
"""The file that each child starts with."""

INTERPRETER = (
    sys.executable, "-I", "-S", "-X", f"libraries={os.pathsep.join(libraries(sys.path))}",
    str(LAUNCH),
)  # fmt: skip
"""The start of a command line; the name of a module and its arguments follow.

SECURITY: isolated, so that neither PYTHON* variables nor a folder that someone else writes to add code, and without
`site`, so that no `.pth` file runs code. `launch.py` adds the folders of the installed libraries, and the folder that
this module, too, was found in.
"""


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that a child sees."""
    return {name: environ[name] for name in _INHERITED if name in environ}


class Programs(msgspec.Struct, frozen=True):
    """The module of each kind of child, and arguments of its own."""

    front: tuple[str, ...] = ("frontend.main",)
    notary: tuple[str, ...] = ("notary.main",)
    deliverer: tuple[str, ...] = ("frontend.webhooks.main",)
    broker: tuple[str, ...] = ("broker.main",)
    exporter: tuple[str, ...] = ("exporter.main",)
    policy: tuple[str, ...] = ("workers.rego.main",)
    spare_policy: tuple[str, ...] = ("workers.rego.main", "--spare")
    """The same, kept ready; empty: none is."""
    spares_after_seconds: float = 30.0
    """For so long a gateway has served before anything is kept ready: one that is asked a few calls pays for none,
    0.45 s of processor time."""
    front_silent_seconds: float = 12.0
    """A serving front reports its status each second; it is killed after this long without a report."""
    installed: Path = LAUNCH
    """The file that tells whether the installation is still the one that the gateway was started from."""
    reader: tuple[str, ...] = ("notary.reader",)
    template: tuple[str, ...] = ("workers.template",)

    def behind(self, *prefix: str) -> "Programs":
        """The same, each started by `prefix` with its own module and arguments behind that."""
        return replace(
            self,
            front=(*prefix, *self.front), notary=(*prefix, *self.notary), policy=(*prefix, *self.policy),
            spare_policy=(*prefix, *self.spare_policy) if self.spare_policy else (), reader=(*prefix, *self.reader),
            template=(*prefix, *self.template), upstream=(*prefix, *self.upstream), console=(*prefix, *self.console),
            deliverer=(*prefix, *self.deliverer), broker=(*prefix, *self.broker),
            exporter=(*prefix, *self.exporter),
        )  # fmt: skip

    upstream: tuple[str, ...] = ("contrib.bank.main",)
    """Only for `gateway dev`, as is `console`."""
    console: tuple[str, ...] = ("console.main",)


class BesideProgram(NamedTuple):
    """A program beside a dev gateway, and the listening socket that it serves."""

    name: str
    program: tuple[str, ...]
    sock: socket.socket
