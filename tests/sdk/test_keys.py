"""Keys and credentials in files: created whole, private, and refused when others can read them."""

import os
import pickle
import stat
import threading
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from gateway_client import KeyFileError, OperatorCredential, ProofKey

from ipc.keys.jwk import thumbprint

API_KEY = "key-dev-0123456789abcdef0123456789abcdef"


def test_a_key_file_is_made_with_mode_0600_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "agent.pem"
    previous = os.umask(0)
    try:
        key = ProofKey.load_or_create(path)
    finally:
        os.umask(previous)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----")
    assert ProofKey.load_or_create(path).thumbprint == key.thumbprint
    assert os.listdir(tmp_path) == ["agent.pem"]


def test_programs_that_make_a_key_at_once_get_the_same_key(tmp_path: Path) -> None:
    jkts: list[str] = []
    barrier = threading.Barrier(8)

    def make() -> None:
        barrier.wait(60)
        jkts.append(ProofKey.load_or_create(tmp_path / "k").thumbprint)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(jkts) == 8
    assert len(set(jkts)) == 1
    assert os.listdir(tmp_path) == ["k"]


def test_saving_never_replaces_a_file(tmp_path: Path) -> None:
    path = tmp_path / "k"
    path.write_text("precious")
    with pytest.raises(FileExistsError):
        ProofKey.generate().save(path)
    assert path.read_text() == "precious"
    assert os.listdir(tmp_path) == ["k"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o610])
def test_a_file_that_others_can_read_is_refused_with_the_mend(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "k"
    ProofKey.generate().save(path)
    path.chmod(mode)
    with pytest.raises(KeyFileError, match=f"chmod 600 {path}"):
        ProofKey.load(path)


def pem_of(key: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey, password: bytes | None = None) -> bytes:
    protection: serialization.KeySerializationEncryption = (
        serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    )
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection)


P256 = ec.generate_private_key(ec.SECP256R1())


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"garbage",
        b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        pem_of(ec.generate_private_key(ec.SECP384R1())),
        pem_of(ed25519.Ed25519PrivateKey.generate()),
        pem_of(P256, b"password"),
        P256.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
        b"x" * 20_000,
    ],
    ids=["empty", "garbage", "broken", "P-384", "Ed25519", "encrypted", "public", "large"],
)
def test_a_file_that_holds_no_such_key_is_refused_without_its_content(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "k"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(KeyFileError) as raised:
        ProofKey.load(path)
    assert str(path) in str(raised.value)
    assert "AAAA" not in str(raised.value)


def test_a_path_that_is_no_file_is_refused_and_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo", 0o600)
    for name in ("fifo", "missing", "."):
        with pytest.raises(KeyFileError):
            ProofKey.load(tmp_path / name)
    with pytest.raises(KeyFileError):
        ProofKey.load_or_create(tmp_path / "nowhere" / "k")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "k"
    ProofKey.generate().save(path)
    os.chown(path, 12345, -1)
    with pytest.raises(KeyFileError, match="belongs to user 12345"):
        ProofKey.load(path)


def test_a_key_that_systemd_or_kubernetes_hands_over_may_be_read_by_its_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "..1").mkdir()
    key, path = ProofKey.generate(), tmp_path / "k"
    key.save(tmp_path / "..1" / "k")
    (tmp_path / "..1" / "k").chmod(0o440)
    (tmp_path / "..data").symlink_to("..1")
    path.symlink_to("..data/k")
    assert ProofKey.load(path).thumbprint == key.thumbprint
    with pytest.raises(KeyFileError, match="others can read it"):
        ProofKey.load(tmp_path / "..1" / "k")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path / "..1"))
    assert ProofKey.load(tmp_path / "..1" / "k").thumbprint == key.thumbprint
    path.chmod(0o444)
    with pytest.raises(KeyFileError, match="others can read it"):
        ProofKey.load(path)


def test_the_thumbprint_is_that_of_the_gateway() -> None:
    key = ProofKey.generate()
    assert key.thumbprint == thumbprint(key.jwk)


def test_a_key_on_another_curve_is_refused() -> None:
    with pytest.raises(ValueError, match="P-256"):
        ProofKey(ec.generate_private_key(ec.SECP384R1()))


def test_a_credential_comes_from_its_two_files(tmp_path: Path) -> None:
    key = ProofKey.load_or_create(tmp_path / "operator.pem")
    (tmp_path / "operator.key").write_text(f"{API_KEY}\n")
    (tmp_path / "operator.key").chmod(0o600)
    credential = OperatorCredential.load(tmp_path / "operator.key", tmp_path / "operator.pem")
    assert (credential.token, credential.key.thumbprint) == (API_KEY, key.thumbprint)
    (tmp_path / "operator.key").chmod(0o644)
    with pytest.raises(KeyFileError):
        OperatorCredential.load(tmp_path / "operator.key", tmp_path / "operator.pem")


@pytest.mark.parametrize("text", [b"", b"\n", b"two words", b"a\nb", b"k\xc3\xa9y", b"k" * 513, b"a\r\nDPoP: x"])
def test_a_file_that_holds_no_operator_key_is_refused_without_its_content(tmp_path: Path, text: bytes) -> None:
    ProofKey.load_or_create(tmp_path / "operator.pem")
    (tmp_path / "operator.key").write_bytes(text)
    (tmp_path / "operator.key").chmod(0o600)
    with pytest.raises(KeyFileError, match="does not hold one operator key"):
        OperatorCredential.load(tmp_path / "operator.key", tmp_path / "operator.pem")


def test_neither_keys_nor_credentials_show_themselves_or_are_pickled() -> None:
    key = ProofKey.generate()
    credential = OperatorCredential(API_KEY, key)
    for secret in (key, credential):
        assert API_KEY not in repr(secret) + str(secret)
        with pytest.raises(TypeError):
            pickle.dumps(secret)
    assert repr(key) == f"ProofKey({key.thumbprint})"
