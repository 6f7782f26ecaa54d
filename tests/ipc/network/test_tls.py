"""The authorities that a TLS client trusts."""

import ssl
from pathlib import Path

import pytest

from ipc.network.tls import client_context
from tests.support.certificates import made_certificate


def test_the_systems_authorities_are_those_of_its_file_and_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (made_certificate(made(tmp_path / name), name).read_bytes() for name in ("one", "other"))
    file, folder = tmp_path / "bundle.pem", made(tmp_path / "folder")
    file.write_bytes(one)
    for name, content in (("00000001.0", one), ("00000002.0", b"no certificate"), ("00000003.0", one + other)):
        (folder / name).write_bytes(content)
    (folder / "not-hashed.pem").write_bytes(made_certificate(made(tmp_path / "third"), "third").read_bytes())
    paths = ssl.DefaultVerifyPaths(str(file), str(folder), "", "", "", "")
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: paths)
    assert sorted(str(found["subject"][0][0][1]) for found in client_context().get_ca_certs()) == ["one", "other"]


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder
