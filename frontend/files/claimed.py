"""The files of a folder that a name claims, such as `*.rego`: each is a readable file, or the folder is refused.

SECURITY: a rule that is left out because its file can't be read would allow what the rule denies. So a dangling link, a
name that only looks right and a subfolder with such files are problems, never skipped. Hidden entries (such as `..data`
of a Kubernetes volume) are left out, files are found through links, and opening a pipe waits for no writer.
"""

import os
import stat
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from frontend.files.problems import printable
from ipc.texts.visible import has_looks

MAX_LOOKED_AT = 10_000
"""The most entries of one subfolder, at any depth."""
_OF_THE_FILE_SYSTEM = frozenset({"lost+found"})
_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"),
)  # fmt: skip

Claims = Callable[[str], bool]
"""Whether a name makes its file one to read."""


class FileNotReadable(Exception):
    """The file can't be read. `problem` and `mend` are sentences."""

    def __init__(self, problem: str, mend: str) -> None:
        super().__init__(f"{problem} {mend}")
        self.problem = problem
        self.mend = mend


class EntryRefusal(NamedTuple):
    """Why a folder can't be used: the escaped name of an entry, and two sentences."""

    name: str
    problem: str
    mend: str


def claimed_names(folder: Path, claims: Claims) -> tuple[list[str], list[EntryRefusal]]:
    """The names to read, sorted, and the refusals of the folder. Raises OSError."""
    names: list[str] = []
    refusals: list[EntryRefusal] = []
    with os.scandir(folder) as entries:
        listed = sorted(entries, key=lambda entry: entry.name)
    for entry in listed:
        name = entry.name
        if name.startswith(".") or name in _OF_THE_FILE_SYSTEM:
            continue
        if claims(name) and all(map(has_looks, name)):
            names.append(name)
        elif claims(name) or claims(_likeness(name)):
            mend = "Rename it, with visible characters and an ending in lower case."
            refusals.append(
                EntryRefusal(printable(name), "the name only looks like that of a file that is read.", mend)
            )
        elif _is_folder(entry):
            refusals += _beneath(folder, name, claims)
    return names, refusals


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a loop of links, for one
        return False


def _likeness(name: str) -> str:
    """The name as a person reads it."""
    return "".join(filter(has_looks, unicodedata.normalize("NFKC", name))).strip().lower()


def _beneath(folder: Path, name: str, claims: Claims) -> Iterator[EntryRefusal]:
    problem, mend = "", ""
    unread: list[OSError] = []
    seen = 0
    for path, folders, files in os.walk(folder / name, onerror=unread.append):
        folders[:] = [one for one in folders if not one.startswith(".")]
        for one in (*files, *folders):
            seen += 1
            if not one.startswith(".") and (claims(one) or claims(_likeness(one))):
                found = printable(str(Path(path, one).relative_to(folder / name)))
                problem = f"this subfolder holds {found}, and files of subfolders are not read."
                mend = "Move the file up, or the subfolder out."
        if problem or seen > MAX_LOOKED_AT:
            break
    if not problem and seen > MAX_LOOKED_AT:
        problem, mend = f"this subfolder holds more than {MAX_LOOKED_AT} entries to look at.", "Move it out."
    if not problem and unread:
        problem, mend = f"this subfolder cannot be read: {unread[0].strerror}.", "Correct its mode, or move it out."
    if problem:
        yield EntryRefusal(printable(name), problem, mend)


def read_regular(path: Path, most: int) -> bytes:
    """The first `most` bytes of a regular file, through links too. Raises FileNotReadable."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        raise _not_opened(path, error) from None
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            kind = next((said for is_kind, said in _KINDS if is_kind(mode)), "a device")
            raise FileNotReadable(f"is {kind}, not a file.", "Put a file there, or remove it.")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(most)
    except OSError as error:
        raise FileNotReadable(f"cannot be read: {error.strerror}.", "Correct its owner or mode.") from None
    finally:
        os.close(descriptor)


def _not_opened(path: Path, error: OSError) -> FileNotReadable:
    if path.is_symlink():
        return FileNotReadable(f"is a link that leads to no readable file: {error.strerror}.", "Correct or remove it.")
    return FileNotReadable(f"cannot be read: {error.strerror}.", "Correct its owner or mode.")
