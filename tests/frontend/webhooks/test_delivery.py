"""One attempt, and whatever a receiver may do to it."""

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
import trio

from frontend.webhooks.delivery import Post
from frontend.webhooks.endpoints import open_endpoints
from frontend.webhooks.network import make_tls
from frontend.webhooks.outcome import AttemptOutcome
from tests.frontend.webhooks.samples import DELIVERY, HOST, hook
from tests.support.webhook_receiver import (
    Answer,
    Receiver,
    drips,
    floods,
    hangs_up,
    holds,
    redirects,
    says,
    sends,
    webhook_receiver,
)
from tests.support.worker_desk import until

OK = b"HTTP/1.1 200 OK\r\n"
SOON = 0.3
TLS = make_tls()
"""Made once: it takes long."""
NO_HTTP = AttemptOutcome("failed", None, "the connection ended without an answer in HTTP")
LATE = AttemptOutcome("failed", None, "no answer in time")


def is_late(found: AttemptOutcome) -> bool:
    """The time was over, before or after there was a connection."""
    return found in (LATE, AttemptOutcome("failed", None, "no connection could be made"))


async def attempt(address: str, **changes: Any) -> AttemptOutcome:
    """One attempt; whatever became of it, no connection of it is left."""
    (endpoint,) = open_endpoints([hook(**changes)])
    with trio.fail_after(120):
        outcome = await post_to(address).attempt(endpoint, DELIVERY, 1_790_000_000, trio.CapacityLimiter(4))
    assert not connections_to(address)
    return outcome


def post_to(address: str) -> Post:
    return Post("1.2.3", {HOST: address}, TLS)


def connections_to(address: str) -> list[Any]:
    port = int(address.rpartition(":")[2])
    return [one for one in psutil.Process().net_connections("tcp") if one.raddr[1:] == (port,)]


async def test_what_arrives_is_what_was_written_with_the_headers_that_prove_it(receiver: Receiver) -> None:
    headers = {"authorization": "Bearer abc", "x-tenant": "a b"}
    outcome = await attempt(receiver.address, url=f"http://{HOST}:8080/a;b?c=%20d", headers=headers)
    assert outcome == AttemptOutcome("delivered", 200)
    (one,) = receiver.received
    assert (one.line, one.body) == ("POST /a;b?c=%20d HTTP/1.1", DELIVERY.payload.encode())
    signatures = {one.headers.pop("webhook-signature")[:3], one.headers.pop("x-gateway-signature")[:7]}
    assert signatures == {"v1,", "sha256="}
    assert one.headers == {
        "host": f"{HOST}:8080", "content-type": "application/json", "user-agent": "action-gateway/1.2.3",
        "content-length": str(len(one.body)), "connection": "close", "webhook-id": "evt_1",
        "webhook-timestamp": "1790000000", "authorization": "Bearer abc", "x-tenant": "a b",
    }  # fmt: skip


async def test_no_header_of_a_setting_takes_the_place_of_one_of_ours(receiver: Receiver) -> None:
    await attempt(receiver.address, headers={"webhook-id": "evt_forged", "content-type": "text/html"})
    (one,) = receiver.received
    assert (one.headers["webhook-id"], one.headers["content-type"]) == ("evt_1", "application/json")


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
async def test_any_2xx_is_an_arrival(receiver: Receiver, status: int) -> None:
    receiver.answers.append(sends(b"HTTP/1.1 %d X\r\n\r\n" % status))
    assert await attempt(receiver.address) == AttemptOutcome("delivered", status)


FOR_GOOD, PERHAPS_LATER = (300, 301, 304, 308, 400, 401, 404, 408, 410, 413, 429, 499), (500, 502, 503, 504, 599, 999)


@pytest.mark.parametrize("status", FOR_GOOD + PERHAPS_LATER)
async def test_3xx_and_4xx_are_refusals_for_good_and_5xx_may_go_better_later(receiver: Receiver, status: int) -> None:
    receiver.answers.append(says(status))
    kind: Any = "rejected" if status in FOR_GOOD else "failed"
    assert await attempt(receiver.address) == AttemptOutcome(kind, status, f"the receiver answered {status}")


