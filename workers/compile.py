"""Compiling modules: in a child of its own, into a folder that only we can write, once for each digest.

SECURITY: the compiler, which reads a stranger's bytes, runs under limits and a deadline in a process that is thrown
away. It says the digest of what it wrote over a pipe of its own, and the template notes it: see workers/cache.py.
"""

import os
import resource
import signal
import time
from dataclasses import dataclass, field
from typing import NoReturn

import msgspec
from wasmtime import Engine, WasmtimeError
from wasmtime.component import Component

from ipc.limits import COMPILE_SECONDS
from ipc.walls.confining import enter
from ipc.walls.given import Given
from ipc.walls.limits import apply_limits, data_in_use
from workers.cache import MAX_CODE_BYTES, Cache, code_digest
from workers.forking import Forked, fork, leave, settle
from workers.runtime.binary import NotAComponent
from workers.runtime.contract import ContractBroken
from workers.runtime.expansion import check_expansion
from workers.runtime.modules import as_module
from workers.sandbox.template import compiler_walls

CPU_SECONDS = 180
"""A JavaScript interpreter of 12 MB took 60 s on a shared machine."""
_GIB = 1 << 30
_LIMITS = {
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_CPU: CPU_SECONDS,
    resource.RLIMIT_FSIZE: MAX_CODE_BYTES,
    resource.RLIMIT_NOFILE: 16,
}
_DATA_BYTES = 3 * _GIB
"""The largest modules need this (a Python interpreter: 18 MB of wasm), beyond what the template has."""
_REPORT_BYTES = 2000
_REFUSED, _DONE = 1, 0


class NotCompiled(Exception):
    """There is no code; the message says why."""


@dataclass
class Compilation:
    """A compiler that is under way."""

    digest: str
    child: Forked
    report: int
    """Reading end of the pipe on which it says the digest of the code, or why it refused."""
    deadline: float = field(default_factory=lambda: time.monotonic() + COMPILE_SECONDS)

    def finish(self) -> str:
        """Collect the child, which has ended or is killed now. Returns the digest of the code that it stored, or raises
        NotCompiled."""
        has_ended = self.child.has_ended()
        if not has_ended:
            self.child.kill()
        status = self.child.reap()
        with os.fdopen(self.report, "rb") as pipe:
            said = pipe.read(_REPORT_BYTES).decode("utf-8", "replace")
        if status == _DONE:
            return said
        if not has_ended:
            raise NotCompiled(f"compiling took more than {COMPILE_SECONDS:g} s")
        if status == -signal.SIGKILL:
            raise NotCompiled(
                f"compiling took more than {CPU_SECONDS} s of processor time, or than the memory there is"
            )
        raise NotCompiled(said or f"the compiler ended with {status}")


def start_compilation(engine: Engine, cache: Cache | None, digest: str, data: bytes, walls: Given) -> Compilation:
    """Fork a compiler for these bytes. Returns in the parent only. Raises OSError.

    Without a cache nothing is kept: the compiler says whether the module could be used. `walls` is what this machine
    gives for those around it.
    """
    reading, writing = os.pipe2(os.O_CLOEXEC)
    try:
        child = fork()
    except OSError:
        os.close(reading)
        os.close(writing)
        raise
    if child is None:
        _live(_Work(engine, cache, digest, data), writing, walls)
    os.close(writing)
    return Compilation(digest, child, reading)


class _Work(msgspec.Struct, frozen=True):
    """The work of one compiler."""

    engine: Engine
    cache: Cache | None
    digest: str
    data: bytes


def _live(work: _Work, report: int, walls: Given) -> NoReturn:
    """The child."""
    try:
        settle({report})
        limits = _LIMITS | {resource.RLIMIT_DATA: data_in_use() + _DATA_BYTES}
        enter(compiler_walls(None if work.cache is None else work.cache.folder), walls)
        apply_limits(limits)
        leave(_compile(work, report))
    except BaseException as error:
        leave(error)


def _compile(work: _Work, report: int) -> int:
    try:
        check_expansion(work.data)
        component = Component(work.engine, work.data)
        as_module(work.engine, work.digest, component)
        if work.cache is None:
            return _DONE
        code = bytes(component.serialize())
    except (WasmtimeError, ContractBroken, NotAComponent) as error:
        os.write(report, str(error).strip().encode()[:_REPORT_BYTES])
        return _REFUSED
    work.cache.store(work.digest, code)
    os.write(report, code_digest(code).encode())
    return _DONE
