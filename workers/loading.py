"""Loading modules: find the bytes, hold them against digest and imports, have them compiled, map them.

Owns the modules that workers forked from now on will have. Guarantees a verdict for every module asked for, in order,
and that one that is refused never disturbs those that serve. Compiling goes on beside everything else the template
does: `advance` takes the next step and never waits.
"""

import gc
import hashlib
import os
import re
import stat
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace
from wasmtime import Engine

from ipc.approvals import TTL_SECONDS
from ipc.messages.modules import LoadModules, ModuleFile, ModulesLoaded, ModuleVerdict
from ipc.walls.given import Given
from workers.cache import Cache, NotTrusted
from workers.compile import Compilation, NotCompiled, start_compilation
from workers.interfaces import INTERFACES
from workers.log import write_line
from workers.runtime.binary import NotAComponent
from workers.runtime.contract import ContractBroken
from workers.runtime.imports import component_imports, refused_import
from workers.runtime.modules import Module, NotMapped, map_module

MAX_MODULE_BYTES = 128 * 1024 * 1024
MAX_COMPILERS = 2
TELL_SECONDS = 3.0
"""A module that compiles for longer is named in the log: a start or a reload waits for it."""
SWEEP_AFTER_SECONDS = 3 * TTL_SECONDS
"""After its start a loader sweeps the cache. A hold from before the start has ended by then, or its module was loaded
when it was approved; modules of later holds are loaded."""
SWEEP_EVERY_SECONDS = 24 * 3600.0
BUILTINS = Path(__file__).with_name("providers")
_BUILTIN = re.compile(r"builtin:([a-z0-9_]{1,64})")
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_SUMS_LINE = re.compile(r"([0-9a-f]{64}) [ *]([a-z0-9_]{1,64})\.wasm")


class ModuleRefused(Exception):
    """This module is not loaded: verdict, what is known of its digest, and why."""

    def __init__(self, verdict: str, digest: str | None, detail: str) -> None:
        super().__init__(detail)
        self.verdict = verdict
        self.digest = digest


@dataclass
class _Job:
    """One LoadModules under way."""

    request: LoadModules
    verdicts: list[ModuleVerdict] = field(default_factory=list)
    waiting: dict[int, str] = field(default_factory=dict)
    """Position of a module that is being compiled -> its digest."""
    next: int = 0
    has_new: bool = False


class Loader:
    """Modules that are mapped, and those on the way."""

    def __init__(self, engine: Engine, cache: Cache, walls: Given) -> None:
        """`walls` is what this machine gives for those of compilers."""
        self._walls = walls
        self.modules: dict[str, Module] = {}
        self.generation = 0
        self.compilations: dict[str, Compilation] = {}
        self._engine = engine
        self._cache = cache
        self._jobs: deque[_Job] = deque()
        self._sweep_at = time.monotonic() + SWEEP_AFTER_SECONDS
        self._untold: dict[str, tuple[float, str]] = {}
        """Digest of a module that compiles -> when it is named in the log, and as what."""

    def renew(self) -> None:
        """Workers that are forked from now on have something that earlier ones lack."""
        self.generation += 1

    def submit(self, request: LoadModules) -> None:
        """Queue a request; requests are answered in order."""
        self._jobs.append(_Job(request))

    def next_deadline(self) -> float:
        """The next time (time.monotonic) at which `advance` must act without an event: a compiler has used up its time,
        a slow one has to be named in the log, or the next sweep of the cache is due."""
        deadlines = [one.deadline for one in self.compilations.values()]
        return min([self._sweep_at, *deadlines, *(at for at, _ in self._untold.values())])

    def advance(self) -> Iterator[ModulesLoaded]:
        """Take every step that needs no waiting; yields the answer of each request that is done."""
        self._collect()
        self._tell_slow()
        self._sweep()
        while self._jobs:
            job = self._jobs[0]
            self._work_on(job)
            if job.next < len(job.request.modules) or job.waiting:
                return
            self._jobs.popleft()
            self.generation += job.has_new
            # All loaded objects live as long as the template: a collector in a worker must never touch (and copy) it.
            gc.collect()
            gc.freeze()
            yield ModulesLoaded(job.request.request_id, self.generation, tuple(job.verdicts))

    def _collect(self) -> None:
        """Take the results of compilers that have ended or run out of time."""
        now = time.monotonic()
        for digest, compilation in list(self.compilations.items()):
            if not compilation.child.has_ended() and now < compilation.deadline:
                continue
            del self.compilations[digest]
            self._untold.pop(digest, None)
            problem = self._take(digest, compilation)
            if problem is not None:
                write_line("warning", "module refused", digest=digest, reason=problem)
            for job in self._jobs:
                self._settle(job, digest, problem)

    def _tell_slow(self) -> None:
        now = time.monotonic()
        for digest, (at, name) in list(self._untold.items()):
            if at <= now:
                del self._untold[digest]
                said = "a module is still being compiled: the start or the reload waits for it"
                write_line("info", said, module=name, digest=digest)

    def _sweep(self) -> None:
        now = time.monotonic()
        if now < self._sweep_at:
            return
        self._sweep_at = now + SWEEP_EVERY_SECONDS
        try:
            count = self._cache.sweep({*self.modules, *self.compilations}, time.time())
        except OSError as error:
            write_line("warning", "the folder of compiled modules can't be swept", reason=os.strerror(error.errno or 0))
            return
        if count:
            write_line("info", "compiled modules that were not loaded for long are removed", count=count)

    def _take(self, digest: str, compilation: Compilation) -> str | None:
        """Map what a compiler made. Returns why there is nothing to map."""
        try:
            self._cache.note(digest, compilation.finish())
            is_mapped = self._map(digest)
        except NotCompiled as error:
            return str(error)
        except OSError as error:
            return f"the compiled module can't be kept: {error}"
        except (NotTrusted, NotMapped, ContractBroken) as error:
            self._cache.forget(digest)
            return str(error)
        return None if is_mapped else "the compiled module is not where it was written"

    def _settle(self, job: _Job, digest: str, problem: str | None) -> None:
        for position in [at for at, waited in job.waiting.items() if waited == digest]:
            del job.waiting[position]
            verdict = "ok" if problem is None else "refused"
            job.verdicts[position] = replace(job.verdicts[position], verdict=verdict, detail=problem or "")
            job.has_new |= problem is None

    def _work_on(self, job: _Job) -> None:
        while job.next < len(job.request.modules):
            if len(self.compilations) >= MAX_COMPILERS:
                return
            position = job.next
            file = job.request.modules[position]
            job.next += 1
            try:
                digest, data = examine(file)
                if digest not in self.modules:
                    self._obtain(job, position, digest, data)
            except ModuleRefused as refused:
                job.verdicts.append(self._kept(job, file, refused))
            else:
                is_builtin = file.is_held and digest in _builtin_digests().values()
                job.verdicts.append(ModuleVerdict(file.reference, "ok", digest, is_builtin=is_builtin))

    def _kept(self, job: _Job, file: ModuleFile, refused: ModuleRefused) -> ModuleVerdict:
        """The verdict on a module that was refused: a held one whose file is gone may be mapped, or compiled, still."""
        digest = file.reference
        if file.is_held and refused.verdict == "missing" and _DIGEST.fullmatch(digest):
            is_mapped = digest in self.modules
            if is_mapped or self._is_cached(digest):
                job.has_new |= not is_mapped
                if self.modules[digest].interfaces <= {*file.required_imports}:
                    return ModuleVerdict(file.reference, "ok", digest)
        return ModuleVerdict(file.reference, refused.verdict, refused.digest, str(refused))

    def _obtain(self, job: _Job, position: int, digest: str, data: bytes) -> None:
        """Map from the cache, or have it compiled; then its verdict comes later."""
        if digest not in self.compilations:
            if self._is_cached(digest):
                job.has_new = True
                return
            try:
                self.compilations[digest] = start_compilation(self._engine, self._cache, digest, data, self._walls)
            except OSError as error:
                raise ModuleRefused(
                    "refused", digest, f"no compiler could be started: {os.strerror(error.errno or 0)}"
                ) from None
            file = job.request.modules[position]
            self._untold[digest] = time.monotonic() + TELL_SECONDS, file.path or file.reference
        job.waiting[position] = digest

    def _is_cached(self, digest: str) -> bool:
        """True if the code of a module was kept, and is mapped now. Code that may not be mapped is dropped."""
        try:
            return self._map(digest)
        except (NotTrusted, NotMapped, ContractBroken) as error:
            said = "a compiled module that was kept is not mapped; the module is compiled anew"
            write_line("warning", said, digest=digest, reason=str(error))
            self._cache.forget(digest)
            return False

    def _map(self, digest: str) -> bool:
        """Map the cached code of a module; False without it. Raises NotTrusted, NotMapped,
        ContractBroken."""
        code = self._cache.read(digest)
        if code is None:
            return False
        self.modules[digest] = map_module(self._engine, digest, code)
        return True


