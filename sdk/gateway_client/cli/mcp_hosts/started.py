"""How a host starts this very gatectl: hosts have neither the shell's path nor its variables."""

import os
import shutil
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from gateway_client.cli.exits import Failure, ScriptExit

VARIABLES = {
    "GATECTL_CONTEXT": False,
    "GATECTL_CONTEXTS_FILE": True,
    "GATECTL_ADDRESS": False,
    "GATECTL_AGENT_ADDRESS": False,
    "GATECTL_PUBLIC_BASE_URL": False,
    "GATECTL_AGENT_KEY_FILE": True,
}
"""The variables that `gatectl mcp` reads; True for the name of a file. No variable holds a secret."""


def own_command() -> str:
    """The absolute path of the running console script. Raises Failure."""
    beside = Path(sysconfig.get_path("scripts")) / "gatectl"
    for one in (sys.argv[0], str(beside), shutil.which("gatectl")):
        if one is not None and os.path.basename(one) == "gatectl" and os.access(one, os.X_OK):
            return os.path.abspath(one)
    raise Failure(ScriptExit.FAILED, "failed", "the console script gatectl is not found", "install the client library")


def own_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of this environment that choose the gateway."""
    given = {name: environ[name] for name in VARIABLES if environ.get(name)}
    return {name: _absolute(value) if VARIABLES[name] else value for name, value in given.items()}


def _absolute(value: str) -> str:
    return value if value.startswith(("~", "$")) else os.path.abspath(value)
