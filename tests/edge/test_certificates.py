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

ASKED = 'client_ca_file = "clients.pem"\n'
REQUIRED = ASKED + "require_client_certificate = true\n"


@contextmanager
def edge_asking(folder: Path, more: str = "") -> Iterator[tuple[Edge, HostileGateway]]:
    roots = Path(shutil.copy(made_certificate(folder, "127.0.0.1"), folder / "roots.pem"))
    tls = '[tls]\ncertificate_file = "certificate.pem"\nkey_file = "key.pem"\n'
    with (
        hostile_gateway(whole(b"{}", Connection="close"), str(folder / "gate.sock")) as behind,
        edge(edge_config(folder, "gate.sock", tls + more), roots) as running,
    ):
        yield running, behind


@pytest.fixture
def clients(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "clients")


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


def test_the_certificate_that_tls_verified_is_handed_on_and_no_other(clients: Authority, tmp_path: Path) -> None:
    agent = holder(clients)
    claimed = {"Client-Cert": header(holder(clients, "other.example")).decode()}
    with edge_asking(tmp_path, ASKED) as (before, behind):
        for http2 in (False, True):
            shown = before.client(agent, http2=http2)
            assert shown.get("/healthz", headers=claimed).status_code == 200
            assert handed_on(behind) == [header(agent)]
            assert before.client(http2=http2).get("/healthz", headers=claimed).status_code == 200
            assert handed_on(behind) == []


def test_a_client_without_a_verified_certificate_is_refused_where_one_is_required(
    clients: Authority, tmp_path: Path
) -> None:
    (tmp_path / "others").mkdir()
    others = Authority(tmp_path / "others", "clients")
    with edge_asking(tmp_path, REQUIRED) as (before, behind):
        for certificate in (None, holder(others)):
            with pytest.raises(httpx.TransportError):
                before.client(certificate).get("/healthz")
        assert behind.requests == []
        assert before.client(holder(clients)).get("/healthz").status_code == 200


def test_a_certificate_of_another_authority_is_refused_though_none_is_required(
    clients: Authority, tmp_path: Path
) -> None:
    (tmp_path / "others").mkdir()
    others = Authority(tmp_path / "others", clients.file.stem)
    with edge_asking(tmp_path, ASKED) as (before, behind):
        with pytest.raises(httpx.TransportError):
            before.client(holder(others)).get("/healthz")
        assert behind.requests == []


def test_only_tls_1_2_and_1_3_are_spoken(tmp_path: Path) -> None:
    with edge_asking(tmp_path) as (before, behind):
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = before.trusting()
            context.minimum_version = context.maximum_version = version
            with connected(before, context=context) as sock:
                assert sock.version() == version.name.replace("_", ".")
        assert b"no peer certificate available" in openssl(before, "-tls1_1", "-cipher", "ALL:@SECLEVEL=0")
        with socket.create_connection(("127.0.0.1", before.port), SECONDS) as plain:
            plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"HTTP" not in plain.recv(65536)
        assert behind.requests == []


def test_a_client_cannot_renegotiate(tmp_path: Path) -> None:
    with edge_asking(tmp_path) as (before, behind):
        out = openssl(before, "-tls1_2", asked=b"R\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"RENEGOTIATING" in out
        assert behind.requests == []
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
        wait_for(lambda: _served(before) == ssl.PEM_cert_to_DER_cert(fresh.read_text()), "the next certificate")
        again = kept.get("/healthz")
        assert again.status_code == 200
        assert again.extensions["network_stream"].get_extra_info("client_addr") == port


def _served(before: Edge) -> bytes | None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with connected(before, context=context) as sock:
        return sock.getpeercert(binary_form=True)
