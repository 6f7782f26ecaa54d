"""Folders and sockets of a configuration, looked at without touching them: what a start would trip over.

Guarantees that nothing is made, changed or locked: a gateway may be running on the very same places.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path

from ipc.settings import Settings
from ipc.texts.beneath import holds
from supervisor.settings.config import Loaded
from supervisor.settings.problems import Problem
from supervisor.state_dir import state_dir_trouble, trouble_above

_OTHERS_WRITE = 0o022
_MOST_FILES = 10_000
"""The check looks at no more files of one folder."""
_SQLITE = b"SQLite format 3\0"
"""The first bytes of a database file (https://www.sqlite.org/fileformat.html, "Magic Header String")."""


def place_problems(loaded: Loaded) -> list[Problem]:
    """Problems of the state directory, the ledger's folder, manifests, policy, the proxy's list and the sockets, at the
    settings that name them."""
    settings = loaded.judged
    assert settings is not None
    told = []
    if not settings.dev_mode and (file := loaded.document.file):
        for text, mend in _closed(Path(file)):
            told.append(loaded.document.problem((), f"{text.replace(file, 'this file', 1)}.", mend))
    for name, place, look in _places(settings, loaded):
        path = tuple(name.split("."))
        try:
            troubles = list(look(place))
        except OSError as error:
            troubles = [(f"{place} can't be looked at: {error.strerror}", "Correct the folder or the setting.")]
        told += [loaded.document.problem(path, f"{name}: {text}.", mend) for text, mend in troubles]
    return told


Look = Callable[[Path], Iterator[tuple[str, str]]]


def _places(settings: Settings, loaded: Loaded) -> Iterator[tuple[str, Path, Look]]:
    """(setting, path, what to look for) of everything that is named well enough to be looked at."""
    if loaded.is_judged("state_dir"):
        yield "state_dir", Path(settings.state_dir), partial(_state_dir, is_mended=settings.dev_mode)
        yield "state_dir", Path(settings.state_dir) / "modules-cache", _compiled
        if loaded.is_judged("ledger", "path") and settings.ledger.url is None:
            name = "state_dir" if settings.ledger.path is None else "ledger.path"
            yield name, Path(settings.ledger_file), _database
    if settings.ledger.path is not None and loaded.is_judged("ledger", "path"):
        yield "ledger.path", Path(settings.ledger.path).parent, _usable
    if settings.egress.proxy_allowlist_file is not None and loaded.is_judged("egress", "proxy_allowlist_file"):
        yield (
            "egress.proxy_allowlist_file",
            Path(settings.egress.proxy_allowlist_file),
            partial(_allow_list, guarded=settings.guarded),
        )
    for name in () if settings.dev_mode else ("manifests_dir", "policy_dir"):
        if loaded.is_judged(name):
            yield name, Path(getattr(settings, name)), _closed
    for name in ("listen_uds_path", "listen_admin_uds_path"):
        # A dev gateway chooses places for the sockets that are not configured.
        if loaded.is_judged(name) and (loaded.document.has((name,)) or not settings.dev_mode):
            yield name, Path(getattr(settings, name)), _socket
    if settings.metrics.listen_uds_path is not None and loaded.is_judged("metrics", "listen_uds_path"):
        yield "metrics.listen_uds_path", Path(settings.metrics.listen_uds_path), _socket


def _state_dir(folder: Path, *, is_mended: bool) -> Iterator[tuple[str, str]]:
    try:
        status = folder.stat()
    except FileNotFoundError:
        yield from _leads_nowhere(folder) if folder.is_symlink() else _makeable(folder)
        status = None
    trouble = None if status is None else state_dir_trouble(folder, status, is_mended=is_mended)
    trouble = trouble or trouble_above(folder, is_dev=is_mended)
    if trouble is not None:
        yield trouble


def _compiled(folder: Path) -> Iterator[tuple[str, str]]:
    """The folder of compiled modules: without it the runtime does not get ready."""
    if folder.exists() and not folder.is_dir():
        yield f"{folder} is not a folder", "Move it away: the gateway makes it."


def _database(file: Path) -> Iterator[tuple[str, str]]:
    """Whether what is there can be a database at all; whether it is whole, the notary looks at the start."""
    try:
        is_file = file.is_file()
        if file.exists() and not is_file:
            yield f"{file} is not a regular file", "Move it away, or name another."
        if not is_file:
            yield from _leads_nowhere(file)
            return
        with file.open("rb") as opened:
            head = opened.read(len(_SQLITE))
    except (FileNotFoundError, NotADirectoryError):
        return
    if head and head != _SQLITE:  # an empty one is what SQLite leaves before the first write
        yield f"{file} is not a SQLite database", "Put the ledger back from a backup (docs/operations.md)."


def _leads_nowhere(path: Path) -> Iterator[tuple[str, str]]:
    if path.is_symlink() and not path.exists():
        yield f"{path} is a link to nothing", "Make what it leads to, or remove it."


def _ours(folder: Path, status: os.stat_result) -> Iterator[tuple[str, str]]:
    """True if this user, and no other, may write in the folder."""
    mode = stat.S_IMODE(status.st_mode)
    if not stat.S_ISDIR(status.st_mode):
        yield f"{folder} is not a folder", "Move it away, or name another."
    elif status.st_uid != os.geteuid():
        yield f"{folder} belongs to another user (uid {status.st_uid})", "Run this as the gateway's user, or use chown."
    elif mode & _OTHERS_WRITE:
        yield f"{folder} can be written by other users (mode {mode:04o})", "Run chmod go-w on it."
    else:
        yield from _usable(folder)


def _allow_list(path: Path, guarded: Iterable[str]) -> Iterator[tuple[str, str]]:
    """A file that another process reads: the operator makes its folder, with that process's access. Fronts may change
    whatever lies there."""
    folder = path.parent
    if holds(str(folder), guarded):
        yield f"{folder} holds the state directory, the ledger or a key", "Give the list a folder of its own."
    try:
        status = folder.stat()
    except FileNotFoundError:
        yield f"{folder} is not there", "Make it, with the gateway's user as its owner and mode 0755."
        return
    yield from _ours(folder, status)
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return
    if not stat.S_ISREG(status.st_mode):
        kind = "a link" if stat.S_ISLNK(status.st_mode) else "not a regular file"
        yield f"{path} is {kind}", "Move it away, or name the file itself."
    elif status.st_uid != os.geteuid():
        yield f"{path} belongs to another user (uid {status.st_uid})", "Run this as the gateway's user, or use chown."


def _closed(file_or_folder: Path) -> Iterator[tuple[str, str]]:
    """SECURITY: a writer of these files changes what is allowed. The top of a volume may be open (`trouble_above`)."""
    for place in islice(chain([file_or_folder], file_or_folder.rglob("*")), _MOST_FILES):
        if not place.exists():
            continue
        mode = place.stat().st_mode
        if mode & stat.S_IWOTH and not (stat.S_ISDIR(mode) and (mode & stat.S_ISVTX or place.is_mount())):
            yield f"{place} can be written by every user of this host", f"Run chmod -R o-w {file_or_folder}."
            return


def _usable(folder: Path) -> Iterator[tuple[str, str]]:
    if not folder.exists():
        yield from _makeable(folder)
    elif not folder.is_dir():
        yield f"{folder} is not a folder", "Move it away, or name another."
    elif not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        yield f"{folder} can't be written", "Correct its owner or mode."


def _makeable(folder: Path) -> Iterator[tuple[str, str]]:
    """Whether a folder that is missing could be made."""
    parent = next(one for one in folder.parents if one.exists() or one.is_symlink())
    if not parent.is_dir():
        yield f"{folder} can't be made: {parent} is not a folder", "Move it away, or name another."
    elif not os.access(parent, os.W_OK | os.X_OK):
        yield f"{folder} can't be made: {parent} can't be written", "Make the folder, or correct the setting."


def _socket(path: Path) -> Iterator[tuple[str, str]]:
    yield from _usable(path.parent)
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return
    if not stat.S_ISSOCK(status.st_mode):
        yield f"{path} is there and is not a socket", "Move it away."
