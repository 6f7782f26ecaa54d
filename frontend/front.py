"""One front from its first message to its last: opens the services, serves, drains, leaves its last event.

Guarantees that the door opens only once everything behind it is in force, and that every end has its exit code of
ipc/process/exits.py. Hears the supervisor through frontend/control.py.
"""

import math
import socket
from contextlib import suppress
from functools import partial

import trio
from setproctitle import setproctitle

from frontend.api.dispatch import Dispatch
from frontend.clock import ClockError, FrontClock
from frontend.compose import build_services
from frontend.configuration.active import ConfigurationRefused
from frontend.control import Attached, SupervisorLink
from frontend.errors import GateError
from frontend.http.server import ListeningSocket, Server
from frontend.notary.client import NotaryClient
from frontend.notary.errors import NotaryRefused, NotaryUnavailable
from frontend.services import Services
from frontend.shared.memory import SharedMemory
from frontend.supervised import run_supervised
from frontend.telemetry.logs import configure_logs, log
from frontend.walls import enter
from ipc.channel.front_memory import Layout
from ipc.messages.brokering import AttachBroker
from ipc.messages.control import (
    AttachNotary,
    AttachPolicy,
    AttachReader,
    AttachWorker,
    CrashLoops,
    DelivererStarted,
    Drain,
    Draining,
    FinishReload,
    FollowSettings,
    FrontReady,
    PolicyEdited,
    Reload,
    SettingsFollowed,
    StartFront,
    WorkerGone,
)
from ipc.messages.exporting import AttachExporter
from ipc.process.exits import Exit
from ipc.process.private_files import PrivateFileError
from ipc.process.process_speed import release_collector
from ipc.process.stderr import stderr
from ipc.walls.confining import WallRefused

LOST_CHANNEL = "its channel could not be received"
"""Why a process is given up when this front has too many open files."""
STATUS_SECONDS = 1.0
WEIGH_SECONDS = 15.0
"""Between two looks at how much memory this front takes: the kernel needs a millisecond for one."""
LOOK_SECONDS = 0.02
"""While another front writes that the gateway has started: two flushes of the disk."""
BEGIN_AGAIN_SECONDS = 1.0
NEW_SECONDS = 2.0
"""For a client whose connection was accepted to send its first request, when the gateway leaves."""
CLOSE_SECONDS = 2.0
"""How long answers under way may take to reach slow readers once nothing is in flight."""
CUT_SECONDS = 0.1
"""The same when calls are in flight whose time is over: what is left is for their evidence."""