def examine(file: ModuleFile) -> tuple[str, bytes]:
    """(digest, bytes) of a module that may be compiled. Raises ModuleRefused."""
    unknown = [name for name in file.required_imports if name not in INTERFACES]
    if unknown:
        raise ModuleRefused("refused", None, f"required_imports names {unknown[0]}, which is no interface")
    path, wanted = _locate(file)
    data = _read(path)
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    if digest != wanted:
        raise ModuleRefused("mismatch", digest, f"the module is {digest}, not {wanted}")
    try:
        excess = refused_import(component_imports(data), file.required_imports)
    except NotAComponent as error:
        raise ModuleRefused("refused", digest, str(error)) from None
    if excess is not None:
        raise ModuleRefused("refused", digest, f"imports {excess}, which required_imports does not list")
    return digest, data


def _locate(file: ModuleFile) -> tuple[Path, str]:
    """(where a module lies, the digest it must have)."""
    if match := _BUILTIN.fullmatch(file.reference):
        digests = _builtin_digests()
        name = match.group(1)
        if name not in digests:
            raise ModuleRefused("missing", None, f"there is no built-in provider {name}")
        return BUILTINS / f"{name}.wasm", digests[name]
    if file.is_held:
        for name, digest in _builtin_digests().items():
            if digest == file.reference:
                return BUILTINS / f"{name}.wasm", digest
    if _DIGEST.fullmatch(file.reference) and file.path is not None:
        return Path(file.path), file.reference
    raise ModuleRefused("refused", None, "the reference is neither builtin:NAME nor sha256:<hex> with a path")


def _builtin_digests() -> dict[str, str]:
    try:
        text = (BUILTINS / "SHA256SUMS").read_text("ascii")
    except (OSError, UnicodeDecodeError):
        return {}
    return {name: f"sha256:{digest}" for digest, name in _SUMS_LINE.findall(text)}


def _read(path: Path) -> bytes:
    try:
        # Non-blocking: a FIFO that lies there must not stop the template.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ModuleRefused("missing", None, "the module is no regular file")
            data = file.read(MAX_MODULE_BYTES + 1)
    except OSError as error:
        raise ModuleRefused("missing", None, f"the module can't be read: {os.strerror(error.errno or 0)}") from None
    if len(data) > MAX_MODULE_BYTES:
        raise ModuleRefused("refused", None, f"the module has more than {MAX_MODULE_BYTES} bytes")
    return data
