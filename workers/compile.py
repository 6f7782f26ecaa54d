"""Compiling modules: in a child of its own, into a folder that only we can write, once for each digest.

SECURITY: mapping a compiled file is running it. So the folder must be ours, mode 0700, and what lies in it a regular
file of ours that nobody else can write; otherwise it is refused, never repaired. The compiler, which reads a
stranger's bytes, runs under limits and a deadline in a process that is thrown away.
"""

import os
import resource
import stat
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NoReturn

from wasmtime import Engine, WasmtimeError
from wasmtime.component import Component

from workers.forking import Forked, fork, leave, settle
from workers.runtime.contract import ContractBroken
from workers.runtime.modules import CONFIG_HASH, as_module, runtime_version
from workers.sandbox.limits import apply_limits, data_in_use, refuse_new_privileges

COMPILE_SECONDS = 60.0
_GIB = 1 << 30
_LIMITS = {
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_CPU: 90,
    resource.RLIMIT_FSIZE: _GIB // 2,
    resource.RLIMIT_NOFILE: 16,
}
_DATA_BYTES = 3 * _GIB
"""What the largest modules need (a Python interpreter: 18 MB of wasm), beyond what the template has."""
_REPORT_BYTES = 2000
_REFUSED, _DONE = 1, 0
_TEMPORARY = ".tmp-"


class CacheRefused(Exception):
    """The folder for compiled modules can't be trusted or made; the message says why and what to do."""


class Cache:
    """The folder of compiled modules."""

    def __init__(self, folder: str, *, is_for_looking: bool = False) -> None:
        """Make the folder if need be, and check it; for looking, nothing is made. Raises CacheRefused."""
        self._folder = folder
        self._suffix = f"-{runtime_version()}-{CONFIG_HASH}.cwasm"
        if is_for_looking:
            return
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            _check_folder(folder)
            for name in os.listdir(folder):
                if name.startswith(_TEMPORARY):
                    os.unlink(os.path.join(folder, name))
        except OSError as error:
            raise CacheRefused(f"{folder}: {os.strerror(error.errno or 0)}") from None

    def path(self, digest: str) -> str:
        """Where the code of a module (`sha256:<hex>`) belongs."""
        return os.path.join(self._folder, digest.removeprefix("sha256:") + self._suffix)

    def find(self, digest: str) -> str | None:
        """Path of the compiled module, None when there is none that can be trusted."""
        path = self.path(digest)
        try:
            _check_folder(self._folder)
            found = os.lstat(path)
        except (OSError, CacheRefused):
            return None
        is_ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022
        return path if is_ours else None

    def forget(self, digest: str) -> None:
        """Drop a file that does not map."""
        with suppress(OSError):
            os.unlink(self.path(digest))

    def store(self, digest: str, code: bytes) -> None:
        """Write the file, whole or not at all. Raises OSError."""
        temporary = os.path.join(self._folder, f"{_TEMPORARY}{os.getpid()}-{os.urandom(8).hex()}")
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            view = memoryview(code)
            while view:
                view = view[os.write(file, view) :]
            os.fsync(file)
        finally:
            os.close(file)
        os.rename(temporary, self.path(digest))
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _check_folder(folder: str) -> None:
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode):
        raise CacheRefused(f"{folder} is not a folder. Remove it.")
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise CacheRefused(
            f"{folder} is open to other users. Make it mode 0700 and owned by the gateway, or remove it."
        )


@dataclass
class Compilation:
    """A compiler that is under way."""

    digest: str
    child: Forked
    report: int
    """Reading end of the pipe on which it says why it refused."""
    deadline: float = field(default_factory=lambda: time.monotonic() + COMPILE_SECONDS)

    def finish(self) -> str | None:
        """Collect the child, which has ended or is killed now. Returns None for success, or why there is no code."""
        has_ended = self.child.has_ended()
        if not has_ended:
            self.child.kill()
        status = self.child.reap()
        with os.fdopen(self.report, "rb") as pipe:
            said = pipe.read(_REPORT_BYTES).decode("utf-8", "replace")
        if status == _DONE:
            return None
        if not has_ended:
            return f"compiling took more than {COMPILE_SECONDS:g} s"
        return said or f"the compiler ended with {status}"


def start_compilation(engine: Engine, cache: Cache | None, digest: str, data: bytes) -> Compilation:
    """Fork a compiler for these bytes. Returns in the parent only. Raises OSError.

    Without a cache nothing is kept: the compiler says whether the module could be used.
    """
    reading, writing = os.pipe2(os.O_CLOEXEC)
    try:
        child = fork()
    except OSError:
        os.close(reading)
        os.close(writing)
        raise
    if child is None:
        _compile(engine, cache, digest, data, writing)
    os.close(writing)
    return Compilation(digest, child, reading)


def _compile(engine: Engine, cache: Cache | None, digest: str, data: bytes, report: int) -> NoReturn:
    """The child."""
    try:
        settle({report})
        refuse_new_privileges()
        apply_limits(_LIMITS | {resource.RLIMIT_DATA: data_in_use() + _DATA_BYTES})
        try:
            component = Component(engine, data)
            if cache is None:
                as_module(engine, digest, component)
                leave(_DONE)
            code = bytes(component.serialize())
        except (WasmtimeError, ContractBroken) as error:
            os.write(report, str(error).strip().encode()[:_REPORT_BYTES])
            leave(_REFUSED)
        cache.store(digest, code)
        leave(_DONE)
    except BaseException as error:
        leave(error)
