"""Requests to a collector: what is sent, what is sent again, and what ends a batch."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from exporter import collector
from exporter.collector import CollectorClient, NotExported, headers_in
from ipc.configuration.telemetry import OtlpSettings
from ipc.process.private_files import PrivateFileError
from tests.support.otlp_receiver import Received, receiver
from tests.support.ports import free_port
from tests.support.worker_desk import until

SECRET = "Bearer of-the-collector"


@pytest.fixture
def received() -> Iterator[Received]:
    with receiver() as one:
        yield one


def headers_file(folder: Path, text: str) -> Path:
    file = folder / "headers"
    file.touch(mode=0o600)
    file.write_text(text)
    return file


async def test_a_batch_goes_to_the_path_of_traces_with_the_headers_of_the_file(
    received: Received, tmp_path: Path
) -> None:
    file = headers_file(tmp_path, f"Authorization: {SECRET}\n\nX-Tenant:  corp\n")
    client = CollectorClient(OtlpSettings(received.endpoint, str(file)), "1.2.3")
    assert await client.send(b"") == 0
    (headers,) = received.headers
    assert (headers["authorization"], headers["x-tenant"]) == (SECRET, "corp")
    assert (headers["content-type"], headers["user-agent"]) == ("application/x-protobuf", "action-gateway/1.2.3")


async def test_a_header_that_is_replaced_is_sent_with_the_next_batch(received: Received, tmp_path: Path) -> None:
    file = headers_file(tmp_path, "X-Tenant: one")
    client = CollectorClient(OtlpSettings(received.endpoint, str(file)), "1")
    await client.send(b"")
    file.write_text("X-Tenant: two")
    await client.send(b"")
    assert [one["x-tenant"] for one in received.headers] == ["one", "two"]


async def test_a_collector_that_is_busy_gets_the_same_batch_again(
    received: Received, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "EXPORT_SECONDS", 300.0)
    monkeypatch.setattr(collector, "FIRST_PAUSE_SECONDS", 0.01)
    received.status = 503

    async def mend() -> None:
        await until(lambda: received.asked > 1)
        received.status = 200

    async with trio.open_nursery() as nursery:
        nursery.start_soon(mend)
        assert await CollectorClient(OtlpSettings(received.endpoint), "1").send(b"") == 0
    assert received.bodies == [b""]


@pytest.mark.parametrize("status", [400, 401, 404, 500, 507])
async def test_any_other_answer_ends_the_batch(received: Received, status: int) -> None:
    received.status = status
    with pytest.raises(NotExported, match=f"the collector answered {status}"):
        await CollectorClient(OtlpSettings(received.endpoint), "1").send(b"")


async def test_a_collector_that_is_not_there_ends_the_batch_in_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "EXPORT_SECONDS", 3.0)
    with pytest.raises(NotExported, match="no connection could be made"):
        await CollectorClient(OtlpSettings(f"http://127.0.0.1:{free_port()}"), "1").send(b"")


async def test_spans_that_the_collector_refused_are_told(received: Received) -> None:
    received.refused = 3
    assert await CollectorClient(OtlpSettings(received.endpoint), "1").send(b"") == 3


@pytest.mark.parametrize(
    "text",
    [
        "no colon", "Name with spaces: x", "X: a\x00b", "X: ä", "X:", "\n".join(f"X-{i}: y" for i in range(33)),
        "authorization: another", "Transfer-Encoding: gzip", "Host: elsewhere", "Content-Length: 1", "Upgrade: h2c",
    ],
)  # fmt: skip
def test_a_file_of_headers_in_another_form_is_refused_without_its_values(tmp_path: Path, text: str) -> None:
    file = headers_file(tmp_path, f"Authorization: {SECRET}\n{text}\n")
    with pytest.raises(PrivateFileError) as refused:
        headers_in(file)
    assert SECRET not in str(refused.value)


def test_a_file_of_headers_that_others_may_read_is_refused(tmp_path: Path) -> None:
    file = headers_file(tmp_path, "X-Tenant: corp")
    file.chmod(0o644)
    with pytest.raises(PrivateFileError, match="lets others in"):
        headers_in(file)
