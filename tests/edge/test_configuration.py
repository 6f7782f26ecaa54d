"""The configuration of the edge: its problems are reported before it listens."""

from pathlib import Path

import pytest

from ipc.process.exits import Exit
from tests.support.certificates import made_certificate
from tests.support.edge_process import edge_config, edge_tells

TLS = '[tls]\ncertificate_file = "certificate.pem"\nkey_file = "key.pem"\n'
LISTEN = 'listen = "127.0.0.1:0"'
DOTTED = """
tls.certificate_file = "certificate.pem"
tls.key_file = "key.pem"
tls.require_client_certificate = true"""
WRONG: dict[str, tuple[str, str, str]] = {
    "no address": (LISTEN, 'listen = "gate.example:8443"', "must be ADDRESS:PORT"),
    "no TLS beyond loopback": (LISTEN, 'listen = "0.0.0.0:0"', "leaves this host, and needs [tls]"),
    "no URL": ('"https://gate.example"', '"gate.example"', "public_base_url"),
    "an unknown key": (LISTEN, LISTEN + "\nlisten_too = 1", "listen_too"),
    "no TOML": (LISTEN, "listen =", "line 1"),
    "no connections at all": (LISTEN, LISTEN + "\nlimits.max_connections = 0", "max_connections"),
    "roots that are not named": (LISTEN, LISTEN + DOTTED, "needs client_ca_file"),
    "no certificate": (
        LISTEN, LISTEN + '\ntls.certificate_file = "none.pem"\ntls.key_file = "key.pem"', "none.pem",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_problem_of_the_configuration_is_named_and_nothing_starts(tmp_path: Path, name: str) -> None:
    was, becomes, told = WRONG[name]
    made_certificate(tmp_path)
    config = edge_config(tmp_path, "gate.sock")
    config.write_text(config.read_text().replace(was, becomes))
    for arguments in ((), ("--check",)):
        code, text = edge_tells(config, *arguments)
        assert (code, "Traceback" in text) == (Exit.CONFIG, False), text
        assert told in text


def test_the_key_must_be_that_of_the_certificate(tmp_path: Path) -> None:
    made_certificate(tmp_path)
    (tmp_path / "other").mkdir()
    made_certificate(tmp_path / "other")
    (tmp_path / "other" / "key.pem").replace(tmp_path / "key.pem")
    code, text = edge_tells(edge_config(tmp_path, "gate.sock", TLS), "--check")
    assert (code, "certificate.pem" in text) == (Exit.CONFIG, True)


def test_check_starts_nothing(tmp_path: Path) -> None:
    made_certificate(tmp_path)
    config = edge_config(tmp_path, "gate.sock", TLS, listen="0.0.0.0:8443")
    assert edge_tells(config, "--check") == (Exit.OK, "configuration is valid\n")


def test_a_file_is_read_whole_or_refused(tmp_path: Path) -> None:
    """A limit of bytes that cuts the file would leave out what stands at its end, such as whom to let in."""
    made_certificate(tmp_path)
    config = edge_config(tmp_path, "gate.sock", TLS)
    config.write_text(config.read_text() + "#" * 65_536 + "\nrequire_client_certificate = true\n")
    code, text = edge_tells(config, "--check")
    assert (code, "larger than 65536 bytes" in text) == (Exit.CONFIG, True), text


def test_a_file_that_is_no_text_is_refused_as_that(tmp_path: Path) -> None:
    config = edge_config(tmp_path, "gate.sock")
    config.write_bytes(config.read_bytes() + b"# \xff\n")
    code, text = edge_tells(config, "--check")
    assert (code, "not UTF-8" in text) == (Exit.CONFIG, True), text
