"""The folder of compiled modules, and beside it the digests of what our own compilers wrote there.

SECURITY: mapping compiled code is running it. So both folders must be ours, mode 0700, and hold regular files that we
own and no other user can write; and the very bytes that are handed out have the digest that was noted when they were
compiled. The digest lies in another folder, so that write access to the compiled modules alone is not enough to forge
one. A file that fails a check is refused and never repaired: the module is compiled anew.
"""

import hashlib
import os
import re
import stat
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from ipc.process.private_files import PrivateFileError, write_private
from workers.runtime.modules import CONFIG_HASH, runtime_version

MAX_CODE_BYTES = 1 << 29
"""A compiler may write no larger file."""
KEEP_UNUSED_SECONDS = 30 * 24 * 3600.0
"""For so long the code of a module is kept that is not loaded any more, so that a change can be taken back."""
MOST_UNUSED = 32
"""The code of so many modules that are not loaded is kept: those that were loaded last."""
_TEMPORARY = ".tmp-"
_CODE, _NOTED = ".cwasm", ".sha256"
_DIGEST = re.compile(rb"sha256:[0-9a-f]{64}")
_DIGEST_BYTES = 71


class CacheRefused(Exception):
    """The folder for compiled modules can't be trusted or made; the message says why and what to do."""


class NotTrusted(Exception):
    """There is something in a compiled module's place that may not be mapped; the message says why."""


class Cache:
    """The folder of compiled modules."""

    def __init__(self, folder: str, *, is_for_looking: bool = False) -> None:
        """Make the folders if need be, and check them; for looking, nothing is made. Raises CacheRefused."""
        self.folder = folder
        self._digests = f"{folder}.digests"
        self._name = f"-{runtime_version()}-{CONFIG_HASH}"
        if is_for_looking:
            return
        for one in (self.folder, self._digests):
            try:
                os.makedirs(one, mode=0o700, exist_ok=True)
                _check_folder(one)
            except OSError as error:
                raise CacheRefused(f"{one}: {os.strerror(error.errno or 0)}") from None
        with suppress(OSError):
            for name in os.listdir(folder):
                if name.startswith(_TEMPORARY):
                    os.unlink(os.path.join(folder, name))

    def path(self, digest: str) -> str:
        """Where the code of a module (`sha256:<hex>`) belongs."""
        return os.path.join(self.folder, f"{digest.removeprefix('sha256:')}{self._name}{_CODE}")

    def digest_path(self, digest: str) -> str:
        """Where the digest of that code belongs."""
        return os.path.join(self._digests, f"{digest.removeprefix('sha256:')}{self._name}{_NOTED}")

    def read(self, digest: str) -> bytes | None:
        """The code of a module as it was compiled here, or None. Raises NotTrusted."""
        try:
            _check_folder(self.folder)
            code = _ours(self.path(digest), MAX_CODE_BYTES)
        except FileNotFoundError:
            return None
        except CacheRefused as error:
            raise NotTrusted(str(error)) from None
        except OSError as error:
            raise NotTrusted(f"it can't be read: {os.strerror(error.errno or 0)}") from None
        if code_digest(code).encode() != self._noted(digest):
            raise NotTrusted("it is not what was compiled here")
        return code

    def _noted(self, digest: str) -> bytes:
        try:
            _check_folder(self._digests)
            noted = _ours(self.digest_path(digest), _DIGEST_BYTES)
        except (OSError, CacheRefused):
            raise NotTrusted("no digest of it was noted") from None
        if not _DIGEST.fullmatch(noted):
            raise NotTrusted("the digest that was noted of it is damaged")
        return noted

    def forget(self, digest: str) -> None:
        """Drop code that does not map."""
        for path in (self.digest_path(digest), self.path(digest)):
            with suppress(OSError):
                os.unlink(path)

    def sweep(self, loaded: Collection[str], now: float) -> int:
        """Remove the code of modules that have not been loaded for long, and of the oldest where there are too many;
        returns how many. `loaded`: digests of the modules in use; their files are marked as used now (Unix seconds).
        """
        in_use = {os.path.basename(self.path(digest)) for digest in loaded}
        unused: list[tuple[float, str]] = []
        for name in os.listdir(self.folder):
            if not name.endswith(_CODE):
                continue
            path = os.path.join(self.folder, name)
            with suppress(OSError):  # another user's, or gone
                if name in in_use:
                    os.utime(path, (now, now), follow_symlinks=False)
                else:
                    unused.append((os.lstat(path).st_mtime, name))
        unused.sort(reverse=True)
        kept = sum(used > now - KEEP_UNUSED_SECONDS for used, _ in unused[:MOST_UNUSED])
        for _, name in unused[kept:]:
            with suppress(OSError):
                os.unlink(os.path.join(self.folder, name))
        for name in os.listdir(self._digests):
            if name.endswith(_NOTED) and not os.path.exists(
                os.path.join(self.folder, name.removesuffix(_NOTED) + _CODE)
            ):
                with suppress(OSError):
                    os.unlink(os.path.join(self._digests, name))
        return len(unused) - kept

    def note(self, digest: str, compiled: str) -> None:
        """Keep the digest of the code that a compiler has stored (`code_digest`). Raises OSError."""
        try:
            write_private(Path(self.digest_path(digest)), compiled.encode())
        except PrivateFileError as error:
            raise OSError(str(error)) from None

    def store(self, digest: str, code: bytes) -> None:
        """Write the code, whole or not at all. Raises OSError."""
        temporary = os.path.join(self.folder, f"{_TEMPORARY}{os.getpid()}-{os.urandom(8).hex()}")
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            view = memoryview(code)
            while view:
                view = view[os.write(file, view) :]
            os.fsync(file)
        finally:
            os.close(file)
        os.rename(temporary, self.path(digest))
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def code_digest(code: bytes) -> str:
    """`sha256:<hex>` of compiled code."""
    return "sha256:" + hashlib.sha256(code).hexdigest()


def _ours(path: str, most: int) -> bytes:
    """Content of a regular file that this user owns and no other can write: the bytes read are those checked. Raises
    OSError, NotTrusted."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(path, flags), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise NotTrusted("it is no file of the gateway's alone")
        data = file.read(most + 1)
    if len(data) > most:
        raise NotTrusted(f"it has more than {most} bytes")
    return data


def _check_folder(folder: str) -> None:
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode):
        raise CacheRefused(f"{folder} is not a folder. Remove it.")
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise CacheRefused(
            f"{folder} is open to other users. Make it mode 0700 and owned by the gateway, or remove it."
        )
