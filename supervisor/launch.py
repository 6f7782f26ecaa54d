"""From checked settings to a running gateway and back to nothing: the order in which things are taken and given back.

Signals are received before any resource is acquired. Every resource goes onto one exit stack, so that a refusal in the
middle, a stop and a crash leave nothing behind: no process, no socket file, no lock.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

import msgspec
import trio
from setproctitle import setproctitle

from ipc.process.exits import Exit
from ipc.process.log_level import VARIABLE
from ipc.process.parent import adopt_orphans, refuse_core_dumps
from ipc.process.stderr import own_stderr
from ipc.settings import Settings
from supervisor.children.children import Children, kill_everything
from supervisor.children.signals import RECEIVED
from supervisor.children.walls import with_walls
from supervisor.life.command_socket import listen_for_commands
from supervisor.logs import configure_logs, log
from supervisor.programs import BesideProgram, Programs
from supervisor.refusal import Refused
from supervisor.settings.checks.ceilings import ceilings_here, fitting_connections, sized
from supervisor.settings.checks.production import weakened
from supervisor.settings.in_force import forget_at_end
from supervisor.settings.pool_shares import divided
from supervisor.settings.rereading import Reread, Rereading
from supervisor.sockets import ADMIN_MODE, CLIENT_MODE, METRICS_MODE, Listener, listen_tcp, listen_unix
from supervisor.state import SupervisorState
from supervisor.state_dir import hold_state_dir
from supervisor.supervise import supervise
from supervisor.systemd.activation import NAMES, activated
from supervisor.systemd.notify import Notifier
from supervisor.systemd.watchdog import watchdog_seconds


class PreparedGateway(msgspec.Struct, frozen=True):
    """The preparations of a mode of the gateway: final settings, sockets, and a function to call when it serves."""

    settings: Settings
    listeners: tuple[Listener, ...]
    announce: Callable[[], None]
    configured: Settings | None = None
    """The settings as the configuration file gave them at the start; `reread` reads them again."""
    reread: Reread | None = None
    beside: tuple[BesideProgram, ...] = ()
    """Programs beside a dev gateway."""


Prepare = Callable[[ExitStack], PreparedGateway]


def launch(prepare: Prepare, environ: Mapping[str, str], programs: Programs) -> Exit:
    """Become the supervisor: prepare, run until told to stop, clean up. Raises Refused when the gateway can't start."""
    setproctitle("gateway: supervisor")
    own_stderr()
    configure_logs()
    os.umask(0o077)
    adopt_orphans()
    # SECURITY: a process of the same user, a worker that was taken over for one, can't attach to this one.
    refuse_core_dumps()
    try:
        return trio.run(_launch, prepare, environ, programs)
    except Refused:
        raise
    except Exception:
        log.exception("the supervisor ended by an error")
        return Exit.FAILED
    finally:
        kill_everything()


async def _launch(prepare: Prepare, environ: Mapping[str, str], programs: Programs) -> Exit:
    with trio.open_signal_receiver(*RECEIVED) as received, ExitStack() as cleanup:
        prepared = prepare(cleanup)
        walled = with_walls(sized(prepared.settings, ceilings_here()))
        settings = _within_open_files(msgspec.structs.replace(divided(walled), weakened=weakened(walled)))
        log.info("starting", pid=os.getpid(), state_dir=settings.state_dir, version=settings.version)
        if settings.weakened:
            log.warning("this configuration weakens the gateway", weakened=list(settings.weakened))
        notifier = Notifier.of(environ)
        _keep_open(prepared.listeners, notifier, environ)
        state = SupervisorState(
            settings, programs, Children({**environ, VARIABLE: settings.log_level}, programs.installed),
            _rereading(prepared, cleanup), notifier, watchdog_seconds(environ), prepared.beside,
        )  # fmt: skip
        commands = listen_for_commands(Path(settings.state_dir), cleanup)
        code = await supervise(state, prepared.listeners, received, prepared.announce, commands)
        log.info("stopped", exit=code.name)
        # Sockets and lock are given back only when no process uses them any more.
        kill_everything()
        return code


def _within_open_files(settings: Settings) -> Settings:
    fitting, limits = fitting_connections(settings), settings.limits
    if fitting >= limits.max_connections:
        return settings
    log.warning(
        "fewer connections than limits.max_connections: the limit of open files is low", max_connections=fitting
    )
    fewer = msgspec.structs.replace(limits, max_connections=fitting)
    return msgspec.structs.replace(settings, limits=fewer)


def _rereading(prepared: PreparedGateway, cleanup: ExitStack) -> Rereading | None:
    if prepared.configured is None:
        return None
    rereading = Rereading(prepared.configured, prepared.reread)
    forget_at_end(Path(prepared.configured.state_dir), cleanup)
    rereading.keep(prepared.configured)
    return rereading


def _keep_open(listeners: tuple[Listener, ...], notifier: Notifier, environ: Mapping[str, str]) -> None:
    """Have a service manager that keeps descriptors keep the sockets that were bound here, until the next start."""
    if not notifier.is_heard or not environ.get("FDSTORE", "").isdecimal():
        return
    for listener in listeners:
        if not listener.stays_open:
            notifier.keep(NAMES[listener.kind], listener.sock.fileno())
            listener.inode, listener.stays_open = None, True


def listen(settings: Settings, cleanup: ExitStack, given: tuple[Listener, ...] = ()) -> tuple[Listener, ...]:
    """Open the Unix sockets of these settings, and the one for metrics, that are not among `given`; they are closed and
    unlinked at the end. Raises Refused."""
    listeners = []
    for kind, address, mode in (
        ("client", settings.listen_uds_path, CLIENT_MODE),
        ("admin", settings.listen_admin_uds_path, ADMIN_MODE),
        ("metrics", settings.metrics.address, METRICS_MODE),
    ):
        if address is None or any(one.kind == kind for one in given):
            continue
        is_file = address.startswith("/")
        listeners.append(listen_unix(kind, address, mode) if is_file else listen_tcp(address, kind))
        cleanup.callback(listeners[-1].close)
    return tuple(listeners)


def _in_order(listeners: tuple[Listener, ...]) -> tuple[Listener, ...]:
    return tuple(sorted(listeners, key=lambda one: tuple(NAMES).index(one.kind)))


def listen_merged(address: str, cleanup: ExitStack) -> Listener:
    """Open the TCP listener. Raises Refused."""
    listener = listen_tcp(address)
    cleanup.callback(listener.close)
    return listener


def prepare_run(settings: Settings, reread: Reread | None = None, environ: Mapping[str, str] | None = None) -> Prepare:
    """Prepare `gateway run`: state directory, lock and sockets. `reread` is for reloads; `environ` may name
    sockets that a service manager has bound."""

    def prepare(cleanup: ExitStack) -> PreparedGateway:
        given = activated(settings, environ or {})
        for one in given:
            cleanup.callback(one.close)
        is_bound = any(one.kind == "merged" for one in given) or settings.listen_http_addr is None
        bound = () if is_bound else (listen_merged(settings.listen_http_addr or "", cleanup),)
        hold_state_dir(Path(settings.state_dir), cleanup, is_mended=False)
        listeners = _in_order((*given, *listen(settings, cleanup, given), *bound))
        lease_key = settings.lease_signing_key_path or str(Path(settings.state_dir) / "keys" / "lease.pem")
        final = msgspec.structs.replace(settings, lease_signing_key_path=lease_key)
        sockets = [one.address for one in listeners]
        return PreparedGateway(final, listeners, lambda: log.info("serving", sockets=sockets), settings, reread)

    return prepare
