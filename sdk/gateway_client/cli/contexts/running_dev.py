"""The `gateway dev` that runs here: what a command speaks to where no gateway is named.

A dev gateway writes `running.json` into its state directory while it serves; it names sockets and key files.
SECURITY: an operator's key goes only where that file, in a folder of this user alone, sends it, and there only over a
Unix socket that this user owns: a TCP port may be anybody's by now. Any mismatch counts as no gateway.
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from gateway_client.cli.contexts.contexts import GatewayContext
from gateway_client.errors import ProtocolViolation
from gateway_client.keys import KeyFileError, read_private
from gateway_client.wire.decoding import parse_json

SOURCE = "running dev gateway"
FILE = "running.json"
_TEXTS = ("public_base_url", "client_socket", "admin_socket", "operator_key_file", "private_key_file")


def state_dir(environ: Mapping[str, str]) -> Path:
    """GATECTL_DEV_STATE_DIR, or where `gateway dev` keeps its state: below XDG_STATE_HOME, or ~/.local/state."""
    if given := environ.get("GATECTL_DEV_STATE_DIR"):
        return Path(given)
    base = environ.get("XDG_STATE_HOME", "")
    folder = Path(base) if base.startswith("/") else Path(environ.get("HOME") or Path.home()) / ".local" / "state"
    return folder / "gateway-dev"


def running_dev(environ: Mapping[str, str]) -> GatewayContext | None:
    """Its sockets and key files; None when none runs."""
    folder = state_dir(environ)
    try:
        if not _is_ours_alone(folder):
            return None
        record = parse_json(read_private(folder / FILE), FILE)
        named = {name: record[name] for name in _TEXTS}
    except (OSError, KeyFileError, ProtocolViolation, KeyError, TypeError):
        return None
    sockets = (named["admin_socket"], named["client_socket"])
    if not all(isinstance(one, str) and one.isprintable() for one in named.values()) or not all(map(_is_ours, sockets)):
        return None
    return GatewayContext(
        address=f"unix://{quote(named['admin_socket'])}",
        agent_address=f"unix://{quote(named['client_socket'])}",
        public_base_url=named["public_base_url"],
        operator_key_file=named["operator_key_file"],
        private_key_file=named["private_key_file"],
    )


def _is_ours_alone(folder: Path) -> bool:
    status = folder.stat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077


def _is_ours(path: str) -> bool:
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return False
    return path.startswith("/") and stat.S_ISSOCK(status.st_mode) and status.st_uid == os.geteuid()
