"""The folder of actions' files, apart from all that the gateway reads or keeps: what agents write there is never taken
for a key, a module, a policy or a setting.

Only looks at the disk, never touches it. Links and mounts are seen through: two places are one when the file system
says so.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from ipc.settings import Settings
from supervisor.settings.config import Loaded
from supervisor.settings.problems import Problem, dotted
from supervisor.settings.toml_lines import Path as Setting

FILES = "files"
"""The one name in the state directory that files of actions may lie under."""
_SOCKETS = ("listen_uds_path", "listen_admin_uds_path")
_DEFAULTS = ("manifests_dir", "policy_dir", *_SOCKETS)
"""Places that a configuration has even where it does not name them."""


def overlap_problems(loaded: Loaded) -> list[Problem]:
    """Every place of the configuration that lies in the folder of actions' files, or around it."""
    settings = loaded.judged
    if settings is None or not (loaded.is_judged("state_dir") and loaded.is_judged("files_dir")):
        return []
    at: Setting = ("files_dir",) if settings.files_dir is not None else ("state_dir",)
    shown = f"the folder of actions' files, {settings.files_folder}"
    folder = _Place(settings.files_folder)
    told = []
    for setting, path in _places(loaded, settings):
        if folder.overlaps(_Place(path)):
            text = f"{dotted(setting)} = {path}: overlaps {shown}." if setting else f"overlaps {shown}."
            told.append(loaded.document.problem(setting, text, "Agents may write there: keep them apart."))
    if not _is_apart(folder, _Place(settings.state_dir)):
        text = f"{dotted(at)}: {shown}, overlaps what the gateway keeps in the state directory."
        mend = f"Agents may write there: use {settings.state_dir}/{FILES}, without a link, or a folder elsewhere."
        told.append(loaded.document.problem(at, text, mend))
    return told


def _places(loaded: Loaded, settings: Settings) -> Iterator[tuple[Setting, str]]:
    """(setting, path) of all that agents must not write: what the document names, itself, and what has a default."""
    if loaded.document.file:
        yield (), os.path.abspath(loaded.document.file)
    named = {path: value for path, value in loaded.places.items() if path not in {("state_dir",), ("files_dir",)}}
    for name in _DEFAULTS:
        if loaded.is_judged(name):
            named.setdefault((name,), getattr(settings, name))
    state = _Place(settings.state_dir)
    for setting, path in named.items():
        folder = os.path.dirname(path)
        # A socket has its folder for itself, but for one that holds the state directory too: that has its own rule.
        is_alone = setting[-1] in _SOCKETS and not state.is_in(_Place(folder))
        yield setting, folder if is_alone else path


def _is_apart(folder: "_Place", state: "_Place") -> bool:
    """True if the folder is `files` in the state directory, or in there, or shares nothing with the state directory."""
    if folder.is_in(state):
        return folder.real.is_relative_to(state.real / FILES)
    try:
        children = [_Place(entry.path) for entry in os.scandir(state.real) if entry.name != FILES]
    except OSError:
        children = []
    return not state.is_in(folder) and not any(folder.overlaps(child) for child in children)


class _Place:
    """A path that may not exist yet, with its real path and folder."""

    def __init__(self, path: str) -> None:
        self.real = Path(os.path.realpath(path))
        self._self = _identity(self.real)
        self._around = {_identity(one) for one in (self.real, *self.real.parents)}

    def is_in(self, other: "_Place") -> bool:
        """True if this is the other one, or lies in it."""
        return other._self in self._around

    def overlaps(self, other: "_Place") -> bool:
        """True if one of both lies in the other."""
        return self.is_in(other) or other.is_in(self)


def _identity(path: Path) -> tuple[int, int, Path]:
    """The device and inode of the nearest folder that exists, and the rest of the path below it."""
    for one in (path, *path.parents):
        try:
            status = one.stat()
        except OSError:
            continue
        return status.st_dev, status.st_ino, path.relative_to(one)
    return 0, 0, path
