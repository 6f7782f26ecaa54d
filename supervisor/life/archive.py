"""Copies of the manifests that were in force, and their modules, for `gateway actions history` and `rollback`.

They lie in `manifest-history` of the state directory: each file under the digest of its bytes, and an index that names
the loads of each action. Guarantees that a copy has the digest that it is filed under, that files are whole or absent,
and that what is in force is never dropped. Only the supervisor of the running gateway writes here; fronts, which talk
to the network, can't.
"""

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from ipc.messages.manifests import LoadedManifest
from ipc.process.private_files import PrivateFileError, make_folder, write_private, write_whole

FOLDER: Final = "manifest-history"
INDEX: Final = "index.json"
MOST_VERSIONS: Final = 32
"""Loads that are kept of one action."""
MOST_BYTES: Final = 64 * 1024 * 1024
"""The bound for all copies together; those in force are kept beyond it."""
MOST_MANIFEST_BYTES: Final = 256 * 1024
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_MANIFEST_NAME = re.compile(r"[^./\x00][^/\x00]{0,249}\.ya?ml")
_MOST_INDEX_BYTES = 64 * 1024 * 1024


class ManifestVersion(msgspec.Struct, frozen=True):
    """A load that changed an action. `digest` is None where the action was gone; `module` None for a built-in one."""

    at: str
    version: str = ""
    file: str = ""
    digest: str | None = None
    module: str | None = None


LoadHistory = dict[str, list[ManifestVersion]]
"""Action -> its versions, oldest first; the last one is in force."""


class ArchiveDamaged(Exception):
    """The index can't be read. The text is a sentence."""


class ManifestArchive(msgspec.Struct, frozen=True):
    """The copies in one state directory. `most_bytes` bounds those that are not in force."""

    state_dir: Path
    most_bytes: int = MOST_BYTES

    @property
    def folder(self) -> Path:
        """Holds index and copies."""
        return self.state_dir / FOLDER

    def history(self) -> LoadHistory:
        """The loads of all actions. Raises ArchiveDamaged."""
        path = self.folder / INDEX
        try:
            return msgspec.json.decode(path.read_bytes(), type=LoadHistory)
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ArchiveDamaged(
                f"{path} can't be read: {error}. Remove {self.folder}: the history begins anew."
            ) from None

    def copy_of(self, digest: str) -> bytes | None:
        """The bytes with this digest, None if they are not here or not whole."""
        try:
            data = (self.folder / digest).read_bytes()
        except OSError:
            return None
        return data if digest_of(data) == digest else None

    def record(self, loaded: Sequence[LoadedManifest], manifests: Path, modules: Path, at: str) -> list[str]:
        """Keep what has changed since the last load; return the problems. Raises ArchiveDamaged
        and PrivateFileError."""
        make_folder(self.folder)
        before = self.history()
        load = _LoadCopier(self.folder, manifests, modules, at)
        after = {name: list(versions) for name, versions in before.items()}
        for one in loaded:
            versions = after.setdefault(one.action_id, [])
            known = versions[-1] if versions else None
            if known is None or (known.digest, known.module, known.file) != (one.digest, one.module, one.file):
                versions += load.versions_of(one)
        for name in after.keys() - {one.action_id for one in loaded}:
            if after[name] and after[name][-1].digest is not None:
                after[name].append(ManifestVersion(at))
        after = self._bounded(after)
        if after != before:
            write_private(self.folder / INDEX, msgspec.json.encode(after), max_bytes=_MOST_INDEX_BYTES)
            self._remove_unnamed(after)
        return load.problems

    def _bounded(self, history: LoadHistory) -> LoadHistory:
        """Without the oldest loads, so that the bounds hold."""
        kept = {name: versions[-MOST_VERSIONS:] for name, versions in history.items() if versions}
        sizes = {digest: self._size(digest) for digest in set(_copies(kept))}
        uses = dict.fromkeys(sizes, 0)
        for digest in _copies(kept):
            uses[digest] += 1
        total = sum(sizes.values())
        earlier = [(version, name) for name, versions in kept.items() for version in versions[:-1]]
        for version, name in sorted(earlier, key=lambda row: row[0].at):
            if total <= self.most_bytes:
                break
            kept[name].remove(version)
            for digest in _copies_of(version):
                uses[digest] -= 1
                total -= 0 if uses[digest] else sizes[digest]
        return {name: versions for name, versions in kept.items() if any(one.digest for one in versions)}

    def _size(self, digest: str) -> int:
        try:
            return (self.folder / digest).stat().st_size
        except OSError:
            return 0

    def _remove_unnamed(self, history: LoadHistory) -> None:
        named = {INDEX, *_copies(history)}
        for path in self.folder.iterdir():
            if path.name not in named and not path.is_dir():  # the gateway makes no folder here
                path.unlink(missing_ok=True)


@dataclass
class _LoadCopier:
    """Copies the files of one load."""

    folder: Path
    manifests: Path
    modules: Path
    at: str
    problems: list[str] = field(default_factory=list)

    def versions_of(self, one: LoadedManifest) -> list[ManifestVersion]:
        """The version to add, once its files are copied; none if they can't be. SECURITY: a front names the files, so
        a name leads nowhere else and the digest must be that of the bytes."""
        is_named = _MANIFEST_NAME.fullmatch(one.file) and _DIGEST.fullmatch(one.digest)
        if not is_named or (one.module is not None and not _DIGEST.fullmatch(one.module)):
            self.problems.append("a front named a manifest that can't be one")
            return []
        if not self._is_kept(self.manifests / one.file, one.digest, MOST_MANIFEST_BYTES):
            return []
        if one.module is not None:
            self._is_kept(module_file(self.modules, one.module), one.module, MOST_BYTES)
        return [ManifestVersion(self.at, one.version, one.file, one.digest, one.module)]

    def _is_kept(self, path: Path, digest: str, most: int) -> bool:
        """True once a copy is there."""
        if (self.folder / digest).exists():
            return True
        try:
            data = read_bounded(path, most)
            if digest_of(data) != digest:
                raise ValueError(f"{path} has changed since it was loaded")
            write_whole(self.folder / digest, data, mode=0o600)
            return True
        except OSError as error:
            self.problems.append(f"{path}: {error.strerror}")
        except (ValueError, PrivateFileError) as error:
            self.problems.append(str(error))
        return False


def read_bounded(path: Path, most: int) -> bytes:
    """The bytes of a regular file. Raises OSError, and ValueError for another or a larger one."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > most:
            raise ValueError(f"{path} is no file of at most {most} bytes")
        return file.read(most)


def module_file(modules: Path, digest: str) -> Path:
    """The place of a module in the modules folder."""
    return modules / f"{digest.removeprefix('sha256:')}.wasm"


def digest_of(data: bytes) -> str:
    """`sha256:<hex>` of these bytes."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _copies(history: LoadHistory) -> Iterator[str]:
    for versions in history.values():
        for version in versions:
            yield from _copies_of(version)


def _copies_of(version: ManifestVersion) -> Iterable[str]:
    return [digest for digest in (version.digest, version.module) if digest is not None]
