"""Operator credentials of the configuration: exactly one key each, and only its digest leaves this module.

SECURITY: an API key is hashed as soon as it is read, so that neither the supervisor's settings nor any message to a
child ever holds one in clear.
"""

import hashlib
import os
import re
import stat
from pathlib import Path

from ipc.settings import OperatorSettings

MAX_KEY_BYTES = 512
_SOURCES = ("api_key", "api_key_file", "api_key_sha256")


class KeyRefused(Exception):
    """The operator's credential will not do; `setting` is the key of the table to point at."""

    def __init__(self, setting: str, what: str) -> None:
        super().__init__(what)
        self.setting = setting
        self.what = what


def digest_of(key: str) -> str:
    """Lower-case hexadecimal SHA-256 of an API key."""
    return hashlib.sha256(key.encode()).hexdigest()


def operator_settings(row: dict[str, str]) -> OperatorSettings:
    """One checked `[[operators]]` table -> settings that hold the key's digest alone.

    Raises KeyRefused unless exactly one key is there and has the form `key-<name>-<32 hex>`.
    """
    given = [source for source in _SOURCES if source in row]
    if len(given) != 1:
        raise KeyRefused("", "needs exactly one of api_key_sha256, api_key_file and api_key.")
    (source,) = given
    if source == "api_key_sha256":
        digest = row[source]
    else:
        key = row[source] if source == "api_key" else _read_key(Path(row[source]))
        if not re.fullmatch(rf"key-{re.escape(row['name'])}-[0-9a-f]{{32}}", key):
            raise KeyRefused(source, f"must have the form key-{row['name']}-<32 hexadecimal digits>.")
        digest = digest_of(key)
    return OperatorSettings(name=row["name"], dpop_jkt=row.get("dpop_jkt"), api_key_sha256=digest)


def _read_key(file: Path) -> str:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as stream:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise KeyRefused("api_key_file", f"{file} is not a file.")
            if status.st_mode & 0o077:
                raise KeyRefused("api_key_file", f"{file} is open to other users. Run chmod 600 on it.")
            raw = stream.read(MAX_KEY_BYTES + 1)
    except OSError as error:
        raise KeyRefused("api_key_file", f"{file} cannot be read: {error.strerror}.") from None
    try:
        return raw.decode("ascii").strip()
    except UnicodeDecodeError:
        raise KeyRefused("api_key_file", f"{file} does not hold a key.") from None
