"""A host's configuration file: read whole, changed whole or not at all, with a copy of what was there before.

SECURITY: the file is the user's own and may hold secrets of other servers. Mode and owner stay, the copy is for its
user alone, and a file that has changed since it was read is not replaced.
"""

import difflib
import os
import secrets
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gateway_client.cli.display.safe import safe
from gateway_client.cli.exits import Failure, ScriptExit
from gateway_client.cli.mcp_hosts.edits import with_member, without_member
from gateway_client.cli.mcp_hosts.jsonc import parse
from gateway_client.keys import KeyFileError, create_private, sync_folder

MAX_BYTES = 4_194_304


@dataclass(frozen=True, slots=True)
class HostFile:
    """The file as it was read; `data` is None if the file does not exist."""

    path: Path
    """A link is followed: the file that it leads to is the one that changes."""
    data: bytes | None
    text: str
    document: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> "HostFile":
        """Raises Failure host_file for a file that can't be read as JSON with comments."""
        target = Path(os.path.realpath(path))
        data = _read(target)
        try:
            text = "" if data is None else data.decode()
            document = parse(text).value if text.strip() else {}
            if not isinstance(document, dict):
                raise ValueError("it is not an object")
        except ValueError as error:
            why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
            raise _refused(target, f"can't be read as JSON: {why}", "mend it by hand; nothing was changed") from None
        return cls(target, data, text if text.strip() else "{}\n", document)

    def entry(self, path: Sequence[str]) -> Any:
        """The value at `path`, or None."""
        value: Any = self.document
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def changed(self, path: Sequence[str], entry: dict[str, Any] | None) -> str:
        """The text with that entry, or, for None, without it. Raises Failure host_file."""
        try:
            text, found = self.text, self.entry(path)
            if entry is None:
                return self.text if found is None else _checked(without_member(text, path), path, None)
            if not isinstance(found, dict):
                return _checked(with_member(text, path, entry), path, entry)
            for name, value in entry.items():
                if name not in found or found[name] != value:
                    text = with_member(text, [*path, name], value)
            return _checked(text, path, entry)
        except ValueError as error:
            raise _refused(self.path, f"can't be changed: {error}", "mend it by hand; nothing was changed") from None

    def diff(self, text: str) -> list[str]:
        """The lines that go and those that come, and none around them: they may hold secrets."""
        before = [] if self.data is None else self.data.decode().splitlines()
        name = safe(self.path)
        return list(difflib.unified_diff(before, text.splitlines(), name, name, n=0, lineterm=""))

    def replace(self, text: str) -> Path | None:
        """Put `text` in the file's place; gives the copy of what was there. Raises Failure host_file, OSError."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.data is None:
            self._create(self.path, text.encode())
            return None
        was = self.path.stat()
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        copy = self.path.with_name(f"{self.path.name}.{stamp}.bak")
        self._create(copy, self.data)
        new = self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}.new")
        self._create(new, text.encode())
        try:
            if (was.st_uid, was.st_gid) != (os.geteuid(), os.getegid()):
                os.chown(new, was.st_uid, was.st_gid)
            new.chmod(stat.S_IMODE(was.st_mode))
            if _read(self.path) != self.data:
                copy.unlink()
                raise _refused(self.path, "has changed meanwhile", "run it again", ScriptExit.CONFLICT)
            new.replace(self.path)
            sync_folder(self.path.parent)
        finally:
            new.unlink(missing_ok=True)
        return copy

    def _create(self, path: Path, data: bytes) -> None:
        try:
            create_private(path, data)
        except KeyFileError as error:
            raise _refused(self.path, f"can't be changed: {error}".rstrip("."), "see its folder") from None


def _checked(text: str, path: Sequence[str], entry: dict[str, Any] | None) -> str:
    """The text, which must have this entry now and nothing else at its place. Raises ValueError."""
    value: Any = parse(text).value
    for name in path:
        value = (value or {}).get(name)
    if value != entry:
        raise ValueError("the entry has no place in it")
    return text


def _read(path: Path) -> bytes | None:
    """Raises Failure host_file for something that is no file, or a very large one."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _refused(path, "is not a file", "nothing was changed")
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise _refused(path, f"has more than {MAX_BYTES} bytes", "nothing was changed")
    return data


def _refused(path: Path, why: str, mend: str, code: ScriptExit = ScriptExit.USAGE) -> Failure:
    return Failure(code, "host_file", f"{safe(path)}: {why}", mend)
