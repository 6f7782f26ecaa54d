"""TLS of the programs beside a gateway: what is agreed on, and certificates that are replaced while they serve."""

import shutil
import ssl
from pathlib import Path

import pytest
import trio
from cryptography.hazmat.primitives import serialization

from serving.tls import FollowedCertificate, TlsFilesWrong, tls_context
from tests.support.certificates import made_certificate
from tests.support.http_socket import DEADLINE, connected, echo, get
from tests.support.logs import capture_logs
from tests.support.served_requests import PATIENT, Address, connected_by_tls, served


def followed(folder: Path) -> FollowedCertificate:
    files = (str(folder / "certificate.pem"), str(folder / "key.pem"))
    return FollowedCertificate(files, lambda: tls_context(*files))


def trusting(certificate: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate))


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    return made_certificate(tmp_path)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_requests_are_answered_over_tls(certificate: Path, version: ssl.TLSVersion) -> None:
    context = trusting(certificate)
    context.minimum_version = context.maximum_version = version
    async with (
        served(echo, certificate=followed(certificate.parent)) as address,
        connected_by_tls(address, context) as client,
    ):
        for path in ("/a", "/b"):
            assert (await client.ask(get(path))).json["path"] == path


async def test_clear_text_is_not_answered(certificate: Path) -> None:
    async with served(echo, certificate=followed(certificate.parent)) as address, connected(address) as client:
        await client.send(get())
        assert b"HTTP/" not in await client.rest()


async def test_a_client_that_shakes_no_hands_is_cut(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serving.server.HANDSHAKE_SECONDS", 0.2)
    async with served(echo, PATIENT, followed(certificate.parent)) as address, connected(address) as client:
        assert await client.rest() == b""


async def test_a_certificate_that_is_replaced_is_served_to_new_connections(
    certificate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serving.tls.LOOK_SECONDS", 0.05)
    (tmp_path / "next").mkdir()
    later = made_certificate(tmp_path / "next")
    before = trusting(certificate)
    async with served(echo, certificate=followed(tmp_path)) as address, connected_by_tls(address, before) as client:
        assert (await client.ask(get())).status == 200
        for name in ("certificate.pem", "key.pem"):
            shutil.copy(tmp_path / "next" / name, tmp_path / name)
        with trio.fail_after(DEADLINE):
            while not await is_answered(address, trusting(later)):  # noqa: ASYNC110 (a look has no event)
                await trio.sleep(0.05)
        assert (await client.ask(get())).status == 200


async def is_answered(address: Address, context: ssl.SSLContext) -> bool:
    """Whether a client that trusts only this certificate is answered."""
    try:
        async with connected_by_tls(address, context) as client:
            return (await client.ask(get())).status == 200
    except trio.BrokenResourceError:
        return False


def test_files_that_can_not_be_loaded_leave_the_certificate_from_before(certificate: Path) -> None:
    one = followed(certificate.parent)
    before = one.context
    with capture_logs() as logs:
        one.look_again()
        assert logs == []
        key = certificate.parent / "key.pem"
        whole = key.read_bytes()
        key.write_bytes(whole[:100])
        one.look_again()
        key.unlink()
        one.look_again()
        assert one.context is before
        assert [(line["event"][:22], line["log_level"]) for line in logs] == [("certificate not loaded", "error")] * 2
        assert "PRIVATE" not in str(logs)
        key.write_bytes(whole)
        one.look_again()
    assert one.context is not before


def test_files_that_can_not_be_loaded_are_named_at_the_start(certificate: Path) -> None:
    key = certificate.parent / "key.pem"
    loaded = serialization.load_pem_private_key(key.read_bytes(), None)
    encrypted = loaded.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"word")
    )
    for content, said in ((encrypted, "the key is encrypted"), (b"", "PEM"), (None, "No such file")):
        key.unlink()
        if content is not None:
            key.write_bytes(content)
        with pytest.raises(TlsFilesWrong, match=said) as refused:
            followed(certificate.parent)
        assert str(key) in str(refused.value)
