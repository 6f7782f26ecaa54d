"""One exporter from its first message to its last: walls, channels of fronts and of the notary, batches.

Guarantees that each front has one batch under way, and that a front which breaks the protocol loses its own channel
alone. It keeps nothing: a front gives its next batch once this one is settled. Every end has its exit code of
ipc/process/exits.py.
"""

import os
import socket
from contextlib import suppress
from functools import partial
from typing import Final

import trio

from exporter.collector import SPANS, CollectorClient, NotExported, OtlpCollector
from exporter.events import EXPORTERS, EventExporter
from exporter.spans import encoded
from exporter.walls import NICENESS, walls
from frontend.notary.client import NotaryClient
from frontend.supervised import run_supervised
from frontend.telemetry.logs import log
from ipc.channel.blocking import ChannelClosed
from ipc.channel.fds import take
from ipc.channel.framing import FrameError
from ipc.channel.nonblocking import TrioChannel
from ipc.channel.protocol_states import ProtocolError
from ipc.limits import MAX_CONTROL_FRAME, MAX_EXPORT_FRAME
from ipc.messages.exporting import (
    AttachGiver,
    CallsExported,
    ExportCalls,
    ExporterReady,
    FrontToExporter,
    StartExporter,
    SupervisorToExporter,
)
from ipc.messages.message import Message
from ipc.process.exits import Exit
from ipc.process.private_files import PrivateFileError
from ipc.process.process_speed import release_collector
from ipc.protocols.exporter import FRONT_TO_EXPORTER, SUPERVISOR_TO_EXPORTER
from ipc.walls.confining import WallRefused, enter

TOO_LARGE: Final = 413
LEAST_CALLS: Final = 16
"""A batch that is too large is sent in halves, down to so many calls."""
HALVING_SECONDS: Final = 20.0
"""For a batch in halves: it is settled before the front gives up."""
Channel = TrioChannel[Message]


def run(sock: socket.socket) -> Exit:
    """Serve the supervisor at the other end; return why it ended."""
    return run_supervised("exporter", partial(_serve, sock))


async def _serve(sock: socket.socket) -> Exit:
    control: Channel = TrioChannel(
        sock, SupervisorToExporter, table=SUPERVISOR_TO_EXPORTER, cap_in=MAX_CONTROL_FRAME,
        cap_out=MAX_CONTROL_FRAME, carries_fds=True,
    )  # fmt: skip
    start = await control.receive()
    assert isinstance(start, StartExporter), "the session table lets nothing else come first"
    os.nice(NICENESS)
    try:
        collector = CollectorClient(start.otlp, start.version)
        enter(walls(start.otlp, start.guarded), start.walls)
        collector.headers()
    except WallRefused as error:
        log.error("the operating system refused a wall", cause=str(error))
        return Exit.SANDBOX
    except PrivateFileError as error:
        log.error("the exporter can't start", cause=str(error))
        return error.exit_code
    except OSError as error:
        log.error("the exporter can't start", cause=f"telemetry.otlp.ca_file can't be used: {error.strerror}")
        return Exit.CONFIG
    client = NotaryClient(dialect=EXPORTERS)
    async with trio.open_nursery() as nursery:
        await nursery.start(client.run)
        nursery.start_soon(EventExporter(client, collector, start.version).run)
        await control.send(ExporterReady())
        release_collector()
        while True:
            attached = await control.receive()
            (descriptor,) = take(control.fds)
            channel = socket.socket(fileno=descriptor)
            if isinstance(attached, AttachGiver):
                nursery.start_soon(Giver(channel, attached.front_id, collector, start.version).serve)
            else:
                client.attach(channel)


class Giver:
    """One front that gives calls."""

    def __init__(self, sock: socket.socket, front_id: str, collector: OtlpCollector, version: str) -> None:
        self._channel: Channel = TrioChannel(
            sock, FrontToExporter, table=FRONT_TO_EXPORTER, cap_in=MAX_EXPORT_FRAME,
            cap_out=MAX_EXPORT_FRAME,
        )  # fmt: skip
        self._front_id = front_id
        self._collector = collector
        self._version = version

    async def serve(self) -> None:
        """Export batch after batch until the channel ends. Raises nothing."""
        try:
            with suppress(ChannelClosed, OSError):
                while True:
                    asked = await self._channel.receive()
                    assert isinstance(asked, ExportCalls), "the union has nothing else"
                    await self._channel.send(await self._exported(asked))
        except (FrameError, ProtocolError) as error:
            log.error("a front broke the protocol", front=self._front_id, cause=str(error))
        finally:
            self._channel.close()

    async def _exported(self, asked: ExportCalls) -> CallsExported:
        """Send a batch, or halves of it if it is too large for the collector. The rest is dropped once the collector
        answers with another error or HALVING_SECONDS are over."""
        dropped, problem, waiting = 0, "", [asked.calls] if asked.calls else []
        end = trio.current_time() + HALVING_SECONDS
        while waiting and trio.current_time() < end:
            calls = waiting.pop()
            spans = sum(call.spans for call in calls)
            body, left_out = encoded(calls, self._version)
            try:
                dropped += min(await self._collector.send(body, SPANS) + left_out, spans)
            except NotExported as error:
                half = len(calls) // 2
                if error.status == TOO_LARGE and half >= LEAST_CALLS:
                    waiting += (calls[half:], calls[:half])
                    continue
                dropped, problem = dropped + spans, str(error)
                if error.status != TOO_LARGE:
                    break
        if waiting:
            dropped += sum(call.spans for calls in waiting for call in calls)
            problem = problem or "it took too long for a batch in parts"
        return CallsExported(asked.number, dropped, problem)
