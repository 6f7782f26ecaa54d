"""The folder that an import writes to: which manifests are there, and new files, each whole or not at all.

Guarantees that a file that is there is replaced only on request, and that nothing is written outside the folder: names
are made of an action's id, in lower-case letters, digits and `_`.
"""

import os
import re
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import msgspec

from frontend.files.problems import Report
from frontend.manifests.fields import Section
from frontend.manifests.file_names import is_manifest_name
from frontend.manifests.imported import ImportedOperation
from frontend.manifests.reading import read_fields, read_file
from importing.refusal import ImportRefused
from ipc.process.exits import Exit
from ipc.process.private_files import PrivateFileError, write_whole

_ID = re.compile(r"[a-z0-9][a-z0-9_]{0,127}")
_NOT_MANIFESTS = frozenset({"trusted_modules"})
_FILE_MODE, _FOLDER_MODE = 0o644, 0o755


class ManifestFile(msgspec.Struct, frozen=True):
    """A manifest that is there, as far as an import needs it."""

    path: Path
    action_id: str
    imported: ImportedOperation | None


class ImportFolder:
    """`--out DIR`."""

    def __init__(self, folder: Path) -> None:
        """Reads the manifests that are there. Raises ImportRefused."""
        self._folder = folder
        if folder.exists() and not folder.is_dir():
            raise ImportRefused(f"{folder} is no folder.", Exit.NO_PERMISSION)
        try:
            names = sorted(os.listdir(folder)) if folder.is_dir() else []
        except OSError as error:
            raise ImportRefused(f"{folder} can't be read: {error.strerror}.", Exit.NO_PERMISSION) from None
        self.names = frozenset(names)
        wanted = (name for name in names if is_manifest_name(name) and not name.startswith("."))
        self.manifests = tuple(found for name in wanted if (found := _read(folder / name)) is not None)

    def is_reserved(self, action_id: str) -> bool:
        """True for an id whose file would be no manifest."""
        return action_id in _NOT_MANIFESTS

    def is_named_by_id(self, manifest: ManifestFile) -> bool:
        """True for a file that `write` would write for the same action."""
        action_id = manifest.action_id
        return _ID.fullmatch(action_id) is not None and manifest.path.name == f"{action_id}.yaml"

    def check_free(self, action_ids: Iterable[str]) -> None:
        """Raises ImportRefused if a file that is no manifest has the name of one of these: nothing is written then."""
        for action_id in action_ids:
            if f"{action_id}.yaml" in self.names:
                self._refuse_taken(action_id)

    def _refuse_taken(self, action_id: str) -> NoReturn:
        path = self._folder / f"{action_id}.yaml"
        raise ImportRefused(f"{path} is there already; --force writes over it.") from None

    def text_of(self, action_id: str) -> str:
        """The text of the file of this action; empty if it can't be read."""
        try:
            return (self._folder / f"{action_id}.yaml").read_text()
        except (OSError, UnicodeDecodeError):
            return ""

    def write(self, action_id: str, text: str, *, over: bool) -> Path:
        """Write the manifest of a new action; `over`: a file that is there is replaced. Raises ImportRefused."""
        if _ID.fullmatch(action_id) is None:
            raise ValueError(f"{action_id!a} is no id of an import")
        target = self._folder / f"{action_id}.yaml"
        try:
            self._folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
            if over:
                write_whole(target, text.encode(), mode=_FILE_MODE)
            else:
                _write_new(target, text.encode())
        except FileExistsError:
            self._refuse_taken(action_id)
        except PrivateFileError as error:
            raise ImportRefused(str(error), Exit.NO_PERMISSION) from None
        except OSError as error:
            raise ImportRefused(f"{target} can't be written: {error.strerror}.", Exit.NO_PERMISSION) from None
        return target


def _write_new(target: Path, content: bytes) -> None:
    """Raises FileExistsError, for a dangling link too: the file gets its name only where none is."""
    whole = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    write_whole(whole, content, mode=_FILE_MODE)
    try:
        os.link(whole, target)
    finally:
        whole.unlink()


def _read(path: Path) -> ManifestFile | None:
    """None for a file that is no YAML mapping: `gateway check` says why."""
    report = Report(str(path))
    tree = read_file(path, report)
    if tree is None or not isinstance(tree.value, dict):
        return None
    manifest = read_fields(Section(tree, (), report))
    return ManifestFile(path, manifest.action_id, manifest.imported)
