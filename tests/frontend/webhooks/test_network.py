"""Where an attempt may go: names and what they lead to, certificates and whom they are for."""

import socket
import ssl
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from frontend.webhooks.delivery import open_post
from frontend.webhooks.endpoints import open_endpoints
from frontend.webhooks.network import MAX_ADDRESSES, Network
from frontend.webhooks.outcome import AttemptOutcome
from tests.frontend.webhooks.samples import DELIVERY, HOST, hook
from tests.support.supervised import wait_until
from tests.support.webhook_receiver import Receiver, webhook_receiver

PUBLIC, OTHER_PUBLIC, PUBLIC_V6 = "93.184.215.14", "8.8.8.8", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"
BLOCKED = AttemptOutcome("blocked", None, "the name leads to private or reserved addresses only")
UNRESOLVED = AttemptOutcome("failed", None, "the name could not be resolved")


class Names:
    """The system's resolver, played: what it is asked, and what it says in turn (its last answer for ever)."""

    def __init__(self, *answers: list[str] | Exception | Callable[[], list[str]]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def __call__(self, host: str, port: Any, *_: Any, **__: Any) -> list[Any]:
        self.asked.append(host)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        addresses = answer() if callable(answer) else answer
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in addresses]


class Wires(trio.abc.SocketFactory):
    """The sockets of this test's event loop: where they connect to; addresses in `answers` lead to the receiver."""

    def __init__(self, receiver: Receiver, *answers: str) -> None:
        address, _, port = receiver.address.rpartition(":")
        self._receiver = (address, int(port))
        self._answers = answers
        self.dialled: list[tuple[str, int]] = []
        trio.socket.set_custom_socket_factory(self)

    def socket(self, *_: Any) -> trio.socket.SocketType:
        made = trio.socket.from_stdlib_socket(socket.socket())
        connect = made.connect

        async def dial(to: tuple[str, int]) -> None:
            self.dialled.append(to)
            if to[0] not in self._answers:
                raise OSError("nobody there")
            await connect(self._receiver)

        made.connect = dial  # type: ignore[assignment, method-assign]
        return made


async def attempt(resolve: dict[str, str] | None = None, **changes: Any) -> AttemptOutcome:
    (endpoint,) = open_endpoints([hook(**changes)])
    with trio.fail_after(120):
        return await open_post("0", resolve or {}).attempt(endpoint, DELIVERY, 1, trio.CapacityLimiter(4))


