"""Which programs the children are, and with what interpreter and environment they start."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass

_INHERITED = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "NO_COLOR", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""Environment that children see; everything they must know comes in a message."""

INTERPRETER = (sys.executable, "-I")
"""SECURITY: isolated, so that neither PYTHON* variables nor a folder that someone else writes to add code."""


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that a child sees."""
    return {name: environ[name] for name in _INHERITED if name in environ}


@dataclass(frozen=True)
class Programs:
    """What follows the interpreter on the command line of each kind of child."""

    front: tuple[str, ...] = ("-m", "frontend.main")
    policy: tuple[str, ...] = ("-m", "workers.rego.main")
    template: tuple[str, ...] = ("-m", "workers.template")