NO_ANSWERS: dict[str, Answer] = {
    "nothing": hangs_up,
    "half a head": sends(b"HTTP/1.1 200 OK\r\nContent-Le"),
    "garbage": sends(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20),
    "a page of an older protocol": sends(b"<html>200 OK</html>"),
    "another version": sends(b"HTTP/2 200 OK\r\n\r\n"),
    "a status in words": sends(b"HTTP/1.1 OK\r\n\r\n"),
    "another protocol": sends(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: evil\r\n\r\n"),
    "interim answers and nothing else": sends(b"HTTP/1.1 100 Continue\r\n\r\n" * 10),
    "an endless head": floods(OK + b"X-Long: "),
    "endless interim answers": drips(b"HTTP/1.1 100 Continue\r\n\r\n" * 9000, b"HTTP/1.1 100 Continue\r\n\r\n" * 9000),
}


@pytest.mark.parametrize("name", NO_ANSWERS)
async def test_what_is_no_answer_may_be_one_later(receiver: Receiver, name: str) -> None:
    receiver.answers.append(NO_ANSWERS[name])
    assert await attempt(receiver.address) == NO_HTTP


LATE_ANSWERS: dict[str, Answer] = {
    "nothing": holds(),
    "a head, drop by drop": drips(OK + b"X-Slow: ", b"x"),
    "interim answers for ever": drips(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 102 Processing\r\n\r\n"),
}


@pytest.mark.parametrize("name", LATE_ANSWERS)
async def test_an_answer_that_is_late_is_none(receiver: Receiver, name: str) -> None:
    receiver.answers.append(LATE_ANSWERS[name])
    assert is_late(await attempt(receiver.address, timeout_seconds=SOON))
    assert len(receiver.received) <= 1


BODIES: dict[str, Answer] = {
    "endless": floods(OK + b"\r\n"),
    "announced as huge": floods(OK + b"Content-Length: 900000000000\r\n\r\n"),
    "endless in chunks": drips(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"x" * 65536 + b"\r\n"),
    "no chunks": sends(OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
    "cut": sends(OK + b"Content-Length: 100\r\n\r\nhalf"),
    "longer than announced": sends(OK + b"Content-Length: 2\r\n\r\n{}HTTP/1.1 500 X\r\n\r\n"),
}


@pytest.mark.parametrize("name", BODIES)
async def test_whatever_follows_a_status_changes_nothing(receiver: Receiver, name: str) -> None:
    receiver.answers.append(BODIES[name])
    assert await attempt(receiver.address) == AttemptOutcome("delivered", 200)


@pytest.mark.parametrize(("status", "kind"), [(200, "delivered"), (404, "rejected"), (500, "failed")])
async def test_a_body_that_drips_is_waited_for_no_longer_than_for_an_answer(
    receiver: Receiver, status: int, kind: str
) -> None:
    # A machine that stands still can make a late answer of it; then there is nothing to see.
    outcome = LATE
    while is_late(outcome):
        receiver.answers.append(drips(b"HTTP/1.1 %d X\r\nContent-Length: 50000\r\n\r\n" % status, b"x"))
        outcome = await attempt(receiver.address, timeout_seconds=SOON)
    assert (outcome.kind, outcome.status) == (kind, status)


async def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    with webhook_receiver() as trap:
        for to in (f"http://{trap.address}/", f"http://{HOST}/elsewhere", "/elsewhere"):
            receiver.answers.append(redirects(to))
            assert (await attempt(receiver.address)).kind == "rejected"
        assert trap.connections == 0
        assert [one.line for one in receiver.received] == ["POST /in HTTP/1.1"] * 3


async def test_no_proxy_of_the_environment_is_used(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    with webhook_receiver() as trap:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://{trap.address}")
        assert (await attempt(receiver.address)).kind == "delivered"
        assert trap.connections == 0


async def test_every_attempt_has_a_connection_of_its_own(receiver: Receiver) -> None:
    for _ in range(3):
        receiver.answers.append(says(200, "Connection: keep-alive", "Keep-Alive: timeout=60"))
        await attempt(receiver.address)
    assert receiver.connections == len(receiver.received) == 3


async def test_nobody_there_is_a_failure_that_may_pass() -> None:
    with socket.socket() as held:  # it keeps the port from others, and does not listen
        held.bind(("127.0.0.1", 0))
        outcome = await attempt(f"127.0.0.1:{held.getsockname()[1]}")
    assert outcome == AttemptOutcome("failed", None, "no connection could be made")


async def test_somebody_who_never_takes_a_connection_costs_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        crowd = [socket.socket() for _ in range(4)]
        for one in crowd:  # fills the queue of those who wait to be taken
            one.setblocking(False)
            one.connect_ex(server.getsockname())
        (endpoint,) = open_endpoints([hook(timeout_seconds=SOON)])
        post = post_to(f"127.0.0.1:{server.getsockname()[1]}")
        outcome = await post.attempt(endpoint, DELIVERY, 1, trio.CapacityLimiter(4))
        for one in crowd:
            one.close()
    assert is_late(outcome)


async def test_a_secret_that_can_not_be_read_is_a_failure_and_nothing_is_sent(
    receiver: Receiver, tmp_path: Path
) -> None:
    file = tmp_path / "hook"
    file.write_text("a secret that is long enough")
    file.chmod(0o600)
    (endpoint,) = open_endpoints([hook(secret=None, secret_file=str(file))])
    file.chmod(0o644)
    outcome = await post_to(receiver.address).attempt(endpoint, DELIVERY, 1, trio.CapacityLimiter(4))
    assert outcome == AttemptOutcome("failed", None, "the secret can't be read")
    assert receiver.connections == 0


async def test_an_attempt_that_is_cut_leaves_nothing_open(receiver: Receiver) -> None:
    receiver.answers.append(holds())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(attempt, receiver.address)
        await until(lambda: bool(receiver.received))
        assert connections_to(receiver.address)
        nursery.cancel_scope.cancel()
    assert not connections_to(receiver.address)


def imported(module: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, {module}\nprint(*sys.modules)"],
        cwd=Path(__file__).resolve().parents[3], capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return set(done.stdout.split())


def test_a_front_without_endpoints_does_not_pay_for_the_client_and_one_with_them_for_no_second_event_loop() -> None:
    assert {"httpcore", "anyio", "h2"}.isdisjoint(imported("frontend.front"))
    assert "asyncio" not in imported("frontend.webhooks.delivery")