class Front:
    """One front between its first message and its last; hears the supervisor (frontend/control.py, Hears)."""

    def __init__(self, services: Services, server: Server, nursery: trio.Nursery) -> None:
        self.opening = trio.CancelScope()
        """The scope of the start, until the first request: a front that must stop by then leaves at once."""
        self._services = services
        self._server = server
        self._nursery = nursery
        self._stop_within: float | None = None
        self._stopping = trio.Event()
        self._left: trio.Event | None = None
        """Set once sockets that outlive this gateway are left; None: they are not to be."""

    def attach_notary(self, message: AttachNotary, sock: socket.socket) -> None:
        """Ask the fresh notary from now on."""
        self._services.notary.attach(sock)
        self._services.processes.notary_attached(message.pid)

    def attach_policy(self, message: AttachPolicy, sock: socket.socket) -> None:
        """Hand the fresh policy process to the engine."""
        self._services.policy.attach(sock, message.pid)
        self._services.processes.policy_attached(message.pid)

    def attach_reader(self, message: AttachReader, sock: socket.socket) -> None:
        """Hand the fresh reader to who waits for it."""
        self._services.readers.attach(message, sock)

    def attach_worker(self, message: AttachWorker, sock: socket.socket) -> None:
        """Hand the fresh worker to its pool."""
        self._services.pools.attach(message, sock.detach())
        self._services.processes.worker_attached(message.worker_id, message.profile, message.pid)

    def attach_broker(self, message: AttachBroker, sock: socket.socket) -> None:
        """Ask the fresh broker from now on."""
        self._services.broker.attach(sock, message.pid)
        self._services.processes.broker_attached(message.pid)

    def attach_exporter(self, message: AttachExporter, sock: socket.socket) -> None:
        """Give calls to the fresh exporter from now on."""
        self._services.exporter.attach(sock, message.pid)
        self._services.processes.exporter_attached(message.pid)

    def channel_lost(self, message: Attached) -> None:
        """Have another one started. The task that waits for a reader gives up by its own deadline."""
        match message:
            case AttachWorker():
                self._services.pools.give_up(message.worker_id, LOST_CHANNEL)
            case AttachPolicy():
                self._services.control.replace_policy(message.pid, LOST_CHANNEL)
            case AttachBroker():
                self._services.control.replace_broker(message.pid, LOST_CHANNEL)
            case AttachExporter():
                self._services.control.replace_exporter(message.pid, LOST_CHANNEL)

    def worker_gone(self, message: WorkerGone) -> None:
        """Tell the pool."""
        self._services.pools.gone(message.worker_id)
        self._services.processes.worker_gone(message.worker_id)
        self._services.metrics.worker_ended(message.worker_id, message.reason)

    def deliverer_started(self, message: DelivererStarted) -> None:
        """Tell metrics, and those who ask for the endpoints."""
        self._services.processes.deliverer_started(message.pid)
        self._services.webhooks.note_gone(message.gone)

    def drain(self, message: Drain) -> None:
        """Refuse new work, or leave it to the next gateway where there will be one, and say how much is in flight."""
        if message.is_leaving and self._server.may_be_left:
            if self._left is None:
                self._left = trio.Event()
                self._nursery.start_soon(self._leave, self._left)
            return
        self._services.admission.drain()
        self._services.control.post(Draining(self._services.admission.in_flight))

    async def _leave(self, left: trio.Event) -> None:
        """Stop accepting, and serve all accepted requests without refusals."""
        await self._server.leave(NEW_SECONDS)
        left.set()
        self._services.control.post(Draining(self._services.admission.in_flight))

    def note_crash_loops(self, message: CrashLoops) -> None:
        """Readiness fails while there is any."""
        self._services.crash_loops = message.children

    def reload(self, message: Reload) -> None:
        """Reload in a task of its own: calls go on with what they have."""
        self._nursery.start_soon(self._services.reloads.perform, message)

    def finish_reload(self, message: FinishReload) -> None:
        """Go on with a reload, as all fronts do."""
        self._services.reloads.finish(message)

    def follow_settings(self, message: FollowSettings) -> None:
        """Decide by what a reload has changed that came before this front could take part."""
        self._services.configuration.follow_settings(message.reloadable)
        self._services.control.post(SettingsFollowed(message.request_id))

    def policy_edited(self, message: PolicyEdited) -> None:
        """Follow a change by another front. On failure this front exits with an error: it must not grant a right
        that was revoked there."""
        self._nursery.start_soon(self._services.configuration.follow_policy, message.digest)

    def stop(self, seconds: float) -> None:
        """Finish what is in flight, at most this long."""
        self._stop_within = seconds
        self._stopping.set()
        self.opening.cancel()

    async def report(self) -> None:
        """Once a second, what the supervisor's status line needs, and what the other fronts show of this one."""
        services = self._services
        proportional, weighed_at = None, -math.inf
        while True:
            services.metrics.dropped_lines(stderr.dropped)
            services.control.post_status(services.front_status())
            if not services.presence.is_alone:
                if trio.current_time() - weighed_at >= WEIGH_SECONDS:
                    weighed_at = trio.current_time()
                    with suppress(RuntimeError):  # the system gives no thread: the last look counts
                        proportional = await trio.to_thread.run_sync(services.processes.proportional)
                services.presence.tell(services.present(proportional))
            await trio.sleep(STATUS_SECONDS)

    async def open(self, live_fronts: tuple[str, ...]) -> Exit | None:
        """Everything before the first request; the exit code when that fails, None when the door may open."""
        services = self._services
        try:
            await services.notary.wait_greeted()
            services.clock.follow(services.known.now.newest_evidence)
            await services.configuration.load()
            await services.revocation.catch_up()
            await self._begin(live_fronts)
        except ConfigurationRefused as error:
            said = "the front can't start" if error.is_passing else "configuration refused"
            for problem in error.problems:
                log.error(said, problem=problem)
            return Exit.UNAVAILABLE if error.is_passing else Exit.CONFIG
        except ClockError as error:
            log.error("the clock is wrong: everything is refused until it is right again", cause=error.cause)
            self._nursery.start_soon(self._begin_later, live_fronts)
        except (GateError, NotaryUnavailable, NotaryRefused) as error:
            log.error("the front can't start", cause=getattr(error, "cause", None) or str(error))
            return Exit.UNAVAILABLE
        await services.dependencies.start(self._nursery)
        self._nursery.start_soon(services.upkeep.run)
        self._nursery.start_soon(services.refusals.run)
        self._nursery.start_soon(services.witnesses.run)
        self._nursery.start_soon(services.allow_list.watch)
        return None

    async def _begin(self, live_fronts: tuple[str, ...]) -> None:
        """Evidence of what fronts that are gone did not live to write, and of the start. May be tried again."""
        self._services.clock.now()
        await self._services.upkeep.at_start(live_fronts)
        await self._tell_start()

    async def _tell_start(self) -> None:
        """The start of the gateway: once, by whichever front comes first, before any other serves."""
        memory = self._services.memory
        while (is_ours := memory.claims_start()) is None:  # noqa: ASYNC110 (another process is at it)
            await trio.sleep(LOOK_SECONDS)
        record, registry = self._services.reloads.record, self._services.registry
        if not is_ours:
            await record.tell_successor(registry)
            return
        is_told = False
        try:
            await record.tell_start(registry, self._services.known.now.signing_keys)
            is_told = True
        finally:
            memory.told_start(is_told=is_told)

    async def _begin_later(self, live_fronts: tuple[str, ...]) -> None:
        """Once the clock tells the time again."""
        while True:
            await trio.sleep(BEGIN_AGAIN_SECONDS)
            try:
                return await self._begin(live_fronts)
            except (GateError, NotaryUnavailable, NotaryRefused):
                continue

    async def until_stopped(self) -> Exit:
        """Wait for Stop, let calls finish, close the door. Exit.KILLED when calls had to be cut."""
        await self._stopping.wait()
        with trio.move_on_after(self._stop_within or 0) as scope:
            if self._left is not None:
                await self._left.wait()
            self._services.admission.drain()
            await self._services.admission.wait_idle()
        if scope.cancelled_caught:
            log.error("stopped with calls in flight", in_flight=self._services.admission.in_flight)
        self._services.admission.close()
        await self._server.drain(CUT_SECONDS if scope.cancelled_caught else CLOSE_SECONDS)
        await self._services.refusals.tell_due()
        if self._services.memory.end_serving():
            await self._tell_stop()
        return Exit.KILLED if scope.cancelled_caught else Exit.OK

    async def _tell_stop(self) -> None:
        """The end of the gateway: by the front that leaves last."""
        try:
            await self._services.journal.own("GatewayStopped")
        except GateError as error:
            log.error("the end of the gateway left no event", code=error.code, cause=error.cause)


