"""The files that a worker may still reach beside what names and certificates need: those of actions."""

import os
from contextlib import suppress

from ipc.walls.landlock import CHANGE, PathRule
from ipc.walls.privileges import User


class WalledPaths:
    """Whether what walls were built around is still what has that name: a worker can't open what takes its place."""

    def __init__(self, path: str | None) -> None:
        """None: nothing that this worker opens may be replaced."""
        self._path = path
        self._found = _identity(path)

    @property
    def is_watched(self) -> bool:
        """Whether there is anything to look at."""
        return self._path is not None

    def has_gone(self) -> bool:
        """True once another file or folder has the name, or one that had none."""
        return _identity(self._path) != self._found


def _identity(path: str | None) -> tuple[int, int] | None:
    try:
        status = os.stat(path) if path is not None else None
    except OSError:
        return None
    return None if status is None else (status.st_dev, status.st_ino)


def owner_of_files(files_dir: str, user: User | None) -> User | None:
    """This user if the folder of the actions' files is theirs; None: the gateway's own."""
    try:
        return user if user is not None and os.stat(files_dir).st_uid == user.uid else None
    except OSError:
        return None


def files_place(files_dir: str) -> PathRule:
    """The folder of the actions' files, which is made where it is missing. It may be that it can't be: then a worker
    reaches no file, and its calls say so."""
    with suppress(OSError):
        os.makedirs(files_dir, mode=0o700, exist_ok=True)
    return PathRule(files_dir, CHANGE)
