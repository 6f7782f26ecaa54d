"""Places of this machine that several kinds of processes read: the interpreter and what names and certificates need."""

import os
import ssl
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from ipc.walls.landlock import CHANGE, READ, READ_FILES, PathRule

_RESOLVER_FILES = (
    "/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/services",
)  # fmt: skip
_LIBRARIES = ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/local/lib", "/usr/share/zoneinfo")
_LIBRARY_FILES = ("/etc/ld.so.cache", "/etc/localtime", "/dev/urandom", "/dev/null")
_OURS = ("contract", "ipc", "frontend", "notary", "workers", "docs")
_MAX_FOLDERS = 16
"""The most folders that links of certificates may lead to."""


@cache
def outside_places() -> tuple[PathRule, ...]:
    """The files that looking up a name and verifying a certificate read, and no other folder. Searched once."""
    return (*(PathRule(path, READ_FILES) for path in _RESOLVER_FILES), *_certificates())


def _certificates() -> Iterator[PathRule]:
    paths = ssl.get_default_verify_paths()
    if paths.cafile:
        yield PathRule(paths.cafile, READ_FILES)
    if not paths.capath:
        return
    yield PathRule(paths.capath, READ)
    folders: set[str] = set()
    real = cache(os.path.realpath)  # hundreds of certificates lie in one or two folders
    with suppress(OSError), os.scandir(paths.capath) as entries:
        for entry in entries:
            if entry.is_symlink() and len(folders) < _MAX_FOLDERS:
                folder, name = os.path.split(os.readlink(entry.path))
                if folder:  # otherwise it leads to another entry
                    file = os.path.join(real(os.path.join(paths.capath, folder)), name)
                    folders.add(os.path.dirname(os.path.realpath(file) if os.path.islink(file) else file))
    for folder in sorted(folders - {real(paths.capath), "/"}):
        yield PathRule(folder, READ_FILES)


def program_places() -> tuple[PathRule, ...]:
    """The files that an interpreter with our code reads. None of them may be executed as a program."""
    here = Path(__file__).resolve().parents[2]
    folders = {sys.prefix, sys.base_prefix, *_LIBRARIES, *(str(here / name) for name in _OURS)}
    folders |= {path for path in sys.path if "-packages" in path}
    return (
        *(PathRule(path, READ) for path in sorted(folders)),
        *(PathRule(path, READ_FILES) for path in _LIBRARY_FILES),
    )


def homes(paths: Iterable[str | None], rights: int = READ) -> Iterator[PathRule]:
    """The folders that these files lie in, so that they may be replaced; where links lead to something else, those
    too."""
    for path in paths:
        if path is not None:
            yield PathRule(_there(os.path.dirname(path)), rights)
            yield PathRule(_there(os.path.dirname(os.path.realpath(path))), rights)


def folders(paths: Iterable[str | None], rights: int = READ) -> Iterator[PathRule]:
    """These folders, and what they are replaced by: whatever lies beside them can be read."""
    for path in paths:
        if path is not None:
            yield PathRule(_there(path), rights)
            yield from (one for one in homes([path], READ) if one.path != "/")


def kept(paths: Iterable[str | None]) -> Iterator[PathRule]:
    """Folders in which files are made and replaced."""
    for path in paths:
        if path is not None:
            yield PathRule(_there(path), CHANGE)


def _there(folder: str) -> str:
    """The folder, or the nearest one above that exists: what is missing now may be made later, and must be reached."""
    while folder != "/" and not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return folder
