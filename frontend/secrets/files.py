"""Secret values from one file: JSON, plain with mode 0600, or encrypted with age, whole or by SOPS.

Guarantees that only a private file (ipc/process/private_files.py) is believed, and that no value shows in a repr, an
exception or its context. Values leave only through `for_plan`, for the names that a plan declares.
"""

import json
import os
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyrage

from frontend.files.closed import why_closed
from frontend.secrets import sops
from frontend.secrets.cache import FileCache, FileKey, file_key
from ipc.keys.secret_values import is_searchable
from ipc.plan import SecretUse
from ipc.process.private_files import PrivateFileError, check_private, is_swapped
from ipc.settings import SecretSettings

MAX_FILE_BYTES = 1_048_576
MAX_IDENTITY_BYTES = 65_536
MAX_VALUE_CHARACTERS = 8192
_VALUE = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_IDENTITY = "AGE-SECRET-KEY-"


class SecretMissing(Exception):
    """A plan needs a secret that there is not. Names the secret."""


class SecretsUnavailable(Exception):
    """The file can't be read, or must not be believed. Names the file and the reason, never content."""


class _Values:
    """Secret values that do not show."""

    __slots__ = ("by_name",)

    def __init__(self, by_name: dict[str, str]) -> None:
        self.by_name = by_name

    def __repr__(self) -> str:
        return f"<{len(self.by_name)} secrets>"


class SecretFile:
    """The secrets of this gateway. Reading is blocking and takes well under a millisecond."""

    def __init__(self, settings: SecretSettings, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._cache: FileCache[_Values] = FileCache(monotonic)

    def for_plan(self, uses: Sequence[SecretUse]) -> dict[str, str]:
        """Values by name for the secrets of one plan; optional ones that are missing are left out.

        Raises SecretMissing for a required one, SecretsUnavailable when the file is not to be believed.
        """
        if not uses:
            return {}
        # SECURITY: no plain value is a local variable of a frame that raises; some log formats show those.
        values = self._values()
        for use in uses:
            if use.required and use.name not in values.by_name:
                raise SecretMissing(f"the secret {use.name} is not in the secrets file")
        return {use.name: values.by_name[use.name] for use in uses if use.name in values.by_name}

    def names(self) -> frozenset[str]:
        """Which secrets there are. Raises SecretsUnavailable."""
        return frozenset(self._values().by_name)

    def unsearchable(self) -> frozenset[str]:
        """Names of those that are too short to be looked for in answers. Raises SecretsUnavailable."""
        return frozenset(name for name, value in self._values().by_name.items() if not is_searchable(value))

    def __repr__(self) -> str:
        return "<Secrets>"

    def _values(self) -> _Values:
        path = self._settings.file
        if path is None:
            return _Values({})
        try:
            kept = self._cache.get(file_key(os.stat(path)))
        except OSError as error:
            self._cache.clear()
            raise SecretsUnavailable(f"{path}: {error.strerror}") from None
        if kept is not None:
            return kept
        key, outcome = self._read(path)
        if isinstance(outcome, str):
            raise SecretsUnavailable(f"{path}: {outcome}")
        self._cache.put(key, outcome)
        return outcome

    def _read(self, path: str) -> "tuple[FileKey, _Values | str]":
        """The file's key, and its values or what is wrong with them."""
        identity_path = self._settings.age_identity_file
        identities = _identities(identity_path) if identity_path is not None else None
        data, key = _read_private(path, MAX_FILE_BYTES)
        if identities is None:
            return key, _parsed(data)
        if data.lstrip()[:1] == b"{":  # an age file begins with its own name
            return key, _of_sops(data, identities)
        try:
            data = bytes(pyrage.decrypt(data, identities))
        except pyrage.DecryptError:
            return key, f"cannot be decrypted with {identity_path}"
        return key, _parsed(data)


def _read_private(path: str, most: int) -> tuple[bytes, FileKey]:
    """Content and key of a private file.

    SECURITY: the checks look at the descriptor that is read, so that nothing can be put in its place in between. The
    one link that is followed is that of a folder which Kubernetes fills.
    """
    link = 0 if is_swapped(path) else os.O_NOFOLLOW
    try:
        fd = os.open(path, os.O_RDONLY | link | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise SecretsUnavailable(f"{path}: {why_closed(path, error)}") from None
    try:
        status = os.fstat(fd)
        check_private(Path(path), status)
        if status.st_size > most:
            raise SecretsUnavailable(f"{path}: larger than {most} bytes")
        with os.fdopen(fd, "rb", closefd=False) as file:
            return file.read(status.st_size), file_key(status)
    except PrivateFileError as error:
        raise SecretsUnavailable(str(error).removesuffix(".")) from None
    except OSError as error:
        raise SecretsUnavailable(f"{path}: {error.strerror}") from None
    finally:
        os.close(fd)


def _identities(path: str) -> list[pyrage.x25519.Identity]:
    data, _ = _read_private(path, MAX_IDENTITY_BYTES)
    lines = [line.strip() for line in data.decode("ascii", "replace").splitlines()]
    keys = [_identity(line) for line in lines if line.startswith(_IDENTITY)]
    identities = [key for key in keys if key is not None]
    if not identities or len(identities) < len(keys):
        raise SecretsUnavailable(f"{path}: holds no age identity, or a broken one")
    return identities


def _identity(text: str) -> pyrage.x25519.Identity | None:
    try:
        return pyrage.x25519.Identity.from_str(text)
    except pyrage.IdentityError:
        return None


def _of_sops(data: bytes, identities: list[pyrage.x25519.Identity]) -> _Values | str:
    """The values of a SOPS file, or what is wrong with them."""
    document = _object(data)
    if document is None or sops.MEMBER not in document:
        return "is neither encrypted with age nor a SOPS file of JSON, whole and each name once"
    values = sops.opened(document, identities)
    return values if isinstance(values, str) else _usable(values)


def _parsed(data: bytes) -> _Values | str:
    """The values of `{name: value}`, or what is wrong: returned, since the parser's exceptions hold the text."""
    values = _object(data)
    if values is not None and isinstance(values.get(sops.MEMBER), dict):
        return "is a SOPS file, and secrets.age_identity_file does not say with which key to open it"
    if values is None or not all(isinstance(value, str) for value in values.values()):
        return "is not a JSON object of texts, each name once"
    return _usable(values)


def _usable(values: dict[str, str]) -> _Values | str:
    for name, value in values.items():
        if len(value) > MAX_VALUE_CHARACTERS or not _VALUE.fullmatch(value):
            return f"the value of {name!r} is not printable ASCII of at most {MAX_VALUE_CHARACTERS} characters"
    return _Values(values)


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        loaded = json.loads(data.decode("utf-8-sig"), object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return None
    return loaded if isinstance(loaded, dict) else None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError
    return members
