"""Gateways that read a hosts file of their own, so that names of a test lead to addresses of its choice.

The file may be written again while they run; it must be the same file then, since it is mounted.
"""

import os
import shutil
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path

from tests.support.gateway import Gateway
from tests.support.processes import GATEWAY, started


def can_change_hosts() -> bool:
    """Whether this process may give another one a hosts file of its own."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    return subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True, timeout=60).returncode == 0


def with_hosts(folder: Path) -> str:
    """The path of a command line that is the gateway's, with `folder/hosts` in place of the machine's hosts file."""
    script = folder / "bin" / "gateway"
    script.parent.mkdir()
    mount = f"mount --bind {folder / 'hosts'} /etc/hosts"
    script.write_text(f'#!/bin/sh\nexec unshare -m sh -c \'{mount} && exec {GATEWAY} "$@"\' gateway "$@"\n')
    script.chmod(0o755)
    return str(script)


def gateway_with_hosts(folder: Path, config: str) -> AbstractContextManager[Gateway]:
    """`gateway dev` that reads `folder/hosts` in place of the machine's own hosts file."""
    return started(folder, config, program=with_hosts(folder))
