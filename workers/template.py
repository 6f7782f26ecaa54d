"""The template: imports the runtime once, maps the modules, forks workers. `python -m workers.template`.

Owns the compiled modules and the pids of all workers. Stays single-threaded, runs no call and reads no request, so
that every fork is a clean copy. Answers messages, compilers that end and workers that die from one poll; nothing here
waits for anything else.
"""

import ctypes
import gc
import os
import selectors
import socket
import ssl
import sys
import time
import traceback
from contextlib import suppress
from typing import NoReturn

import msgspec
import setproctitle

from ipc.channel.blocking import BlockingChannel, ChannelClosed
from ipc.channel.fds import DescriptorLost, take
from ipc.channel.framing import FrameError
from ipc.channel.protocol_states import ProtocolError
from ipc.limits import MAX_CONTROL_FRAME
from ipc.messages.attesting import NotaryToWorker
from ipc.messages.calling import FrontToWorker
from ipc.messages.forking import (
    KillForked,
    SpawnWorker,
    StartTemplate,
    SupervisorToTemplate,
    TemplateReady,
    UseNetworks,
    WorkerExited,
    WorkerStarted,
)
from ipc.messages.message import Message
from ipc.messages.modules import LoadModules
from ipc.messages.pinging import Ping, Pong
from ipc.process.exits import Exit
from ipc.process.parent import die_with_parent, leave_signals_to_parent, refuse_core_dumps
from ipc.protocols.template import SUPERVISOR_TO_TEMPLATE
from ipc.walls.confining import WallRefused, enter
from workers.cache import Cache, CacheRefused
from workers.forking import Forked, fork, leave
from workers.host.connection import make_tls
from workers.host.network_tls import Authorities, read_authorities
from workers.host.space import LedgerReserve
from workers.loading import Loader
from workers.log import write_failure, write_line
from workers.runtime.modules import make_engine
from workers.sandbox.profiles import PROFILES
from workers.sandbox.template import be_ended_first, walls
from workers.verifiers.schema import check_schema
from workers.worker import Birth, live

SEND_SECONDS = 30.0
"""A supervisor that does not read for this long is gone for all purposes."""

_RESERVES_OF_LEDGER = 2
"""Files of actions leave so many times `ledger.min_free_bytes` free on the ledger's volume."""
_M_ARENA_MAX = -8
_NAME = "a.example"
_SCHEMA = '{"type": "object", "properties": {"a": {"type": "string", "pattern": "a+", "format": "date"}}}'

_Channel = BlockingChannel[StartTemplate | UseNetworks | LoadModules | SpawnWorker | KillForked | Ping]


class TemplateOptions(msgspec.Struct, frozen=True):
    """The command line."""

    control_fd: int
    parent: int
    title: str


class Template:
    """The serving template. `serve` returns an exit code in the template, a Birth in each child that it forks."""

    def __init__(self, channel: _Channel) -> None:
        self._channel = channel
        self._engine = make_engine()
        self._tls = self._proxy_tls = make_tls()
        self._networks: Authorities = {}
        self._workers: dict[str, Forked] = {}
        self._start: StartTemplate | None = None
        self._loader: Loader | None = None
        self._ledger_volume: LedgerReserve | None = None
        # poll(2), not epoll: an epoll set would be shared with every child.
        self._selector = selectors.PollSelector()
        self._selector.register(channel, selectors.EVENT_READ)

    def serve(self) -> Exit | Birth:
        """Serve until the supervisor closes the channel. Raises FrameError and ProtocolError for its mistakes."""
        _warm_up()
        while True:
            ready = {key.fileobj for key, _ in self._selector.select(self._timeout())}
            self._reap()
            if self._channel in ready:
                try:
                    self._channel.fill()
                except ChannelClosed:
                    return Exit.ORPHANED
                while (message := self._channel.pending()) is not None:
                    born = self._answer(message)
                    if born is not None:
                        return born
            self._advance()

    def _timeout(self) -> float | None:
        return max(0.0, self._loader.next_deadline() - time.monotonic()) if self._loader else None

    def _answer(self, message: Message) -> Birth | Exit | None:
        match message:
            case StartTemplate():
                return self._answer_start(message)
            case LoadModules() if self._loader is not None:
                self._loader.submit(message)
            case UseNetworks() if self._loader is not None:
                self._networks = read_authorities(message.networks)
                self._loader.renew()
            case SpawnWorker():
                return self._answer_spawn(message)
            case KillForked():
                worker = self._workers.get(message.worker_id)
                if worker is not None:
                    worker.kill()
            case Ping():
                self._channel.send(Pong())
        return None

    def _answer_start(self, message: StartTemplate) -> Exit | None:
        self._start = message
        if message.ledger_dir is not None:
            with suppress(OSError):  # a ledger that can't be looked at starts no gateway
                device = os.stat(message.ledger_dir).st_dev
                self._ledger_volume = LedgerReserve(device, _RESERVES_OF_LEDGER * message.min_free_bytes)
        try:
            enter(walls(message.walls), message.walls)
            self._loader = Loader(self._engine, Cache(message.cache_dir), message.walls)
        except WallRefused as error:
            write_line("error", "the operating system refused a wall", reason=str(error))
            return Exit.SANDBOX
        except CacheRefused as error:
            write_line("error", "the folder of compiled modules is refused", reason=str(error))
            return Exit.NO_PERMISSION
        self._proxy_tls = self._tls_for_proxy(message.proxy_ca_file)
        self._networks = read_authorities(message.networks)
        self._channel.send(TemplateReady())
        return None

    def _tls_for_proxy(self, authorities: str | None) -> ssl.SSLContext:
        """By these authorities; by none, so that no proxy at https will do, where they can't be read any more."""
        try:
            return self._tls if authorities is None else make_tls(authorities)
        except OSError as error:
            write_line("error", "egress.proxy_ca_file can't be used: no call gets through", reason=str(error))
            return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    def _answer_spawn(self, message: SpawnWorker) -> Birth | None:
        assert self._loader is not None, "the session table lets no SpawnWorker come before StartTemplate"
        assert self._start is not None, "set together with the loader"
        try:
            channel, attesting = take(self._channel.fds, SpawnWorker.FDS)
        except DescriptorLost as error:
            write_line("error", "a worker could not be forked", reason=str(error))
            self._channel.send(WorkerExited(message.worker_id, 0, Exit.UNAVAILABLE))
            return None
        descriptors = (channel, attesting)
        gc.freeze()
        try:
            child = fork()
        except OSError as error:
            _close(descriptors)
            write_line("error", "a worker could not be forked", reason=os.strerror(error.errno or 0))
            self._channel.send(WorkerExited(message.worker_id, 0, Exit.UNAVAILABLE))
            return None
        if child is None:
            # Ours no more: closed here by their owners, so that nothing closes a reused number later.
            self._channel.close()
            self._selector.close()
            return Birth(
                worker_id=message.worker_id, profile=message.profile, title=message.title, descriptors=descriptors,
                recycle_after_calls=self._start.recycle_after_calls, engine=self._engine,
                modules=dict(self._loader.modules), tls=self._tls, proxy_tls=self._proxy_tls,
                files_dir=self._start.files_dir, walls=self._start.walls, ledger_volume=self._ledger_volume,
                networks=self._networks, own_servers=self._start.own_servers,
            )  # fmt: skip
        _close(descriptors)
        self._workers[message.worker_id] = child
        self._selector.register(child.handle, selectors.EVENT_READ)
        self._channel.send(WorkerStarted(message.worker_id, child.pid, self._loader.generation))
        return None

    def _reap(self) -> None:
        for worker_id, worker in list(self._workers.items()):
            if worker.has_ended():
                del self._workers[worker_id]
                self._selector.unregister(worker.handle)
                self._channel.send(WorkerExited(worker_id, worker.pid, worker.reap()))

    def _advance(self) -> None:
        """Take the next steps of loading, and wait for the compilers that are under way now."""
        if self._loader is None:
            return
        for answer in self._loader.advance():
            self._channel.send(answer)
        wanted = {one.child.handle for one in self._loader.compilations.values()}
        workers = {worker.handle for worker in self._workers.values()}
        watched = {key.fd for key in self._selector.get_map().values()} - workers - {self._channel.fileno()}
        for handle in watched - wanted:
            self._selector.unregister(handle)
        for handle in wanted - watched:
            self._selector.register(handle, selectors.EVENT_READ)


