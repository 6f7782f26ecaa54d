"""`gateway dev --console`: the operators' page beside the gateway, and a link that signs the dev operator in once."""

import secrets
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec

from ipc.process.exits import Exit
from ipc.settings import Settings
from supervisor.dev.private_files import write_private
from supervisor.dev.ready import ReadyOperator
from supervisor.programs import BesideProgram, Programs
from supervisor.refusal import Refused
from supervisor.sockets import Listener, PortInUse, listen_tcp

LISTEN: Final = "127.0.0.1:3080"
"""Browsers keep keys by address: another port is taken where this one is in use."""
FILE: Final = "console-sign-in"
"""In the state directory until the console has read it."""


class _SignIn(msgspec.Struct, frozen=True):
    """The content of the file (console/sign_in.py)."""

    secret: str
    name: str
    api_key: str
    private_key_file: str


def dev_console(
    settings: Settings, operator: ReadyOperator, programs: Programs, cleanup: ExitStack
) -> tuple[BesideProgram, str]:
    """The console's program, and the link. Raises Refused."""
    listener = _listen()
    cleanup.callback(listener.close)
    file, secret = Path(settings.state_dir) / FILE, secrets.token_urlsafe(32)
    sign_in = _SignIn(secret, operator.name, operator.key, operator.private_key_file)
    try:
        write_private(file, msgspec.json.encode(sign_in).decode())
    except OSError as error:
        raise Refused(Exit.NO_PERMISSION, f"{file} can't be written: {error.strerror}.") from None
    cleanup.callback(file.unlink, missing_ok=True)
    origin = f"http://{listener.address}"
    program = (
        *programs.console, "--origin", origin, "--gateway", f"unix://{settings.listen_admin_uds_path}",
        "--public-base-url", settings.public_base_url, "--sign-in", str(file),
    )  # fmt: skip
    return BesideProgram("console", program, listener.sock), f"{origin}/#/sign-in/{secret}"


def _listen() -> Listener:
    try:
        return listen_tcp(LISTEN, "console")
    except PortInUse:
        return listen_tcp("127.0.0.1:0", "console")
