"""For any answer of a server, a call ends in time with a named error, and never repeats an unsafe request."""

import asyncio
import pickle
import ssl
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
import trio
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from gateway_client import (
    Address,
    AsyncOperatorClient,
    Denied,
    GatewayError,
    Limits,
    OperatorClient,
    OperatorCredential,
    ProofKey,
    ProtocolViolation,
    Unreachable,
)
from gateway_client.cli import checks

from tests.support.gateway import wait_for
from tests.support.hostile_gateway import LATE, LOST, SILENT, WRONG, Connection, hostile_gateway, whole
from tests.support.worker_desk import until

CREDENTIAL = OperatorCredential("key-test-0123456789abcdef", ProofKey.generate())
LIMITS = Limits(timeout=300, connect_timeout=120, max_answer_bytes=1_000_000)
SHORT = Limits(timeout=0.3)
ALL = LATE | LOST | WRONG
WELL = whole(b'{"status": "ok"}')


def status_blocking(url: str, limits: Limits = LIMITS) -> None:
    with OperatorClient(url, CREDENTIAL, limits) as client:
        client.status()


async def _status(url: str, limits: Limits) -> None:
    async with AsyncOperatorClient(url, CREDENTIAL, limits) as client:
        await client.status()


def status_asyncio(url: str, limits: Limits = LIMITS) -> None:
    asyncio.run(_status(url, limits))


def status_trio(url: str, limits: Limits = LIMITS) -> None:
    trio.run(_status, url, limits)


def limits_for(name: str) -> Limits:
    return SHORT if name in LATE else LIMITS


RUNNERS = pytest.mark.parametrize("status", [status_blocking, status_asyncio, status_trio])


def kind_of(name: str) -> tuple[type[GatewayError], str]:
    if name in LATE:
        return Unreachable, "timed_out"
    return (Unreachable, "connection_lost") if name in LOST else (ProtocolViolation, "protocol_violation")


@RUNNERS
@pytest.mark.parametrize("name", ALL)
def test_a_server_that(name: str, status: Callable[[str, Limits], None]) -> None:
    kind, code = kind_of(name)
    with hostile_gateway(ALL[name]) as server, pytest.raises(kind) as raised:
        status(server.url, limits_for(name))
    assert raised.value.code == code
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None or isinstance(raised.value.__context__, GatewayError)


@pytest.mark.parametrize("name", ALL)
def test_a_mutation_is_sent_once_to_a_server_that(name: str) -> None:
    with hostile_gateway(ALL[name]) as server, OperatorClient(server.url, CREDENTIAL, limits_for(name)) as client:
        with pytest.raises(GatewayError) as raised:
            client.drain()
        if name in LATE and not raised.value.may_have_run:  # the time was over before a slow machine had sent it
            assert server.requests == []
            return
        assert raised.value.may_have_run
        wait_for(lambda: server.requests, "the server to have read it")
        assert len(server.requests) == 1


def test_a_read_whose_connection_is_lost_is_asked_again_with_another_proof() -> None:
    with hostile_gateway(LOST["hangs up"]) as server:
        with pytest.raises(Unreachable):
            status_blocking(server.url)
        assert len({Connection(None, None, one).proof for one in server.requests}) == 2  # type: ignore[arg-type]


def test_a_slow_server_on_a_unix_socket_is_left_in_time(tmp_path: Path) -> None:
    with hostile_gateway(LATE["drips its body"], str(tmp_path / "s")) as server:
        address = Address.parse(server.url, "http://gateway.test")
        with OperatorClient(address, CREDENTIAL, SHORT) as client, pytest.raises(Unreachable) as raised:
            client.status()
        assert raised.value.code == "timed_out"


@RUNNERS
def test_nothing_is_sent_to_an_address_without_a_listener(status: Callable[[str], None]) -> None:
    with pytest.raises(Unreachable) as raised:
        status("http://127.0.0.1:1")
    assert (raised.value.code, raised.value.was_sent, raised.value.may_have_run) == ("unreachable", False, False)
    assert raised.value.__cause__ is None


def test_a_socket_that_is_not_there_is_unreachable_and_says_why(tmp_path: Path) -> None:
    address = Address.parse(f"unix://{tmp_path}/gate.sock", "http://gateway.test")
    with OperatorClient(address, CREDENTIAL) as client, pytest.raises(Unreachable, match="No such file"):
        client.status()


