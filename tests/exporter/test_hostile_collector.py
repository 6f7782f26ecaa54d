"""Answers of a collector that is broken or hostile: bounded, never followed, and no batch is sent twice."""

import math
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
import trio
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from trio.testing import MockClock, wait_all_tasks_blocked

from exporter import collector
from exporter.collector import CollectorClient, NotExported
from ipc.configuration.telemetry import OtlpSettings
from tests.support.authority import Authority
from tests.support.certificates import made_certificate
from tests.support.logs import capture_logs

TAKEN = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\n"
BODY = b"a batch"
NO_HTTP = "the connection ended without an answer in HTTP"


@dataclass
class Played:
    """A collector that answers each request with the same bytes."""

    port: int = 0
    asked: int = 0
    left: trio.Semaphore = field(default_factory=lambda: trio.Semaphore(0))
    """Counts the connections that the client has ended."""


@asynccontextmanager
async def played(
    answer: bytes, *, then: bytes = b"", hangs: bool = False, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Played]:
    """`then` follows the answer without an end; `hangs`: nothing does, and the connection stays open."""
    one = Played()

    async def serve(stream: trio.SocketStream) -> None:
        line: trio.abc.Stream = stream if tls is None else trio.SSLStream(stream, tls, server_side=True)
        try:
            heard = b""
            while not heard.endswith(b"\r\n\r\n" + BODY):
                heard += bytes(await line.receive_some(65536)) or b"\r\n\r\n" + BODY
            one.asked += 1
            await line.send_all(answer)
            while then:
                await line.send_all(then)
            if hangs:
                await trio.sleep_forever()
            await stream.send_eof()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            """The client has left."""
        with suppress(trio.BrokenResourceError):
            while await stream.receive_some(65536):
                """Read on."""
        one.left.release()

    with trio.fail_after(100):
        async with trio.open_nursery() as nursery:
            listeners = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
            one.port = listeners[0].socket.getsockname()[1]
            yield one
            nursery.cancel_scope.cancel()


def client(port: int) -> CollectorClient:
    return CollectorClient(OtlpSettings(f"http://127.0.0.1:{port}"), "1")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> MockClock:
    """Goes as any other, and can be put forward. The client tries each batch once, and waits until its time ends."""
    monkeypatch.setattr(collector, "FIRST_PAUSE_SECONDS", math.inf)
    return MockClock(rate=1)


async def refused(sender: CollectorClient, one: Played | None, problem: str, clock: MockClock) -> None:
    """Send a batch, and end its time once the client has left the collector, if it goes there at all, and waits."""

    async def end_its_time() -> None:
        if one is not None:
            await one.left.acquire()
        await wait_all_tasks_blocked(0.0 if one is not None else 0.5)
        clock.jump(collector.EXPORT_SECONDS)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(end_its_time)
        with pytest.raises(NotExported, match=problem):
            await sender.send(BODY)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("answer", "then"),
    [
        (TAKEN + b"transfer-encoding: chunked\r\n\r\n", b"400\r\n" + b"x" * 1024 + b"\r\n"),
        (TAKEN + b"content-length: 9999999999\r\n\r\n", b"x" * 1024),
        (TAKEN + b"content-length: 10\r\n\r\nhalf", b""),
        (TAKEN + b"content-encoding: gzip\r\ncontent-length: 4\r\n\r\n\x1f\x8b\x08\x00", b""),
    ],
    ids=["endless chunks", "endless body", "half a body", "gzip"],
)
async def test_a_batch_that_was_taken_is_not_sent_again_for_an_unreadable_answer(
    answer: bytes, then: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "FIRST_PAUSE_SECONDS", 0.01)
    async with played(answer, then=then) as one:
        assert await client(one.port).send(BODY) == 0
    assert one.asked == 1


async def test_a_batch_that_was_taken_late_has_the_whole_time_for_the_rest_of_its_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(collector, "EXPORT_SECONDS", 2.0)
    monkeypatch.setattr(collector, "REQUEST_SECONDS", 2.0)
    async with played(TAKEN + b"content-length: 10\r\n\r\nhalf", hangs=True) as one:
        assert await client(one.port).send(BODY) == 0
    assert one.asked == 1


async def test_a_redirect_is_not_followed() -> None:
    async with played(b"") as other:
        place = f"http://127.0.0.1:{other.port}/v1/traces"
        answer = f"HTTP/1.1 307 Moved\r\nlocation: {place}\r\ncontent-length: 0\r\n\r\n".encode()
        async with played(answer) as one:
            with pytest.raises(NotExported, match="the collector answered 307"):
                await client(one.port).send(BODY)
    assert other.asked == 0


