"""Which programs the children are, and with what interpreter and environment they start."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ipc.log_level import VARIABLE
from ipc.stderr import TERMINAL

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

INTERPRETER = (sys.executable, "-I", str(Path(__file__).resolve().parents[1] / "launch.py"))
"""What the name of a module and its arguments follow on a command line.

SECURITY: isolated, so that neither PYTHON* variables nor a folder that someone else writes to add code; `launch.py`
adds the folder that this module, too, was found in.
"""


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that a child sees."""
    return {name: environ[name] for name in _INHERITED if name in environ}


@dataclass(frozen=True)
class Programs:
    """The module of each kind of child, and arguments of its own."""

    front: tuple[str, ...] = ("frontend.main",)
    notary: tuple[str, ...] = ("notary.main",)
    deliverer: tuple[str, ...] = ("frontend.webhooks.main",)
    policy: tuple[str, ...] = ("workers.rego.main",)
    spare_policy: tuple[str, ...] = ("workers.rego.main", "--spare")
    """The same, kept ready; empty: none is."""
    spares_after_seconds: float = 10.0
    """For so long a gateway has served before anything is kept ready: one that is asked a few calls pays for none,
    0.45 s of processor time."""
    front_silent_seconds: float = 12.0
    """A front that serves says how it is each second; one that has said nothing for so long is killed."""
    reader: tuple[str, ...] = ("notary.reader",)
    template: tuple[str, ...] = ("workers.template",)

    def behind(self, *prefix: str) -> "Programs":
        """The same, each started by `prefix` with its own module and arguments behind that."""
        return replace(
            self,
            front=(*prefix, *self.front), notary=(*prefix, *self.notary), policy=(*prefix, *self.policy),
            spare_policy=(*prefix, *self.spare_policy) if self.spare_policy else (), reader=(*prefix, *self.reader),
            template=(*prefix, *self.template), upstream=(*prefix, *self.upstream),
            deliverer=(*prefix, *self.deliverer),
        )  # fmt: skip

    upstream: tuple[str, ...] = ("contrib.bank.main",)
    """Of `gateway dev` alone."""
