"""One front at an exporter."""

import socket

import pytest
import trio

from exporter.collector import CollectorClient
from exporter.process import Giver
from ipc.channel.nonblocking import TrioChannel
from ipc.channel.protocol_states import EXPORTER_TO_FRONT
from ipc.configuration.telemetry import OtlpSettings
from ipc.limits import MAX_EXPORT_FRAME
from ipc.messages.exporting import CallsExported, ExportCalls, ExporterToFront
from ipc.messages.message import Message
from tests.support.otlp_receiver import receiver


@pytest.mark.parametrize("status", [200, 503])
async def test_a_batch_without_calls_is_answered_and_the_collector_not_asked(status: int) -> None:
    ours, theirs = socket.socketpair()
    channel: TrioChannel[Message] = TrioChannel(
        ours, ExporterToFront, table=EXPORTER_TO_FRONT, start="open", cap_in=MAX_EXPORT_FRAME, cap_out=MAX_EXPORT_FRAME
    )
    with receiver() as received:
        received.status = status
        collector = CollectorClient(OtlpSettings(received.endpoint), "1")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Giver(theirs, "front-1", collector, "1").serve)
            await channel.send(ExportCalls(1, ()))
            with trio.fail_after(60):
                assert await channel.receive() == CallsExported(1, 0)
            channel.close()
    assert received.asked == 0
