"""TLS of the edge: versions, certificates of clients, and its own certificate, which is followed."""

import base64
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.authority import Authority
from tests.support.certificates import made_certificate
from tests.support.edge_process import Edge, edge, edge_config
from tests.support.edge_wire import SECONDS, connected
from tests.support.gateway import wait_for
from tests.support.hostile_gateway import HostileGateway, hostile_gateway, whole


def asked_by(authority: Authority) -> str:
    """Certificates of clients are asked for: those that this authority has signed."""
    return f'client_ca_file = "{authority.file}"\n'


Asking = tuple[Edge, HostileGateway]


@contextmanager
def edge_asking(folder: Path, more: str = "") -> Iterator[Asking]:
    roots = Path(shutil.copy(made_certificate(folder, "127.0.0.1"), folder / "roots.pem"))
    tls = '[tls]\ncertificate_file = "certificate.pem"\nkey_file = "key.pem"\n'
    with (
        hostile_gateway(whole(b"{}", Connection="close"), str(folder / "gate.sock")) as behind,
        edge(edge_config(folder, "gate.sock", tls + more), roots) as running,
    ):
        yield running, behind


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    """An edge that asks for no certificate."""
    with edge_asking(tmp_path_factory.mktemp("plain")) as asking:
        yield asking


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("clients"), "clients")


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """An authority with the name of the first and another key."""
    return Authority(tmp_path_factory.mktemp("others"), "clients")


def openssl(before: Edge, *arguments: str, asked: bytes = b"") -> bytes:
    """All that OpenSSL's client says."""
    words = ["openssl", "s_client", "-connect", f"127.0.0.1:{before.port}", *arguments]
    done = subprocess.run(words, input=asked, capture_output=True, timeout=SECONDS, check=False)
    return done.stdout + done.stderr


def handed_on(behind: HostileGateway) -> list[bytes]:
    lines = behind.requests.pop().split(b"\r\n")
    return [line.partition(b": ")[2] for line in lines if line.lower().startswith(b"client-cert:")]


def holder(authority: Authority, name: str = "agent.example") -> Path:
    """A client's certificate and its key, in one file."""
    issued = authority.issue(name)
    issued.certificate.write_text(issued.certificate.read_text() + issued.key.read_text())
    return issued.certificate


def header(certificate: Path) -> bytes:
    """As RFC 9440 writes it."""
    pem, _, _ = certificate.read_text().partition("-----BEGIN PRIVATE")
    return b":" + base64.b64encode(ssl.PEM_cert_to_DER_cert(pem)) + b":"


def test_the_certificate_that_tls_verified_is_handed_on_and_no_other_and_one_of_another_authority_refused(
    clients: Authority, others: Authority, tmp_path: Path
) -> None:
    agent = holder(clients)
    claimed = {"Client-Cert": header(holder(clients, "other.example")).decode()}
    with edge_asking(tmp_path, asked_by(clients)) as (before, behind):
        with pytest.raises(httpx.TransportError):
            before.client(holder(others)).get("/healthz")
        assert behind.requests == []
        for http2 in (False, True):
            shown = before.client(agent, http2=http2)
            assert shown.get("/healthz", headers=claimed).status_code == 200
            assert handed_on(behind) == [header(agent)]
            assert before.client(http2=http2).get("/healthz", headers=claimed).status_code == 200
            assert handed_on(behind) == []


def test_a_client_without_a_verified_certificate_is_refused_where_one_is_required(
    clients: Authority, others: Authority, tmp_path: Path
) -> None:
    required = asked_by(clients) + "require_client_certificate = true\n"
    with edge_asking(tmp_path, required) as (before, behind):
        for certificate in (None, holder(others)):
            with pytest.raises(httpx.TransportError):
                before.client(certificate).get("/healthz")
        assert behind.requests == []
        assert before.client(holder(clients)).get("/healthz").status_code == 200


def test_only_tls_1_2_and_1_3_are_spoken(plain: Asking) -> None:
    before, behind = plain
    asked = len(behind.requests)
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = before.trusting()
        context.minimum_version = context.maximum_version = version
        with connected(before, context=context) as sock:
            assert sock.version() == version.name.replace("_", ".")
    assert b"no peer certificate available" in openssl(before, "-tls1_1", "-cipher", "ALL:@SECLEVEL=0")
    with socket.create_connection(("127.0.0.1", before.port), SECONDS) as sock:
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"HTTP" not in sock.recv(65536)
    assert len(behind.requests) == asked


def test_a_client_cannot_renegotiate(plain: Asking) -> None:
    before, behind = plain
    asked = len(behind.requests)
    out = openssl(before, "-tls1_2", asked=b"R\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b"RENEGOTIATING" in out
    assert len(behind.requests) == asked
    assert before.client().get("/healthz").status_code == 200


def test_its_certificate_is_followed_and_open_connections_stay(tmp_path: Path) -> None:
    with edge_asking(tmp_path) as (before, _):
        kept = before.client(limits=httpx.Limits(keepalive_expiry=None))
        assert kept.get("/healthz").status_code == 200
        port = kept.get("/healthz").extensions["network_stream"].get_extra_info("client_addr")
        (tmp_path / "next").mkdir()
        fresh = made_certificate(tmp_path / "next", "127.0.0.1")
        shutil.copy(tmp_path / "next" / "key.pem", tmp_path / "key.pem")
        shutil.copy(fresh, tmp_path / "certificate.pem")
        wait_for(lambda: "certificate loaded" in before.log.read_text(), "the next certificate")
        assert _served(before) == ssl.PEM_cert_to_DER_cert(fresh.read_text())
        again = kept.get("/healthz")
        assert again.status_code == 200
        assert again.extensions["network_stream"].get_extra_info("client_addr") == port


def _served(before: Edge) -> bytes | None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with connected(before, context=context) as sock:
        return sock.getpeercert(binary_form=True)
