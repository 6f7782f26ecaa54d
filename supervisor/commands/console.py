"""`gateway console`: serve the operators' web page, a process of its own that is a client of the admin interface."""

import argparse
import ipaddress
import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from ipc.process.exits import Exit
from ipc.process.private_files import PrivateFileError, read_private
from supervisor.commands import Commands
from supervisor.commands.tls import add_tls_options, tls_arguments
from supervisor.dev.ready import RUNNING
from supervisor.dev.settings import default_state_dir
from supervisor.programs import INTERPRETER
from supervisor.refusal import Refused
from supervisor.settings.kind import PathContext, Wrong
from supervisor.settings.sections.addresses import base_url, split_address
from supervisor.sockets import ADMIN_MODE, Listener, listen_tcp, listen_unix

_MODULE = "console.main"
DEFAULT_LISTEN = "127.0.0.1:3080"
_UNIX = "unix:"


class _RunningDev(msgspec.Struct, frozen=True):
    """The fields of `running.json` that the console needs (supervisor/dev/ready.py)."""

    public_base_url: str
    admin_socket: str


def add(commands: Commands) -> None:
    """Put `console` beside the other commands."""
    console = commands.add_parser(
        "console",
        help="serve the operators' web page",
        description="Serve a page on which operators see held calls, decide them and search the audit log. Keys stay "
        "in the browser; this process has none, and forwards. Without --gateway and --state-dir: the gateway dev that "
        "runs here.",
    )
    place = console.add_mutually_exclusive_group()
    place.add_argument(
        "--gateway", metavar="URL", help="its admin interface: unix:///PATH, http://127.0.0.1:PORT or https://HOST"
    )
    place.add_argument("--state-dir", type=Path, metavar="DIR", help="state directory of a dev gateway that runs")
    console.add_argument(
        "--public-base-url", metavar="URL", help="the gateway's public_base_url, if it differs from --gateway"
    )
    console.add_argument(
        "--listen", metavar="WHERE", default=DEFAULT_LISTEN,
        help="ADDRESS:PORT, of another than this machine with TLS alone, or unix:PATH for a reverse proxy (default "
        "%(default)s)",
    )  # fmt: skip
    console.add_argument(
        "--origin", metavar="URL", help="URL of the page for browsers, if it is not http:// or https:// and --listen"
    )
    add_tls_options(console)
    console.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    gateway, public_base_url = _gateway(options)
    origin = None if options.origin is None else _url("--origin", options.origin)
    if origin is not None and urlsplit(origin).path:
        raise Refused(Exit.USAGE, f"--origin {options.origin!a}: must be a scheme and a host, without a path.")
    tls = tls_arguments(options)
    if tls and origin is not None and urlsplit(origin).scheme != "https":
        raise Refused(Exit.USAGE, f"--origin {options.origin!a}: must be an https URL where TLS is served.")
    listener = _listener(options.listen, origin, has_tls=bool(tls))
    shown = origin or f"{'https' if tls else 'http'}://{listener.address}"
    if sys.stderr.isatty():
        print(f"gateway console for {public_base_url}\n  open      {shown}/", file=sys.stderr)
    os.set_inheritable(listener.sock.fileno(), True)
    sys.stdout.flush()
    arguments = ["--listen-fd", str(listener.sock.fileno()), "--origin", shown, "--gateway", gateway, *tls]
    os.execv(  # noqa: S606 - our own interpreter and module
        sys.executable, [*INTERPRETER, _MODULE, *arguments, "--public-base-url", public_base_url]
    )


def _gateway(options: argparse.Namespace) -> tuple[str, str]:
    """Where the admin interface is, and what proofs are made for. Raises Refused."""
    if options.gateway is None:
        running = _running(options.state_dir or default_state_dir(os.environ))
        given = options.public_base_url
        base = running.public_base_url if given is None else _url("--public-base-url", given)
        return f"unix://{running.admin_socket}", base
    if options.gateway.startswith("unix:///"):
        if options.public_base_url is None:
            raise Refused(Exit.USAGE, "a Unix socket has no URL for proofs: add --public-base-url.")
        return options.gateway, _url("--public-base-url", options.public_base_url)
    gateway = _url("--gateway", options.gateway)
    parts = urlsplit(gateway)
    if parts.path or (parts.scheme == "http" and not _is_here(parts.hostname or "")):
        raise Refused(
            Exit.USAGE,
            f"--gateway {options.gateway!a}: must be unix:///PATH, http://127.0.0.1:PORT or https://HOST; API keys "
            "are not sent in clear to another machine.",
        )
    return gateway, gateway if options.public_base_url is None else _url("--public-base-url", options.public_base_url)


def _running(state_dir: Path) -> _RunningDev:
    try:
        return msgspec.json.decode(read_private(state_dir / RUNNING), type=_RunningDev)
    except (PrivateFileError, OSError, msgspec.MsgspecError):
        raise Refused(
            Exit.UNAVAILABLE, f"no gateway dev runs with {state_dir}. Name the gateway: --gateway, or --state-dir."
        ) from None


def _listener(where: str, origin: str | None, *, has_tls: bool) -> Listener:
    if where.startswith(_UNIX):
        if origin is None or has_tls:
            raise Refused(
                Exit.USAGE,
                "browsers can't open a Unix socket: add --origin with the reverse proxy's URL, whose TLS it is.",
            )
        return listen_unix("console", str(Path.cwd() / where.removeprefix(_UNIX)), ADMIN_MODE)
    try:
        host, _ = split_address(where)
    except ValueError:
        raise Refused(
            Exit.USAGE, f"--listen {where!a}: must be ADDRESS:PORT, like {DEFAULT_LISTEN}, or unix:PATH."
        ) from None
    if not has_tls and not _is_here(host):
        raise Refused(
            Exit.USAGE,
            f"--listen {where!a}: must be an address of this machine alone, like {DEFAULT_LISTEN}, or unix:PATH; "
            "other machines need TLS: --tls-certificate and --tls-key, or a reverse proxy.",
        )
    if origin is None and ipaddress.ip_address(host).is_unspecified:
        raise Refused(Exit.USAGE, f"--listen {where!a} is every address: add --origin with the one of the browsers.")
    return listen_tcp(where, "console")


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _url(flag: str, given: str) -> str:
    try:
        return base_url(given, PathContext(Path.cwd(), {}))
    except Wrong as wrong:
        raise Refused(Exit.USAGE, f"{flag} {given!a}: {wrong.what}. {wrong.mend}") from None
