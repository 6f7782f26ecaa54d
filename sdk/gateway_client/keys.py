"""The P-256 key that proofs are signed with: in memory, or in a file that no other user can read.

Guarantees that a key file is created whole or not at all, with mode 0600, and that one which others can read is
refused. A key never shows in a repr; its thumbprint does.
"""

import base64
import contextlib
import hashlib
import json
import os
import re
import secrets
import stat
from pathlib import Path
from typing import NoReturn

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

MAX_FILE_BYTES = 16_384
_NAMED = re.compile(r"key-(.+)-[0-9a-f]{32}", re.ASCII)


class KeyFileError(Exception):
    """A key or credential file that can't be used; the text names the file and the mend, never its content."""


class ProofKey:
    """A private P-256 key. Make one with `generate`, `load` or `load_or_create`."""

    def __init__(self, key: ec.EllipticCurvePrivateKey) -> None:
        """Raises ValueError for a key on another curve."""
        if not isinstance(key.curve, ec.SECP256R1):
            raise ValueError("not a P-256 private key")
        self._key = key
        numbers = key.public_key().public_numbers()
        self.jwk: dict[str, str] = {
            "crv": "P-256",
            "kty": "EC",
            "x": b64url(numbers.x.to_bytes(32, "big")),
            "y": b64url(numbers.y.to_bytes(32, "big")),
        }
        """The public half (RFC 7517)."""
        members = json.dumps(self.jwk, separators=(",", ":"), sort_keys=True)
        self.thumbprint: str = b64url(hashlib.sha256(members.encode()).digest())
        """RFC 7638; what a lease or an operator's `dpop_jkt` names."""

    def __repr__(self) -> str:
        return f"ProofKey({self.thumbprint})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a private key is not pickled")

    @classmethod
    def generate(cls) -> "ProofKey":
        """A new key, in memory alone."""
        return cls(ec.generate_private_key(ec.SECP256R1()))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "ProofKey":
        """The key of a PEM file (PKCS#8 or SEC 1, not encrypted). Raises KeyFileError."""
        data = read_private(path)
        try:
            key = serialization.load_pem_private_key(data, None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise KeyFileError(f"{os.fspath(path)}: is not an unencrypted private key in PEM form.") from None
        if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
            raise KeyFileError(f"{os.fspath(path)}: holds another kind of key; proofs need P-256.")
        return cls(key)

    @classmethod
    def load_or_create(cls, path: str | os.PathLike[str]) -> "ProofKey":
        """Read the key of this file; create it if the file is missing. Concurrent creators get the same key.

        Raises KeyFileError.
        """
        if not os.path.lexists(path):
            with contextlib.suppress(FileExistsError):
                cls.generate().save(path)
        return cls.load(path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a new PEM file (PKCS#8, mode 0600). Raises FileExistsError, KeyFileError; never replaces a file."""
        pem = self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        create_private(path, pem)

    def sign(self, data: bytes) -> bytes:
        """ES256 (RFC 7518 §3.4): 64 bytes."""
        r, s = decode_dss_signature(self._key.sign(data, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")


class OperatorCredential:
    """An operator's API key and proof key. Both come from files: a command line shows to every user of a host."""

    def __init__(self, api_key: str, key: ProofKey) -> None:
        """Raises ValueError for a key that no header can carry."""
        if not 0 < len(api_key) <= 512 or not all("!" <= one <= "~" for one in api_key):
            raise ValueError("an operator key is 1 to 512 printable ASCII characters without spaces")
        self._api_key = api_key
        self.key = key

    def __repr__(self) -> str:
        return f"OperatorCredential({self.key!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a credential is not pickled")

    @property
    def token(self) -> str:
        """The API key, for the Authorization header."""
        return self._api_key

    @property
    def name(self) -> str | None:
        """The operator's name, where the API key has the form `key-<name>-<32 hex>`."""
        named = _NAMED.fullmatch(self._api_key)
        return named[1] if named else None

    @classmethod
    def load(cls, key_file: str | os.PathLike[str], private_key_file: str | os.PathLike[str]) -> "OperatorCredential":
        """`key_file` holds the API key on one line, `private_key_file` the P-256 PEM key. Raises KeyFileError."""
        key = ProofKey.load(private_key_file)
        try:
            return cls(read_private(key_file).decode("ascii").strip(), key)
        except ValueError:  # UnicodeDecodeError included; its text would quote the file
            raise KeyFileError(f"{os.fspath(key_file)}: does not hold one operator key.") from None


def read_private(path: str | os.PathLike[str], max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Read a small file that is private (`check_private`). Raises KeyFileError."""
    name = os.fspath(path)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise KeyFileError(f"{name}: can't be opened: {error.strerror}.") from None
    try:
        check_private(name, os.fstat(descriptor))
        data = os.read(descriptor, max_bytes + 1)
    except OSError as error:
        raise KeyFileError(f"{name}: can't be read: {error.strerror}.") from None
    finally:
        os.close(descriptor)
    if len(data) > max_bytes:
        raise KeyFileError(f"{name}: is larger than {max_bytes} bytes.")
    return data


def check_private(name: str, status: os.stat_result) -> None:
    """Raises KeyFileError unless the file of this status is a private one.

    It is a regular file of this user or of root, which no other user may write and which has no access for "other". Its
    group may read a file that root hands to this user, or that lies in a folder which systemd ($CREDENTIALS_DIRECTORY)
    or Kubernetes (links through `..data`) fills.
    """
    if not stat.S_ISREG(status.st_mode):
        raise KeyFileError(f"{name}: is not a regular file.")
    is_from_root = status.st_uid == 0 and os.geteuid() != 0
    if status.st_mode & (0o037 if is_from_root or _is_handed(name) else 0o077):
        raise KeyFileError(f"{name}: others can read it (mode {status.st_mode & 0o777:04o}). chmod 600 {name}")
    if status.st_uid not in {0, os.geteuid()}:
        raise KeyFileError(f"{name}: belongs to user {status.st_uid}, not to you. Use a file of your own.")


def _is_handed(name: str) -> bool:
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if folder and Path(name).is_relative_to(folder):
        return True
    with contextlib.suppress(OSError):
        return os.readlink(name).startswith("..data/")
    return False


def create_private(path: str | os.PathLike[str], data: bytes) -> None:
    """A new file with mode 0600, whole and durable or not there. Raises FileExistsError, KeyFileError."""
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            with open(descriptor, "wb") as file:
                os.fchmod(descriptor, 0o600)
                file.write(data)
                file.flush()
                os.fsync(descriptor)
            os.link(temporary, target)  # a rename would replace what is there
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(target.parent)
    except FileExistsError:
        raise FileExistsError(f"{target}: is there already") from None
    except OSError as error:
        raise KeyFileError(f"{target}: can't be created: {error.strerror}.") from None


def replace_private(path: str | os.PathLike[str], data: bytes) -> None:
    """A file with mode 0600 in the place of what is there: whole and durable, or what was there stays.

    A link stays one: what it leads to is replaced. Raises KeyFileError.
    """
    target = Path(path).resolve()
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.new")
    create_private(temporary, data)
    try:
        os.replace(temporary, target)
        sync_folder(target.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise KeyFileError(f"{target}: can't be replaced: {error.strerror}.") from None


def b64url(data: bytes) -> str:
    """Base64url without padding (RFC 7515 §2)."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def sync_folder(folder: Path) -> None:
    """Make the names of a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
