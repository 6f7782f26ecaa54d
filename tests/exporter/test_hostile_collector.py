"""Answers of a collector that is broken or hostile: bounded, never followed, and no batch is sent twice."""

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
import trio
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from exporter import collector
from exporter.collector import CollectorClient, NotExported
from ipc.configuration.telemetry import OtlpSettings
from tests.support.authority import Authority
from tests.support.certificates import made_certificate
from tests.support.logs import capture_logs

TAKEN = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\n"
BODY = b"a batch"


@dataclass
class Played:
    """A collector that answers each request with the same bytes."""

    port: int = 0
    asked: int = 0
    heads: list[bytes] = field(default_factory=list)


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
            one.heads.append(heard)
            await line.send_all(answer)
            while then:
                await line.send_all(then)
            if hangs:
                await trio.sleep_forever()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            """The client has left."""
        finally:
            await trio.aclose_forcefully(stream)

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
        one.port = listeners[0].socket.getsockname()[1]
        yield one
        nursery.cancel_scope.cancel()


def client(port: int) -> CollectorClient:
    return CollectorClient(OtlpSettings(f"http://127.0.0.1:{port}"), "1")


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "EXPORT_SECONDS", 6.0)
    monkeypatch.setattr(collector, "REQUEST_SECONDS", 2.0)
    monkeypatch.setattr(collector, "FIRST_PAUSE_SECONDS", 0.01)


@pytest.mark.parametrize(
    ("answer", "then", "hangs"),
    [
        (TAKEN + b"transfer-encoding: chunked\r\n\r\n", b"400\r\n" + b"x" * 1024 + b"\r\n", False),
        (TAKEN + b"content-length: 9999999999\r\n\r\n", b"x" * 1024, False),
        (TAKEN + b"content-length: 10\r\n\r\nhalf", b"", False),
        (TAKEN + b"content-length: 10\r\n\r\nhalf", b"", True),
        (TAKEN + b"content-encoding: gzip\r\ncontent-length: 4\r\n\r\n\x1f\x8b\x08\x00", b"", False),
        (TAKEN + b"transfer-encoding: chunked\r\n\r\nno size\r\n", b"", False),
    ],
    ids=["endless chunks", "endless body", "half a body", "half a body, then silence", "gzip", "broken chunks"],
)
@pytest.mark.usefixtures("short")
async def test_a_batch_that_was_taken_is_not_sent_again_for_an_unreadable_answer(
    answer: bytes, then: bytes, hangs: bool
) -> None:
    async with played(answer, then=then, hangs=hangs) as one:
        assert await client(one.port).send(BODY) == 0
    assert one.asked == 1


async def test_a_batch_that_was_taken_late_has_the_whole_time_for_the_rest_of_its_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(collector, "EXPORT_SECONDS", 3.0)
    monkeypatch.setattr(collector, "REQUEST_SECONDS", 4.0)
    async with played(TAKEN + b"content-length: 10\r\n\r\nhalf", hangs=True) as one:
        assert await client(one.port).send(BODY) == 0
    assert one.asked == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed(status: int) -> None:
    async with played(b"") as other:
        place = f"http://127.0.0.1:{other.port}/v1/traces"
        answer = f"HTTP/1.1 {status} Moved\r\nlocation: {place}\r\ncontent-length: 0\r\n\r\n".encode()
        async with played(answer) as one:
            with pytest.raises(NotExported, match=f"the collector answered {status}"):
                await client(one.port).send(BODY)
    assert other.asked == 0


async def test_a_refusal_with_an_endless_body_ends_the_batch() -> None:
    answer = b"HTTP/1.1 400 Bad Request\r\ntransfer-encoding: chunked\r\n\r\n"
    async with played(answer, then=b"400\r\n" + b"x" * 1024 + b"\r\n") as one:
        with pytest.raises(NotExported, match="the collector answered 400"):
            await client(one.port).send(BODY)


@pytest.mark.parametrize(
    "answer",
    [
        b"\x00" * 100, b"HTTP/1.1 999 x\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 30_000 + b"\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx\x00y: z\r\n\r\n", b"SSH-2.0-x\r\n",
    ],
)  # fmt: skip
@pytest.mark.usefixtures("short")
async def test_an_answer_that_is_not_one_of_a_collector_s_ends_the_batch(answer: bytes) -> None:
    async with played(answer) as one:
        with pytest.raises(NotExported):
            await client(one.port).send(BODY)


@pytest.mark.parametrize("asked", [b"3600", b"Fri, 01 Jan 2100 00:00:00 GMT", b"9" * 30])
async def test_a_collector_that_asks_for_a_pause_is_left_alone_by_later_batches_too(
    asked: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "EXPORT_SECONDS", 1.0)
    answer = b"HTTP/1.1 429 Busy\r\nretry-after: " + asked + b"\r\ncontent-length: 0\r\n\r\n"
    async with played(answer) as one:
        busy = client(one.port)
        for problem in ("the collector answered 429", "it asked for a pause"):
            with pytest.raises(NotExported, match=problem):
                await busy.send(BODY)
    assert one.asked == 1


async def test_the_longest_pause_that_a_collector_can_ask_for_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "MOST_PAUSE_SECONDS", 0.0)
    answer = b"HTTP/1.1 503 Busy\r\nretry-after: 999999999\r\ncontent-length: 0\r\n\r\n"
    monkeypatch.setattr(collector, "EXPORT_SECONDS", 1.0)
    async with played(answer) as one:
        busy = client(one.port)
        for _ in range(2):
            with pytest.raises(NotExported, match="the collector answered 503"):
                await busy.send(BODY)
    assert one.asked >= 2


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
@pytest.mark.usefixtures("short")
async def test_a_collector_with_a_wrong_certificate_gets_nothing(
    made: Callable[[Path], tuple[ssl.SSLContext, str]], problem: str, tmp_path: Path
) -> None:
    context, ca_file = made(tmp_path)
    async with played(b"", tls=context) as one:
        with pytest.raises(NotExported, match=problem):
            await CollectorClient(OtlpSettings(f"https://localhost:{one.port}", ca_file=ca_file), "1").send(BODY)
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
