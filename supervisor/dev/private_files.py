"""Files that only their owner may read: written whole or not at all, kept once they are there."""

import errno
import os
import secrets
from collections.abc import Callable
from pathlib import Path

from ipc.process.exits import Exit
from supervisor.refusal import Refused

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


def _temporary(file: Path) -> Path:
    return file.with_name(f".{file.name}.{secrets.token_hex(8)}")


def write_private(file: Path, content: str) -> None:
    """Write with mode 0600: temporary file, fsync, rename, fsync of the folder. Raises OSError."""
    temporary = _temporary(file)
    descriptor = os.open(temporary, _FLAGS, 0o600)
    try:
        with os.fdopen(descriptor, "w") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(descriptor)
        temporary.rename(file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def check_can_write(file: Path) -> None:
    """Check that write_private could write there, without a file ever appearing at that path. Raises OSError."""
    if file.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    temporary = _temporary(file)
    os.close(os.open(temporary, _FLAGS, 0o600))
    temporary.unlink()


def keep_private(file: Path, make: Callable[[], str]) -> str:
    """The file's content; made at the first time and kept from then on. Raises OSError, for a dangling link too, and
    Refused for a file that is no text."""
    try:
        return file.read_text()
    except UnicodeDecodeError:
        raise Refused(Exit.CONFIG, f"{file} is not UTF-8.") from None
    except FileNotFoundError:
        if file.is_symlink():  # a dangling link: its target is unknown
            raise
        content = make()
        write_private(file, content)
        return content