PRIVATE = [
    "127.0.0.1", "127.0.0.2", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
    "192.0.0.1", "198.18.0.1", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%1", "fc00::1",
    "ff02::1", "::ffff:127.0.0.1", "::ffff:93.184.215.14", "64:ff9b::7f00:1", "2002:7f00:1::", "not an address",
]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
async def test_a_name_that_leads_to_a_private_address_is_blocked_and_nothing_connects(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    wires = Wires(receiver, address)
    monkeypatch.setattr(socket, "getaddrinfo", Names([address]))
    assert await attempt() == BLOCKED
    assert wires.dialled == []


async def test_a_name_without_any_address_is_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", Names([]))
    assert await attempt() == BLOCKED


async def test_of_public_and_private_addresses_only_the_public_ones_are_connected_to(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    wires = Wires(receiver, "10.0.0.1", "127.0.0.1", PUBLIC)
    monkeypatch.setattr(socket, "getaddrinfo", Names(["10.0.0.1", PUBLIC_V6, "127.0.0.1", "::1", PUBLIC, PUBLIC]))
    assert await attempt(url=f"http://{HOST}:8080/in") == AttemptOutcome("delivered", 200)
    assert wires.dialled == [(PUBLIC_V6, 8080), (PUBLIC, 8080)]
    assert receiver.received[0].headers["host"] == f"{HOST}:8080"


async def test_a_name_that_says_something_else_the_second_time_is_not_asked_a_second_time(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, wires = Names([PUBLIC], ["127.0.0.1"]), Wires(receiver, PUBLIC, "127.0.0.1")
    monkeypatch.setattr(socket, "getaddrinfo", names)
    assert (await attempt()).kind == "delivered"
    assert (names.asked, wires.dialled) == ([HOST], [(PUBLIC, 80)])
    assert await attempt() == BLOCKED
    assert (names.asked, wires.dialled) == ([HOST] * 2, [(PUBLIC, 80)])


async def test_of_very_many_addresses_some_are_tried(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    wires = Wires(receiver)
    monkeypatch.setattr(socket, "getaddrinfo", Names([f"8.8.8.{number}" for number in range(100)]))
    assert await attempt() == AttemptOutcome("failed", None, "no connection could be made")
    assert len(wires.dialled) == MAX_ADDRESSES


@pytest.mark.parametrize(
    "error",
    [
        socket.gaierror(socket.EAI_NONAME, "unknown"),
        socket.gaierror(socket.EAI_AGAIN, "later"),
        UnicodeError("label"),
        RuntimeError("can't start new thread"),
    ],
    ids=str,
)
async def test_a_name_that_can_not_be_resolved_may_be_later(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", Names(error))
    assert await attempt() == UNRESOLVED


async def test_a_resolver_that_does_not_answer_costs_the_timeout_and_a_few_threads(
    monkeypatch: pytest.MonkeyPatch, mock_clock: trio.testing.MockClock
) -> None:
    answers, lookups = threading.Event(), trio.CapacityLimiter(2)

    def waits() -> list[str]:
        answers.wait(300)
        return []

    names = Names(waits)
    monkeypatch.setattr(socket, "getaddrinfo", names)
    (endpoint,) = open_endpoints([hook(timeout_seconds=5.0)])
    post, failures = open_post("0", {}), list[AttemptOutcome]()

    async def one() -> None:
        failures.append(await post.attempt(endpoint, DELIVERY, 1, lookups))

    async with trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon(one)
        await trio.to_thread.run_sync(wait_until, lambda: len(names.asked) == 2)
        assert failures == []
        mock_clock.jump(6)
    assert failures == [AttemptOutcome("failed", None, "no answer in time")] * 6
    answers.set()
    await trio.to_thread.run_sync(wait_until, lambda: lookups.borrowed_tokens == 0)
    assert len(names.asked) == 2, "the others waited for a thread until their time was over"


async def test_an_attempt_that_begins_after_its_deadline_ends_as_any_that_is_late() -> None:
    network = Network({HOST: "127.0.0.1:1"}, trio.CapacityLimiter(1))
    with trio.CancelScope(deadline=trio.current_time() - 1) as late:
        await network.connect_tcp(HOST, 443)
    assert late.cancelled_caught


async def test_a_mapped_name_is_connected_to_where_it_is_mapped_and_not_looked_up(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Names([PUBLIC])
    monkeypatch.setattr(socket, "getaddrinfo", names)
    assert (await attempt({HOST: receiver.address}, url=f"http://{HOST}:1/in")).kind == "delivered"
    assert HOST not in names.asked
    assert receiver.received[0].headers["host"] == f"{HOST}:1"


# ------------------------------------------------------------------ TLS


class Authority:
    """A certificate authority, and what it signs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"authority {folder.name}")])
        # All that a strict verifier asks of an authority, as ssl is from Python 3.13 on.
        signs = x509.KeyUsage(
            digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
            key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        constraints = ((x509.BasicConstraints(ca=True, path_length=None), True), (signs, True))
        self.file = folder / "authority.pem"
        self.file.write_bytes(self._signed(self._name, self._key, *constraints).public_bytes(Encoding.PEM))

    def server(self, host: str, days: int = 1) -> ssl.SSLContext:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        signed = self._signed(name, key, (x509.SubjectAlternativeName([x509.DNSName(host)]), False), days=days)
        file = self._folder / f"{host}.pem"
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        file.write_bytes(private + signed.public_bytes(Encoding.PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    def _signed(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey, *extensions: tuple[Any, bool], days: int = 1
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(self._name).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number())
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        for extension, is_critical in ((issuer, False), (own, False), *extensions):
            builder = builder.add_extension(extension, critical=is_critical)
        builder = builder.not_valid_before(now - timedelta(days=9)).not_valid_after(now + timedelta(days=days))
        return builder.sign(self._key, hashes.SHA256())


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """A certificate authority that the system trusts."""
    made = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(made.file))
    return made


async def secured(context: ssl.SSLContext | None, **changes: Any) -> tuple[AttemptOutcome, Receiver]:
    with webhook_receiver(context) as receiver:
        return await attempt({HOST: receiver.address}, url=f"https://{HOST}/in", **changes), receiver


async def test_a_receiver_with_a_certificate_for_its_name_is_delivered_to(authority: Authority) -> None:
    outcome, receiver = await secured(authority.server(HOST))
    assert outcome == AttemptOutcome("delivered", 200)
    assert receiver.received[0].headers["host"] == HOST


@pytest.mark.parametrize("wrong", ["name", "authority", "age"])
async def test_a_certificate_that_is_not_the_names_own_is_refused_before_anything_is_sent(
    authority: Authority, tmp_path: Path, wrong: str
) -> None:
    (tmp_path / "other").mkdir()
    told = {
        "name": "is not valid for its name", "authority": "is signed by an unknown authority", "age": "has expired",
    }  # fmt: skip
    contexts = {
        "name": lambda: authority.server("other.test"),
        "authority": lambda: Authority(tmp_path / "other").server(HOST),
        "age": lambda: authority.server(HOST, days=-1),
    }
    outcome, receiver = await secured(contexts[wrong]())
    assert outcome == AttemptOutcome("failed", None, f"the certificate {told[wrong]}")
    assert receiver.received == []


async def test_a_receiver_that_speaks_no_tls_is_sent_nothing(authority: Authority) -> None:
    outcome, receiver = await secured(None, timeout_seconds=0.3)
    assert outcome.kind == "failed"
    assert outcome.status is None
    assert not any(one.body for one in receiver.received)


async def test_only_recent_tls_is_spoken(authority: Authority) -> None:
    context = authority.server(HOST)
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    outcome, receiver = await secured(context)
    assert outcome == AttemptOutcome("failed", None, "TLS could not be agreed on")
    assert receiver.received == []
