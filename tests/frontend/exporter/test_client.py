"""Calls on their way to an exporter: no call waits, and each span is counted once, whatever the exporter does."""

import socket
from collections.abc import AsyncIterator

import pytest
import trio

from frontend.exporter import client as giving
from frontend.exporter.client import MOST_IN_BATCH, MOST_WAITING, ExporterClient
from frontend.telemetry.metrics import DROPPED, EXPORTED, Metrics
from ipc.channel.nonblocking import TrioChannel
from ipc.limits import MAX_EXPORT_FRAME
from ipc.messages.exporting import CallsExported, ExportCalls, ExportedCall, FrontToExporter, TimedStep
from ipc.messages.message import Message
from ipc.protocols.exporter import FRONT_TO_EXPORTER
from tests.support.logs import capture_logs
from tests.support.worker_desk import until

PID = 4711


def call(principal: str = "uid:1") -> ExportedCall:
    return ExportedCall("trc_", 0, 0, principal, "", "echo", "allow", steps=(TimedStep("policy", 0, 1),))


class Scene:
    def __init__(self) -> None:
        self.replaced: list[tuple[int, str]] = []
        self.metrics = Metrics(lambda: None)  # type: ignore[arg-type, return-value]
        self.client = ExporterClient(self, self.metrics)
        self.exporters: list[TrioChannel[Message]] = []

    def exporter(self) -> TrioChannel[Message]:
        ours, theirs = socket.socketpair()
        self.client.attach(ours, PID)
        made: TrioChannel[Message] = TrioChannel(
            theirs, FrontToExporter, table=FRONT_TO_EXPORTER, cap_in=MAX_EXPORT_FRAME,
            cap_out=MAX_EXPORT_FRAME,
        )  # fmt: skip
        self.exporters.append(made)
        return made

    def replace_exporter(self, pid: int, reason: str) -> None:
        self.replaced.append((pid, reason))

    def counted(self, outcome: str) -> float:
        (sample,) = [
            one for one in self.metrics.otlp_spans.shown().samples
            if one.labels == {"outcome": outcome} and one.name.endswith("_total")
        ]  # fmt: skip
        return sample.value


@pytest.fixture
async def at() -> AsyncIterator[Scene]:
    made = Scene()
    async with trio.open_nursery() as nursery:
        await nursery.start(made.client.run)
        yield made
        nursery.cancel_scope.cancel()
    for exporter in made.exporters:
        exporter.close()


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giving, "GATHER_SECONDS", 0.0)


async def batch_at(exporter: TrioChannel[Message]) -> ExportCalls:
    with trio.fail_after(60):
        asked = await exporter.receive()
    assert isinstance(asked, ExportCalls)
    return asked


@pytest.mark.parametrize(("dropped", "counts"), [(0, (2, 0)), (10**12, (0, 2))], ids=["none", "more than it had"])
async def test_a_batch_is_counted_once_as_exported_or_dropped(at: Scene, dropped: int, counts: tuple[int, int]) -> None:
    exporter = at.exporter()
    at.client.give(call())
    asked = await batch_at(exporter)
    await exporter.send(CallsExported(asked.number, dropped, "no answer in time" if dropped else ""))
    await until(lambda: (at.counted(EXPORTED), at.counted(DROPPED)) == counts)


async def test_what_finds_no_room_beside_a_hanging_exporter_is_dropped_at_once(at: Scene) -> None:
    exporter = at.exporter()
    at.client.give(call())
    await batch_at(exporter)
    for _ in range(MOST_WAITING + 5):
        at.client.give(call())
    assert at.counted(DROPPED) == 10


async def test_an_exporter_that_answers_another_batch_is_replaced_and_its_batch_dropped(at: Scene) -> None:
    exporter = at.exporter()
    at.client.give(call())
    asked = await batch_at(exporter)
    await exporter.send(CallsExported(asked.number + 1, 0))
    await until(lambda: bool(at.replaced))
    assert (at.replaced[0][0], at.counted(DROPPED)) == (PID, 2)


async def test_an_exporter_that_never_answers_is_replaced(at: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giving, "ANSWER_SECONDS", 0.05)
    at.exporter()
    at.client.give(call())
    await until(lambda: bool(at.replaced))
    assert at.replaced == [(PID, "no answer in time")]


async def test_calls_wait_for_the_successor_of_an_exporter_that_ended(at: Scene) -> None:
    at.exporter().close()
    at.client.give(call())
    await until(lambda: bool(at.replaced))
    second = at.exporter()
    assert (await batch_at(second)).calls == (call(),)
    assert at.counted(DROPPED) == 0


async def test_a_batch_is_bounded(at: Scene) -> None:
    for _ in range(MOST_IN_BATCH + 1):
        at.client.give(call())
    exporter = at.exporter()
    first = await batch_at(exporter)
    await exporter.send(CallsExported(first.number, 0))
    assert (len(first.calls), len((await batch_at(exporter)).calls)) == (MOST_IN_BATCH, 1)


async def test_an_exporter_that_hangs_without_calls_is_replaced(at: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giving, "IDLE_SECONDS", 0.05)
    monkeypatch.setattr(giving, "ANSWER_SECONDS", 0.05)
    exporter = at.exporter()
    assert (await batch_at(exporter)).calls == ()
    await until(lambda: bool(at.replaced))
    assert at.replaced == [(PID, "no answer in time")]


async def test_a_batch_without_calls_says_nothing_of_the_collector(at: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giving, "IDLE_SECONDS", 0.05)
    exporter = at.exporter()
    with capture_logs() as lines:
        at.client.give(call())
        asked = await batch_at(exporter)
        await exporter.send(CallsExported(asked.number, 2, "no answer in time"))
        for _ in range(2):
            idle = await batch_at(exporter)
            assert idle.calls == ()
            await exporter.send(CallsExported(idle.number, 0))
    assert [line["event"] for line in lines].count("the collector takes spans again") == 0
