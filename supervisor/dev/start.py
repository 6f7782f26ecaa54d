"""Prepare `gateway dev`: its port, state directory, credentials and sockets, and its words on the terminal.

Refusals come before anything serves. The settings that this mode weakens are named on the terminal.
"""

import hashlib
import ipaddress
import os
import re
import shlex
import tempfile
import textwrap
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import msgspec

from ipc.process.exits import Exit
from ipc.settings import Settings
from supervisor.dev.console import dev_console
from supervisor.dev.keys import OPERATOR, DevCredentials, dev_credentials, make_keys
from supervisor.dev.policy import own_policy
from supervisor.dev.ready import Ready, ReadyOperator, announcer, forget_running, prepare_ready_file
from supervisor.dev.settings import LABEL, DevOptions, is_default_state_dir, load_dev
from supervisor.launch import Prepare, PreparedGateway, listen, listen_merged
from supervisor.programs import BesideProgram, Programs
from supervisor.refusal import Refused
from supervisor.settings.checks.production import weakened
from supervisor.settings.config import Loaded
from supervisor.settings.sections.addresses import split_address
from supervisor.settings.value_kinds import MAX_SOCKET_PATH
from supervisor.sockets import Listener, PortInUse, free_port, listen_tcp
from supervisor.state_dir import hold_state_dir

UPSTREAM = "upstream.gateway.test"
"""The host name that the example actions use."""
_SOCKETS = ("gate.sock", "gate-admin.sock")
_EXAMPLE = "text_digest"
_ACTION_ID = re.compile(r"^action_id:\s*[\"']?([A-Za-z0-9][A-Za-z0-9._-]*)", re.MULTILINE)


def prepare_dev(loaded: Loaded, options: DevOptions, environ: Mapping[str, str], programs: Programs) -> Prepare:
    """Prepare `gateway dev`. The port comes first: if it is in use, nothing has been made yet.

    Without a policy_dir of its own it gets one in the state directory, a copy of the example: operators may change it.
    """
    settings = loaded.settings
    assert settings is not None

    def prepare(cleanup: ExitStack) -> PreparedGateway:
        assert settings.listen_http_addr is not None
        merged = _listen(settings.listen_http_addr, cleanup)
        for folder in (settings.manifests_dir, settings.policy_dir):
            if not Path(folder).is_dir():
                raise Refused(Exit.CONFIG, f"{folder} is not a folder.")
        state_dir = Path(settings.state_dir)
        hold_state_dir(state_dir, cleanup, is_mended=True)
        prepare_ready_file(options.ready_file, cleanup)
        forget_running(state_dir, cleanup)
        credentials = dev_credentials(state_dir, make_keys)
        base_url = f"http://{_reachable(merged.address)}"
        chosen = msgspec.structs.replace(settings, listen_http_addr=merged.address)
        if _is_default(loaded, "policy_dir"):
            chosen = msgspec.structs.replace(chosen, policy_dir=str(own_policy(Path(settings.policy_dir), state_dir)))
        if _is_default(loaded, "public_base_url"):
            chosen = msgspec.structs.replace(chosen, public_base_url=base_url)
        final = _with_credentials(chosen, credentials)
        final = _with_sockets(final, loaded, environ, cleanup)
        final, world = _with_upstream(final, options, cleanup)
        beside = () if world is None else (BesideProgram("upstream", programs.upstream, world.sock),)
        listeners = (merged, *listen(final, cleanup))
        ready = _ready(final, credentials, base_url)
        if options.has_console:
            console, link = dev_console(final, ready.operator, programs, cleanup)
            beside, ready = (*beside, console), msgspec.structs.replace(ready, console=link)
        is_found = is_default_state_dir(state_dir, environ)
        announce = announcer(ready, friendly_lines(final, ready, is_found=is_found), options.ready_file)
        return PreparedGateway(final, listeners, announce, settings, lambda: load_dev(options, environ), beside)

    return prepare


def _listen(address: str, cleanup: ExitStack) -> Listener:
    """The TCP listener. Raises Refused; for a port in use the refusal names a free one."""
    try:
        return listen_merged(address, cleanup)
    except PortInUse:
        host, port = split_address(address)
        free = free_port(host, port)
        shown = f"[{host}]" if ":" in host else host
        choose = f"try --listen {shown}:{free}, which is free" if free else "choose another with --listen"
        raise Refused(Exit.UNAVAILABLE, f"{address} is in use by another program; {choose}.") from None


def _with_upstream(settings: Settings, options: DevOptions, cleanup: ExitStack) -> tuple[Settings, Listener | None]:
    """The examples' upstream at a socket of our own, where the configuration names no other. Raises Refused."""
    mapped = settings.egress.unsafe_resolve
    if not options.has_upstream or UPSTREAM in mapped:
        return settings, None
    listener = listen_tcp("127.0.0.1:0", "upstream")
    cleanup.callback(listener.close)
    egress = msgspec.structs.replace(settings.egress, unsafe_resolve={**mapped, UPSTREAM: listener.address})
    return msgspec.structs.replace(settings, egress=egress), listener