async def test_a_refusal_with_an_endless_body_ends_the_batch() -> None:
    answer = b"HTTP/1.1 400 Bad Request\r\ntransfer-encoding: chunked\r\n\r\n"
    async with played(answer, then=b"400\r\n" + b"x" * 1024 + b"\r\n") as one:
        with pytest.raises(NotExported, match="the collector answered 400"):
            await client(one.port).send(BODY)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"\x00" * 100, NO_HTTP),
        (b"HTTP/1.1 999 x\r\n\r\n", "the collector answered 999"),
        (b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", NO_HTTP),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 30_000 + b"\r\n", NO_HTTP),
        (b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", NO_HTTP),
    ],
    ids=["no HTTP", "unknown status", "another protocol", "endless headers", "negative length"],
)
async def test_an_answer_that_is_not_one_of_a_collector_s_ends_the_batch(
    answer: bytes, problem: str, clock: MockClock
) -> None:
    async with played(answer) as one:
        await refused(client(one.port), one, problem, clock)


async def test_a_collector_that_asks_for_a_pause_is_left_alone_by_later_batches_too(clock: MockClock) -> None:
    async with played(b"HTTP/1.1 429 Busy\r\nretry-after: 3600\r\ncontent-length: 0\r\n\r\n") as one:
        busy = client(one.port)
        await refused(busy, one, "the collector answered 429", clock)
        await refused(busy, None, "it asked for a pause", clock)
    assert one.asked == 1


async def test_the_longest_pause_that_a_collector_can_ask_for_is_bounded(
    clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "MOST_PAUSE_SECONDS", 0.0)
    async with played(b"HTTP/1.1 503 Busy\r\nretry-after: 999999999\r\ncontent-length: 0\r\n\r\n") as one:
        busy = client(one.port)
        for _ in range(2):
            await refused(busy, one, "the collector answered 503", clock)
    assert one.asked == 2


def trusted(folder: Path) -> tuple[ssl.SSLContext, str]:
    authority = Authority(folder)
    return authority.server("localhost"), str(authority.file)


def of_another_authority(folder: Path) -> tuple[ssl.SSLContext, str]:
    return Authority(folder).server("localhost"), str(Authority(folder, "another").file)


def of_another_name(folder: Path) -> tuple[ssl.SSLContext, str]:
    authority = Authority(folder)
    return authority.server("collector.example"), str(authority.file)


def out_of_date(folder: Path) -> tuple[ssl.SSLContext, str]:
    authority = Authority(folder)
    return authority.server("localhost", is_expired=True), str(authority.file)


def of_itself(folder: Path) -> tuple[ssl.SSLContext, str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made_certificate(folder), folder / "key.pem")
    return context, str(Authority(folder).file)


async def test_a_collector_of_the_trusted_authority_gets_the_batch_over_tls(tmp_path: Path) -> None:
    context, ca_file = trusted(tmp_path)
    answer = TAKEN + b"content-length: 0\r\n\r\n"
    async with played(answer, tls=context) as one:
        settings = OtlpSettings(f"https://localhost:{one.port}", ca_file=ca_file)
        assert await CollectorClient(settings, "1").send(BODY) == 0
    assert one.asked == 1


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (of_another_authority, "the certificate is signed by an unknown authority"),
        (of_another_name, "the certificate is not valid for its name"),
        (out_of_date, "the certificate has expired"),
        (of_itself, "the certificate is self-signed and not trusted"),
    ],
)
async def test_a_collector_with_a_wrong_certificate_gets_nothing(
    made: Callable[[Path], tuple[ssl.SSLContext, str]], problem: str, tmp_path: Path, clock: MockClock
) -> None:
    context, ca_file = made(tmp_path)
    async with played(b"", tls=context) as one:
        settings = OtlpSettings(f"https://localhost:{one.port}", ca_file=ca_file)
        await refused(CollectorClient(settings, "1"), one, problem, clock)
    assert one.asked == 0


async def test_spans_that_are_refused_again_and_again_are_logged_once() -> None:
    told = ExportTraceServiceResponse()
    told.partial_success.rejected_spans = 3
    answer = told.SerializeToString()
    async with played(TAKEN + f"content-length: {len(answer)}\r\n\r\n".encode() + answer) as one:
        strict = client(one.port)
        with capture_logs() as lines:
            assert [await strict.send(BODY) for _ in range(3)] == [3, 3, 3]
    assert [line["event"] for line in lines] == ["the collector refuses spans"]
