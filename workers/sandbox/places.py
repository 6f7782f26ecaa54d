"""The files that a worker may still reach, by profile: none, what names and certificates need, or files of actions."""

import os
import ssl
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

from ipc.walls.landlock import CHANGE, LIST, READ, READ_FILES, Place

_RESOLVER_FILES = (
    "/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/services",
)  # fmt: skip
_MAX_FOLDERS = 16
"""Of certificates: where their links lead to."""


@cache
def outside_places() -> tuple[Place, ...]:
    """What looking up a name and verifying a certificate reads: their files, never a folder of others. Looked for once,
    in the template."""
    return (*(Place(path, READ_FILES) for path in _RESOLVER_FILES), *_certificates())


def _certificates() -> Iterator[Place]:
    paths = ssl.get_default_verify_paths()
    if paths.cafile:
        yield Place(paths.cafile, READ_FILES)
    if not paths.capath:
        return
    yield Place(paths.capath, READ)
    folders: set[str] = set()
    with suppress(OSError), os.scandir(paths.capath) as entries:
        for entry in entries:
            if entry.is_symlink() and len(folders) < _MAX_FOLDERS:
                folders.add(os.path.dirname(os.path.realpath(entry.path)))
    for folder in sorted(folders - {os.path.realpath(paths.capath), "/"}):
        yield Place(folder, READ_FILES)


def files_place(files_dir: str) -> Place:
    """The folder of the actions' files, which is made where it is missing. It may be that it can't be: then a worker
    reaches no file, and its calls say so."""
    with suppress(OSError):
        os.makedirs(files_dir, mode=0o700, exist_ok=True)
    return Place(files_dir, CHANGE | LIST)
