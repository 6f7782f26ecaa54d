"""One front at an exporter."""

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import trio
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from exporter.collector import SPANS, CollectorClient, NotExported, OtlpCollector, OtlpSignal
from exporter.process import Giver
from ipc.channel.nonblocking import TrioChannel
from ipc.configuration.telemetry import OtlpSettings
from ipc.limits import MAX_EXPORT_FRAME
from ipc.messages.exporting import CallsExported, ExportCalls, ExporterToFront
from ipc.messages.message import Message
from ipc.protocols.exporter import EXPORTER_TO_FRONT
from tests.exporter.test_spans import call
from tests.support.otlp_receiver import receiver


class PlayedCollector:
    """A collector that is given the number of spans in a request, and answers how many it refuses or raises."""

    def __init__(self, answer: Callable[[int], int]) -> None:
        self._answer = answer
        self.sizes: list[int] = []

    async def send(self, body: bytes, signal: OtlpSignal) -> int:
        assert signal is SPANS
        (resource,) = ExportTraceServiceRequest.FromString(body).resource_spans
        self.sizes.append(len(resource.scope_spans[0].spans))
        return self._answer(self.sizes[-1])


@asynccontextmanager
async def giving(collector: OtlpCollector) -> AsyncIterator[TrioChannel[Message]]:
    """The channel of a front to an exporter with this collector."""
    ours, theirs = socket.socketpair()
    channel: TrioChannel[Message] = TrioChannel(
        ours, ExporterToFront, table=EXPORTER_TO_FRONT, cap_in=MAX_EXPORT_FRAME, cap_out=MAX_EXPORT_FRAME
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Giver(theirs, "front-1", collector, "1").serve)
        with trio.fail_after(60):
            yield channel
        channel.close()


@pytest.mark.parametrize("status", [200, 503])
async def test_a_batch_without_calls_is_answered_and_the_collector_not_asked(status: int) -> None:
    with receiver() as received:
        received.status = status
        async with giving(CollectorClient(OtlpSettings(received.endpoint), "1")) as channel:
            await channel.send(ExportCalls(1, ()))
            assert await channel.receive() == CallsExported(1, 0)
    assert received.asked == 0


def largest(most: int) -> Callable[[int], int]:
    """Answer 413 to more spans than so many."""

    def answer(spans: int) -> int:
        if spans > most:
            raise NotExported("the collector answered 413", 413)
        return 0

    return answer


def failing(status: int) -> Callable[[int], int]:
    def answer(_spans: int) -> int:
        raise NotExported(f"the collector answered {status}", status)

    return answer


@pytest.mark.parametrize(
    ("answer", "sizes", "dropped", "problem"),
    [
        (largest(100), [100], 0, ""),
        (largest(60), [100, 50, 50], 0, ""),
        (largest(25), [100, 50, 25, 25, 50, 25, 25], 0, ""),
        (largest(10), [100, 50, 25, 25, 50, 25, 25], 100, "the collector answered 413"),
        (failing(400), [100], 100, "the collector answered 400"),
    ],
)
async def test_a_batch_that_is_too_large_goes_in_halves_down_to_a_bound(
    answer: Callable[[int], int], sizes: list[int], dropped: int, problem: str
) -> None:
    collector = PlayedCollector(answer)
    async with giving(collector) as channel:
        await channel.send(ExportCalls(1, (call(steps=(), host_calls=()),) * 100))
        assert await channel.receive() == CallsExported(1, dropped, problem)
    assert collector.sizes == sizes


async def test_the_rest_of_a_batch_is_dropped_once_the_collector_takes_none() -> None:
    def answer(spans: int) -> int:
        raise NotExported("too large", 413) if spans > 50 else NotExported("no answer in time")

    collector = PlayedCollector(answer)
    async with giving(collector) as channel:
        await channel.send(ExportCalls(1, (call(steps=(), host_calls=()),) * 100))
        assert await channel.receive() == CallsExported(1, 100, "no answer in time")
    assert collector.sizes == [100, 50]


async def test_the_rest_of_a_batch_is_dropped_once_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(spans: int) -> int:
        if spans > 50:
            raise NotExported("too large", 413)
        monkeypatch.setattr(trio, "current_time", lambda: float("inf"))
        return 0

    collector = PlayedCollector(answer)
    async with giving(collector) as channel:
        await channel.send(ExportCalls(1, (call(steps=(), host_calls=()),) * 100))
        assert await channel.receive() == CallsExported(1, 50, "it took too long for a batch in parts")
    assert collector.sizes == [100, 50]
