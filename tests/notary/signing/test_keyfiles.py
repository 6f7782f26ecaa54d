"""Key files: private keys in PEM come back as they were, and everything else is refused in a sentence."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from ipc.process.exits import Exit
from ipc.process.private_files import PrivateFileError, write_private
from notary.signing.keyfiles import load_ed25519, load_p256, write_private_key


def test_keys_come_back_as_they_were_and_only_as_what_they_are(tmp_path: Path) -> None:
    p256, ed = ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate()
    write_private_key(tmp_path / "p256", p256)
    write_private_key(tmp_path / "ed", ed)
    assert (tmp_path / "p256").read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----\n")
    assert load_p256(tmp_path / "p256").private_numbers() == p256.private_numbers()
    assert load_ed25519(tmp_path / "ed").private_bytes_raw() == ed.private_bytes_raw()
    with pytest.raises(PrivateFileError, match="is not a P-256 key"):
        load_p256(tmp_path / "ed")
    with pytest.raises(PrivateFileError, match="is not an Ed25519 key"):
        load_ed25519(tmp_path / "p256")


def test_a_file_that_is_no_plain_private_key_is_refused_in_a_sentence(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    contents = {
        "empty": b"",
        "text": b"hello",
        "public": key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        "der": key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()),
        "encrypted": key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"pass")),
        "cut": key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())[:-60],
    }
    others: dict[str, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey] = {
        "p384": ec.generate_private_key(ec.SECP384R1()),
        "rsa": rsa.generate_private_key(65537, 2048),
    }
    for name, content in contents.items():
        write_private(tmp_path / name, content)
    for name, other in others.items():
        write_private(tmp_path / name, other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    for name in (*contents, *others):
        with pytest.raises(
            PrivateFileError, match=rf"{name}: is not an? (unencrypted private key in PEM form|P-256 key)\.$"
        ) as refused:
            load_p256(tmp_path / name)
        assert refused.value.exit_code == Exit.CONFIG
