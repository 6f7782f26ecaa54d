"""Certificates of clients that TLS refuses: the alert and the log name the reason."""

import socket
import ssl
from pathlib import Path

import pytest

from tests.support.authority import Authority
from tests.support.certificates import made_certificate
from tests.support.edge_process import Edge, edge, edge_config
from tests.support.edge_wire import SECONDS, answered, connected
from tests.support.gateway import wait_for

TLS = (
    '[tls]\ncertificate_file = "certificate.pem"\nkey_file = "key.pem"\nclient_ca_file = "clients.pem"\n'
    "require_client_certificate = true\n"
)
SAID = "certificates of clients are refused"


def told(before: Edge, certificate: Path | None) -> str:
    """The alert that the client gets."""
    with connected(before, context=before.trusting(certificate)) as sock, pytest.raises(ssl.SSLError) as refused:
        sock.recv(1)
    return str(refused.value.reason)


@pytest.mark.parametrize(
    ("case", "alert", "why"),
    [
        ("expired", "SSLV3_ALERT_CERTIFICATE_EXPIRED", "certificate has expired"),
        ("stranger", "TLSV1_ALERT_UNKNOWN_CA", "unable to get local issuer certificate"),
        ("none", "TLSV13_ALERT_CERTIFICATE_REQUIRED", "no certificate"),
    ],
)
def test_a_client_whose_certificate_is_refused_hears_why_and_the_log_says_it(
    tmp_path: Path, case: str, alert: str, why: str
) -> None:
    (tmp_path / "others").mkdir()
    clients, others = Authority(tmp_path, "clients"), Authority(tmp_path / "others", "others")
    issued = (others if case == "stranger" else clients).issue("agent", is_expired=case == "expired")
    issued.certificate.write_text(issued.certificate.read_text() + issued.key.read_text())
    with edge(edge_config(tmp_path, "gate.sock", TLS), made_certificate(tmp_path, "127.0.0.1")) as before:
        with socket.create_connection(("127.0.0.1", before.port), SECONDS) as plain:
            assert answered(plain, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")[:1] != b"H", "and no refused certificate"
        assert told(before, None if case == "none" else issued.certificate) == alert
        (line,) = wait_for(lambda: [one for one in before.lines() if one["message"] == SAID], "a line that says so")
    assert line["refused"] == {why: 1}