async def serve(control_socket: socket.socket) -> Exit:
    """Run one front to its end."""
    control = SupervisorLink(control_socket)
    start, listeners, memory = await control.start()
    name = " ".join(start.front_id.split("-")[:2])
    setproctitle(f"gateway: {name}")
    configure_logs(name)
    try:
        fixed = enter(start.settings)
    except WallRefused as error:
        log.error("the operating system refused a wall", cause=str(error))
        return Exit.SANDBOX
    if fixed:
        log.warning("these lie beside ledger or keys: restart the gateway once one is replaced", paths=fixed)
    try:
        shared = SharedMemory(memory, Layout.of(start.settings), start.number)
        services = build_services(start, control, NotaryClient(), FrontClock(0.0), shared)
    except PrivateFileError as error:
        log.error("the front can't start", cause=str(error))
        return error.exit_code
    except (ValueError, OSError) as error:
        log.error("the front can't start", cause=str(error))
        return Exit.CONFIG
    try:
        return await _live(services, control, start, listeners)
    finally:
        services.close()


async def _live(services: Services, control: SupervisorLink, start: StartFront, listeners: list[socket.socket]) -> Exit:
    doors = [
        ListeningSocket(told.kind, sock, told.stays_open) for told, sock in zip(start.listeners, listeners, strict=True)
    ]
    server = Server(doors, Dispatch(services).respond, start.settings.limits, services.metrics)
    async with trio.open_nursery() as nursery:
        front = Front(services, server, nursery)
        await nursery.start(services.notary.run)
        await nursery.start(services.policy.run)
        await nursery.start(services.pools.run)
        await nursery.start(services.broker.run)
        await nursery.start(services.exporter.run)
        nursery.start_soon(control.run, front)
        refused = None
        with front.opening:
            refused = await front.open(start.live_fronts)
        if refused is not None or front.opening.cancelled_caught:
            nursery.cancel_scope.cancel()
            return refused or Exit.OK
        release_collector()
        await nursery.start(server.run)
        services.memory.begin_serving()
        control.post(FrontReady(len(services.registry)))
        # Not left to `report`: from the first status on, the supervisor notices when this front stands still.
        control.post(services.front_status())
        nursery.start_soon(front.report)
        code = await front.until_stopped()
        nursery.cancel_scope.cancel()
    return code


def run(control: socket.socket) -> Exit:
    """Serve under the supervisor at the other end; return why that ended. Until the first message this may be a front
    that is kept ready for another one's end."""
    return run_supervised("front", partial(serve, control))
