"""Key files: private keys as PEM (PKCS#8) in private files (ipc/process/private_files.py). Never shows what is in
them."""

from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from ipc.process.exits import Exit
from ipc.process.private_files import PrivateFileError, read_private, write_private

PrivateKey = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


def write_private_key(path: Path, key: PrivateKey) -> None:
    """Store a key as PEM (PKCS#8), readable by its owner alone. Raises KeyFileError."""
    write_private(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def _load(path: Path) -> object:
    try:
        return load_pem_private_key(read_private(path), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise PrivateFileError(f"{path}: is not an unencrypted private key in PEM form.", Exit.CONFIG) from None


def load_p256(path: Path) -> ec.EllipticCurvePrivateKey:
    """The P-256 key in a private PEM file. Raises KeyFileError."""
    key = _load(path)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise PrivateFileError(f"{path}: is not a P-256 key.", Exit.CONFIG)
    return key


def load_ed25519(path: Path) -> ed25519.Ed25519PrivateKey:
    """The Ed25519 key in a private PEM file. Raises KeyFileError."""
    key = _load(path)
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise PrivateFileError(f"{path}: is not an Ed25519 key.", Exit.CONFIG)
    return key
