"""Operator credentials of the configuration: exactly one key each, and only its digest leaves this module.

SECURITY: an API key is hashed as soon as it is read, so that neither the supervisor's settings nor any message to a
child ever holds one in clear.
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ipc.process.private_files import PrivateFileError, read_private
from ipc.settings import OperatorSettings
from supervisor.settings.sections.section import Found

_SOURCES = ("api_key", "api_key_file", "api_key_sha256")


class CredentialRefused(Exception):
    """The operator's credential will not do; `setting` is the key of the table to point at."""

    def __init__(self, setting: str, what: str) -> None:
        super().__init__(what)
        self.setting = setting
        self.what = what


def digest_of(key: str) -> str:
    """Lower-case hexadecimal SHA-256 of an API key."""
    return hashlib.sha256(key.encode()).hexdigest()


def operator_settings(row: dict[str, Any]) -> OperatorSettings:
    """One checked `[[operators]]` table -> settings that hold the key's digest alone.

    Raises KeyRefused unless exactly one key is there and has the form `key-<name>-<32 hex>`.
    """
    given = [source for source in _SOURCES if source in row]
    if len(given) != 1:
        raise CredentialRefused("", "needs exactly one of api_key_sha256, api_key_file and api_key.")
    (source,) = given
    if source == "api_key_sha256":
        digest = row[source]
    else:
        key = row[source] if source == "api_key" else _read_key(Path(row[source]))
        if not re.fullmatch(rf"key-{re.escape(row['name'])}-[0-9a-f]{{32}}", key):
            raise CredentialRefused(source, f"must have the form key-{row['name']}-<32 hexadecimal digits>.")
        digest = digest_of(key)
    more = {name: row[name] for name in ("dpop_jkt", "groups", "roles", "owner") if name in row}
    return OperatorSettings(name=row["name"], api_key_sha256=digest, **more)


def check_operators(made: Mapping[int, OperatorSettings], found: Found) -> None:
    """Find names and keys that an operator before has."""
    names, holders = set[str](), dict[str | None, str]()
    for index, one in made.items():
        holder = holders.setdefault(one.api_key_sha256, one.name)
        if one.name in names:
            found((index, "name"), f'"{one.name}" is there twice', "")
        elif holder != one.name:
            found((index,), f'"{one.name}" and "{holder}" share one key', "")
        names.add(one.name)


def _read_key(file: Path) -> str:
    try:
        return read_private(file).decode("ascii").strip()
    except PrivateFileError as error:
        raise CredentialRefused("api_key_file", str(error)) from None
    except UnicodeDecodeError:
        raise CredentialRefused("api_key_file", f"{file} does not hold a key.") from None
