"""The files that a rollback writes: checked in a copy of the folder, replaced whole, put back if they are refused."""

import os
import re
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ipc.process.exits import Exit
from ipc.process.private_files import PrivateFileError, remove_unfinished, write_whole
from ipc.settings import Settings
from supervisor.commands.examine.checking import Checked, check_actions
from supervisor.refusal import Refused

TRUSTED = "trusted_modules.yaml"
NOTE = "trusted again by gateway actions rollback"
_DIGESTS = re.compile(r"^digests:[ \t]*(\{[ \t]*\})?[ \t]*(#.*)?$", re.MULTILINE)
_ENTRY = re.compile(r"^digests:.*\n(?:[ \t]*(?:#.*)?\n)*([ \t]+)\S", re.MULTILINE)


@dataclass
class FileChanges:
    """New contents by path; `place` is the manifest among them, `module` the digest that it names."""

    folder: Path
    modules: Path
    place: Path
    module: str | None
    files: dict[Path, bytes]
    _before: list[tuple[Path, bytes | None]] = field(default_factory=list)

    @property
    def shown(self) -> str:
        """The files, for people."""
        return ", ".join(str(path) for path in self.files)

    def check(self, settings: Settings, environ: Mapping[str, str]) -> bool:
        """Judge the folder as it would be, trusting the module where that is missing; True if it has to be trusted
        again. Raises Refused, with every problem."""
        checked = self._judged(settings, environ)
        place = (str(self.place), "provider_module_digest")
        is_trusted = self.module is None or place not in {(one.origin, one.field) for one in checked.problems}
        if not is_trusted:
            self.files = {self.folder / TRUSTED: self._with_trust()} | self.files
            checked = self._judged(settings, environ)
        if checked.problems:
            told = "".join(f"\n{one}" for one in checked.problems)
            raise Refused(Exit.CONFIG, f"the folder would not pass gateway check, and nothing was changed:{told}")
        return not is_trusted

    def apply(self) -> None:
        """Write them, the manifest last. Raises Refused; then what was written is put back."""
        try:
            for path, data in self.files.items():
                remove_unfinished(path)  # of a rollback that was killed; the folder is held
                self._before.append((path, path.read_bytes() if path.exists() else None))
                _put(path, data)
        except (PrivateFileError, OSError) as error:
            self.undo()
            raise Refused(Exit.NO_PERMISSION, f"{error} Nothing was changed.") from None

    def undo(self) -> None:
        """Put the earlier files back. Raises Refused."""
        try:
            while self._before:
                path, data = self._before.pop()
                if data is None:
                    path.unlink(missing_ok=True)
                elif path.read_bytes() != data:
                    _put(path, data)
        except (PrivateFileError, OSError) as error:
            raise Refused(Exit.FAILED, f"an earlier file could not be put back: {error}") from None

    def _judged(self, settings: Settings, environ: Mapping[str, str]) -> Checked:
        with tempfile.TemporaryDirectory(prefix="gateway-rollback-") as made:
            actions, modules = Path(made, "actions"), Path(made, "modules")
            for copy, folder in ((actions, self.folder), (modules, self.modules)):
                copy.mkdir()
                new = {path.name: data for path, data in self.files.items() if path.parent == folder}
                for name in os.listdir(folder) if folder.is_dir() else []:
                    if name not in new and not name.startswith("."):
                        (copy / name).symlink_to((folder / name).absolute())
                for name, data in new.items():
                    (copy / name).write_bytes(data)
            places = {str(actions): str(self.folder), str(modules): str(self.modules)}
            judged = msgspec.structs.replace(settings, manifests_dir=str(actions), modules_dir=str(modules))
            return _renamed(check_actions(judged, environ), places)

    def _with_trust(self) -> bytes:
        """The file of trusted modules with this one. Raises Refused."""
        path = self.folder / TRUSTED
        text = path.read_text() if path.exists() else "digests:\n"
        entry, indent = f'"{self.module}": "{NOTE}"', "  "
        if (known := _ENTRY.search(text)) is not None:
            indent = known[1]
        added, count = _DIGESTS.subn(
            lambda found: f"digests:{' ' + found[2] if found[2] else ''}\n{indent}{entry}", text
        )
        if count != 1:
            raise Refused(Exit.CONFIG, f"{path} has no plain list of digests: add {entry} to it, then try again.")
        return added.encode()


def _renamed(checked: Checked, places: Mapping[str, str]) -> Checked:
    """The same with the true paths of files."""

    def real(text: str) -> str:
        for copy, folder in places.items():
            text = text.replace(copy, folder)
        return text

    problems = (replace(one, origin=real(one.origin), text=real(one.text)) for one in checked.problems)
    return replace(checked, problems=tuple(problems))


def _put(path: Path, data: bytes) -> None:
    """Write a file with owner and mode of the one that it replaces; a new one gets those of its folder. Raises
    PrivateFileError and OSError."""
    is_there = path.exists()
    status = (path if is_there else path.parent).stat()
    mode = stat.S_IMODE(status.st_mode) & (0o777 if is_there else 0o664)
    write_whole(path, data, mode=mode, owner=(status.st_uid, status.st_gid))