def _is_default(loaded: Loaded, name: str) -> bool:
    return loaded.document.labels.get((name,)) == (0, LABEL)


def _reachable(address: str) -> str:
    """The address a client on this machine uses: a wildcard is no destination."""
    host, port = split_address(address)
    if ipaddress.ip_address(host).is_unspecified:
        host = "::1" if ":" in host else "127.0.0.1"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _with_credentials(settings: Settings, made: DevCredentials) -> Settings:
    secrets = settings.secrets
    if secrets.file is None:
        secrets = msgspec.structs.replace(secrets, file=str(made.secrets_file))
    return msgspec.structs.replace(
        settings,
        lease_signing_key_path=settings.lease_signing_key_path or str(made.lease_key),
        grant_signing_key_path=settings.grant_signing_key_path or str(made.grant_key),
        receipt_signing_key_path=settings.receipt_signing_key_path or str(made.receipt_key),
        receipt_keys_jwks_path=settings.receipt_keys_jwks_path or str(made.receipt_jwks),
        operators=(*settings.operators, made.operator),
        secrets=secrets,
    )


def _with_sockets(settings: Settings, loaded: Loaded, environ: Mapping[str, str], cleanup: ExitStack) -> Settings:
    folder = Path(settings.state_dir) / "run"
    if len(os.fsencode(folder / _SOCKETS[1])) > MAX_SOCKET_PATH:
        folder = _short_folder(settings.state_dir, environ, cleanup)
    client, admin = (str(folder / name) for name in _SOCKETS)
    if loaded.document.has(("listen_uds_path",)):
        client = settings.listen_uds_path
    if loaded.document.has(("listen_admin_uds_path",)):
        admin = settings.listen_admin_uds_path
    return msgspec.structs.replace(settings, listen_uds_path=client, listen_admin_uds_path=admin)


def _short_folder(state_dir: str, environ: Mapping[str, str], cleanup: ExitStack) -> Path:
    """A folder for sockets whose path would be too long for the kernel; ours alone, removed at the end."""
    base = Path(environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    digest = hashlib.sha256(os.fsencode(state_dir)).hexdigest()[:12]
    folder = base / f"gateway-dev-{os.geteuid()}-{digest}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise Refused(Exit.NO_PERMISSION, f"folder for sockets {folder} can't be made: {error.strerror}.") from None
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise Refused(Exit.NO_PERMISSION, f"folder for sockets {folder} belongs to another user.")
    cleanup.callback(_remove, folder)
    return folder


def _remove(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        return


def _ready(settings: Settings, credentials: DevCredentials, base_url: str) -> Ready:
    return Ready(
        base_url=base_url,
        public_base_url=settings.public_base_url,
        pid=os.getpid(),
        state_dir=settings.state_dir,
        client_socket=settings.listen_uds_path,
        admin_socket=settings.listen_admin_uds_path,
        operator=ReadyOperator(
            OPERATOR, credentials.api_key, f"{settings.state_dir}/operator.key", str(credentials.private_key_file)
        ),
    )


def friendly_lines(settings: Settings, ready: Ready, *, is_found: bool) -> str:
    """Lines for a person: addresses, state, operator, what is weakened, what to try. `is_found`: gatectl finds this
    gateway by itself."""
    named = "" if is_found else f"GATECTL_DEV_STATE_DIR={shlex.quote(ready.state_dir)} "
    lines = (
        f"gateway dev serves {ready.base_url}",
        f"  agents    {ready.client_socket}",
        f"  admin     {ready.admin_socket}",
        f"  operator  {ready.operator.name}: key in {ready.operator.key_file}",
        f"  proofs    {ready.operator.private_key_file}",
        *(() if ready.console is None else (f"  console   {ready.console}",)),
        *textwrap.wrap(
            f"  WEAKENED  never for production: {', '.join(weakened(settings))}",
            79,
            subsequent_indent=" " * 12,
            break_long_words=False,
            break_on_hyphens=False,
            drop_whitespace=True,
        ),
        f"  try       {named}{command_to_try(Path(settings.manifests_dir))}",
        f"            curl -s {ready.base_url}/v1/actions",
    )
    return "\n".join(lines) + "\n"


def command_to_try(manifests: Path) -> str:
    """A call of the example where it is registered, else a look at the first action that is."""
    try:
        files = sorted([*manifests.glob("*.yaml"), *manifests.glob("*.yml")])
        texts = [file.read_text(errors="replace") for file in files]
    except OSError:
        texts = []
    ids = [match[1] for text in texts if (match := _ACTION_ID.search(text))]
    if _EXAMPLE in ids:
        return f"gatectl execute {_EXAMPLE} text=hello"
    return f"gatectl actions show {ids[0]}" if ids else "gatectl actions list"
