"""A worker: what a child of the template becomes. Serves one front on the notary's word: one call at a time or, in the
http profile, several shared ones.

Owns two channels and nothing else: no listening socket, no store, no key. Order: let go of everything inherited, build
the walls, hear the notary, say so to the front, then calls (workers/worker_loop.py). Leaves with a code of
`ipc.process.exits`.
"""

import os
import socket
import ssl
import struct
from collections.abc import Mapping

import msgspec
import setproctitle
from msgspec.structs import replace
from wasmtime import Engine

from ipc.channel.blocking import BlockingChannel, ChannelClosed
from ipc.channel.framing import FrameError
from ipc.channel.packets import PacketChannel
from ipc.channel.protocol_states import ProtocolError
from ipc.limits import MAX_CALL_FRAME, MAX_CONTROL_FRAME, MAX_RESULT_FRAME
from ipc.messages.attesting import NotaryToWorker
from ipc.messages.calling import FrontToWorker, WorkerReady
from ipc.process.exits import Exit
from ipc.protocols.worker import FRONT_TO_WORKER, NOTARY_TO_WORKER
from ipc.walls.confining import WallRefused
from ipc.walls.given import Given
from workers.crew import Crew
from workers.forking import settle
from workers.host.network import NetworkContext
from workers.host.network_tls import Authorities, with_certificates
from workers.host.resolver import Resolver
from workers.host.space import FileSpace, LedgerReserve
from workers.log import write_failure, write_line
from workers.runtime.call import Runner
from workers.runtime.modules import Module
from workers.runtime.ticker import EpochTicker
from workers.sandbox.profiles import enter, prepare
from workers.worker_loop import FrontChannel, NotaryChannel, WorkerLoop

SEND_SECONDS = 30
"""A peer that does not take a result for this long will not take it at all."""


class Birth(msgspec.Struct, frozen=True):
    """The start of a child: its name, the descriptors of its channels with front and notary, and the work of the
    template before the fork."""

    worker_id: str
    profile: str
    title: str
    descriptors: tuple[int, int]
    recycle_after_calls: int
    engine: Engine
    modules: Mapping[str, Module]
    tls: ssl.SSLContext
    proxy_tls: ssl.SSLContext
    files_dir: str
    walls: Given
    ledger_volume: LedgerReserve | None = None
    networks: Authorities = msgspec.field(default_factory=dict)
    own_servers: frozenset[str] = frozenset()


def live(birth: Birth) -> Exit:
    """The whole life of a worker, from the fork to its exit code."""
    settle(birth.descriptors)
    setproctitle.setproctitle(birth.title)
    front, notary = _open_channels(birth.descriptors)
    try:
        prepared = prepare(birth.profile, birth.walls, birth.files_dir)
        ticker = EpochTicker(birth.engine)
        has_http = prepared.profile.rights.may_connect
        outside = _network_context(birth) if has_http else None
        outsides = [] if outside is None else [outside]
        space = FileSpace(birth.ledger_volume)

        def make_runner(outside: NetworkContext | None) -> Runner:
            return Runner(birth.engine, birth.modules, prepared.profile, ticker, outside, birth.files_dir, space)

        def make_shared_runner() -> Runner:
            assert outside is not None, "only the http profile has a crew"
            outsides.append(replace(outside, resolver=Resolver()))
            return make_runner(outsides[-1])

        crew = Crew(make_shared_runner) if has_http else None

        def start_threads() -> None:
            ticker.start()
            for one in outsides:
                one.resolver.start()
            if crew is not None:
                crew.start()

        runner = make_runner(outside)
        enter(prepared, start_threads)
        loop = WorkerLoop(
            front, notary, runner, birth.recycle_after_calls, standing=prepared.standing,
            process=birth.title.removeprefix("gateway: "), crew=crew,
        )  # fmt: skip
        # A front that knows of this worker may name it to the notary: not before the notary knows it.
        loop.wait_tied()
        front.send(WorkerReady(birth.worker_id, os.getpid(), birth.profile))
        code = loop.serve()
        if outside is not None:
            outside.kept.close()
        return code
    except WallRefused as error:
        write_line("error", "the operating system refused a wall", worker_id=birth.worker_id, reason=str(error))
        return Exit.SANDBOX
    except (FrameError, ProtocolError) as error:
        write_line("error", "a peer broke the protocol", worker_id=birth.worker_id, reason=str(error))
        return Exit.PROTOCOL
    except (ChannelClosed, OSError):
        return Exit.ORPHANED
    except Exception as error:
        write_failure("worker failed", error, worker_id=birth.worker_id)
        return Exit.FAILED


def _network_context(birth: Birth) -> NetworkContext:
    return NetworkContext(
        Resolver(), birth.tls, proxy_tls=birth.proxy_tls, network_tls=with_certificates(birth.networks),
        own_servers=birth.own_servers,
    )  # fmt: skip


def _open_channels(descriptors: tuple[int, int]) -> tuple[FrontChannel, NotaryChannel]:
    streams = [socket.socket(fileno=descriptor) for descriptor in descriptors]
    for stream in streams:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_SECONDS, 0))
    front: FrontChannel = BlockingChannel(
        streams[0], FrontToWorker, table=FRONT_TO_WORKER, cap_in=MAX_CALL_FRAME,
        cap_out=MAX_RESULT_FRAME,
    )  # fmt: skip
    notary: NotaryChannel = PacketChannel(
        streams[1], NotaryToWorker, table=NOTARY_TO_WORKER, cap_in=MAX_CONTROL_FRAME,
        cap_out=MAX_RESULT_FRAME,
    )  # fmt: skip
    return front, notary