def parse_options(arguments: list[str]) -> TemplateOptions:
    """`--control-fd N --parent PID [--title TEXT]`. Raises ValueError."""
    given = dict(zip(arguments[::2], arguments[1::2], strict=True))
    options = TemplateOptions(
        int(given.pop("--control-fd", "")), int(given.pop("--parent", "")), given.pop("--title", "gateway: template")
    )
    if given:
        raise ValueError(f"unknown option {next(iter(given))}")
    return options


def main(arguments: list[str]) -> int:
    """Run until the supervisor is done with us. Returns an exit code; in a forked child it never returns."""
    try:
        options = parse_options(arguments)
    except ValueError:
        sys.stderr.write("usage: python -m workers.template --control-fd N --parent PID [--title TEXT]\n")
        return Exit.USAGE
    die_with_parent(options.parent)
    leave_signals_to_parent()
    with suppress(OSError):
        be_ended_first()
    refuse_core_dumps()
    setproctitle.setproctitle(options.title)
    control = socket.socket(fileno=options.control_fd)
    control.set_inheritable(False)
    control.settimeout(SEND_SECONDS)
    channel: _Channel = BlockingChannel(
        control, SupervisorToTemplate, table=SUPERVISOR_TO_TEMPLATE, cap_in=MAX_CONTROL_FRAME,
        cap_out=MAX_CONTROL_FRAME,
    )  # fmt: skip
    template = Template(channel)
    template_pid = os.getpid()
    try:
        ended = template.serve()
    except BaseException as error:
        if os.getpid() != template_pid:
            leave(error)
        return _exit_after(error)
    if isinstance(ended, Birth):
        _live(ended)
    return ended


def _warm_up() -> None:
    """Do once, here, what every worker would otherwise do for itself and pay for in memory of its own, or could not do
    behind its walls."""
    for profile in PROFILES.values():
        profile.warm_up()
    check_schema(_SCHEMA, {})
    _NAME.encode("idna")
    time.tzset()
    traceback.format_exception(LookupError(_NAME))
    msgspec.msgpack.Decoder(FrontToWorker)
    msgspec.msgpack.Decoder(NotaryToWorker)
    # One heap for all threads of a worker: a second one would cost it a hundred kilobytes.
    ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)
    gc.collect()
    gc.freeze()


def _close(descriptors: tuple[int, ...]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _exit_after(error: BaseException) -> Exit:
    if isinstance(error, FrameError | ProtocolError):
        write_line("error", "the supervisor broke the protocol", reason=str(error))
        return Exit.PROTOCOL
    if isinstance(error, OSError):
        write_line("error", "the supervisor's channel broke", reason=os.strerror(error.errno or 0))
        return Exit.ORPHANED
    write_failure("the template failed", error)
    return Exit.FAILED


def _live(birth: Birth) -> NoReturn:
    try:
        leave(live(birth))
    except BaseException as error:
        leave(error)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