@RUNNERS
def test_token_and_proof_never_show_even_when_a_server_repeats_them(status: Callable[[str], None]) -> None:
    def repeat(connection: Connection) -> None:
        spread = "\u200b".join(connection.token)
        body = f'{{"error": "{connection.token}", "reason": "{connection.token} {connection.proof} {spread}"}}'
        whole(body.encode(), "403 Forbidden", X_Trace_Id=connection.token)(connection)

    with hostile_gateway(repeat) as server:
        with pytest.raises(GatewayError) as raised:
            status(server.url)
        proof = Connection(None, None, server.requests[0]).proof  # type: ignore[arg-type]
    shown = repr(raised.value) + str(raised.value) + repr(vars(raised.value))
    assert CREDENTIAL.token not in shown
    assert proof not in shown
    assert "[removed]" in shown


def test_the_environment_chooses_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with hostile_gateway(whole(b'{"status": "ok"}')) as server:
        with OperatorClient(server.url, CREDENTIAL) as client:
            assert client.health()

        async def ask() -> bool:
            async with AsyncOperatorClient(server.url, CREDENTIAL) as client:
                return await client.health()

        assert asyncio.run(ask())


def test_cookies_of_a_server_are_not_kept() -> None:
    with hostile_gateway(whole(b'{"status": "ok"}', Set_Cookie="a=b")) as server:
        with OperatorClient(server.url, CREDENTIAL) as client:
            client.health()
            client.health()
        assert not any(b"cookie" in request.lower() for request in server.requests)


def test_closing_ends_the_calls_of_other_threads() -> None:
    with hostile_gateway(SILENT) as server:
        client = OperatorClient(server.url, CREDENTIAL, Limits(timeout=600))
        failures: list[GatewayError] = []

        def call() -> None:
            try:
                client.status()
            except GatewayError as error:
                failures.append(error)

        thread = threading.Thread(target=call)
        thread.start()
        deadline = time.monotonic() + 60
        while not server.requests:
            assert time.monotonic() < deadline
        client.close()
        thread.join(60)
        assert [error.code for error in failures] == ["client_closed"]
        with pytest.raises(Unreachable) as raised:
            client.status()
        assert (raised.value.code, raised.value.was_sent) == ("client_closed", False)


async def test_cancelling_a_call_leaves_the_client_usable() -> None:
    plays = iter((SILENT, WELL))
    with hostile_gateway(lambda connection: next(plays)(connection)) as server:
        async with AsyncOperatorClient(server.url, CREDENTIAL, LIMITS) as client:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(client.status)
                await until(lambda: bool(server.requests))
                nursery.cancel_scope.cancel()
            assert await client.health()


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 1e9])
def test_an_invalid_timeout_is_refused_before_anything_is_sent(seconds: float) -> None:
    with OperatorClient("http://127.0.0.1:1", CREDENTIAL) as client, pytest.raises(ValueError, match="timeout"):
        client.approve("apr_1", timeout=seconds)


def test_errors_travel_between_processes() -> None:
    for error in (
        Unreachable("timed_out", was_sent=False, reason="x"),
        ProtocolViolation("garbage", status=200),
        GatewayError("some_code", status=403, reason="why", retry_after=1.0, trace_id="trc_1"),
    ):
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), vars(copy), str(copy)) == (type(error), vars(error), str(error))


@pytest.fixture
def self_signed(tmp_path: Path) -> ssl.SSLContext:
    """A server's side of TLS, with a certificate that no client has a reason to trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + certificate.public_bytes(Encoding.PEM)
    (tmp_path / "server.pem").write_bytes(pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    return context


@RUNNERS
def test_nothing_is_sent_to_a_server_with_an_untrusted_certificate(
    status: Callable[[str], None], self_signed: ssl.SSLContext
) -> None:
    with hostile_gateway(whole(b"{}"), tls=self_signed) as server:
        with pytest.raises(Unreachable) as raised:
            status(server.url)
        assert (raised.value.code, raised.value.was_sent) == ("unreachable", False)
        assert server.requests == []


@RUNNERS
def test_a_server_with_a_trusted_certificate_is_asked(
    status: Callable[[str], None], self_signed: ssl.SSLContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "server.pem"))
    with hostile_gateway(whole(b"{}", "403 Forbidden"), tls=self_signed) as server, pytest.raises(Denied):
        status(server.url)


def test_doctor_does_not_wait_for_a_head_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "HEAD_SECONDS", 0.5)
    plays = iter((WELL, LATE["drips its head"]))
    with hostile_gateway(lambda connection: next(plays)(connection)) as server:
        *_, clock = checks._reachable(Address.parse(server.url))
    assert (clock.check, clock.result) == ("clock", "warn")
    assert clock.found.startswith("the second answer failed: ")
