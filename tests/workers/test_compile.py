"""Compilers: what they make, and those that end badly."""

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from wasmtime import Engine

from ipc.walls.limits import apply_limits
from tests.support import worker_wat as wat
from tests.support.compiling import compiled
from tests.support.gateway import wait_for
from tests.support.worker_plans import builtin, digest_of
from workers.cache import Cache, code_digest
from workers.compile import Compilation, NotCompiled
from workers.forking import Forked
from workers.runtime.modules import make_engine, map_module

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")

ECHO = builtin("echo")
DIGEST = digest_of(ECHO)


@pytest.fixture(scope="module")
def engine() -> Engine:
    return make_engine()


def test_a_module_is_compiled_in_a_child_which_says_the_digest_of_what_it_stored(
    engine: Engine, tmp_path: Path
) -> None:
    cache = Cache(str(tmp_path / "cache"))
    assert cache.read(DIGEST) is None
    said = compiled(engine, cache, ECHO)
    stored = Path(cache.path(DIGEST))
    assert stored.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path / "cache") == [stored.name]
    assert said == code_digest(stored.read_bytes())
    cache.note(DIGEST, said)
    code = cache.read(DIGEST)
    assert code == stored.read_bytes()
    assert map_module(engine, DIGEST, code).interfaces == frozenset()


def test_bytes_that_do_not_compile_are_refused_with_the_reason(engine: Engine, tmp_path: Path) -> None:
    cache = Cache(str(tmp_path / "cache"))
    with pytest.raises(NotCompiled, match=r"^[^\n]"):
        compiled(engine, cache, ECHO[:-5])
    assert os.listdir(tmp_path / "cache") == []


def test_a_feature_that_is_off_does_not_compile(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(NotCompiled):
        compiled(engine, Cache(str(tmp_path / "cache")), wat.provider(wat.SUCCEED, memories=2))


def test_a_module_that_is_no_provider_is_refused_by_the_compiler_and_not_kept(engine: Engine, tmp_path: Path) -> None:
    cache = Cache(str(tmp_path / "cache"))
    with pytest.raises(NotCompiled, match="another type"):
        compiled(engine, cache, wat.provider(wat.SUCCEED, result="string"))
    assert os.listdir(tmp_path / "cache") == []


def child_that(act: Callable[[], None]) -> Compilation:
    """A compilation whose child does something else."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        act()
        os._exit(7)
    os.close(writing)
    return Compilation(DIGEST, Forked(pid, os.pidfd_open(pid)), reading)


def test_a_compiler_that_takes_too_long_is_killed() -> None:
    stuck = child_that(lambda: time.sleep(86_400))
    with pytest.raises(NotCompiled, match=r"^compiling took more than 540 s$"):
        stuck.finish()


def test_a_compiler_that_the_kernel_killed_says_what_for() -> None:
    def compute() -> None:
        apply_limits({resource.RLIMIT_CPU: 1})
        while True:
            pass

    busy = child_that(compute)
    wait_for(busy.child.has_ended, "the end of its processor time")
    with pytest.raises(NotCompiled, match=r"^compiling took more than 180 s of processor time, or than the memory"):
        busy.finish()


def test_a_dead_compiler_is_distinguished() -> None:
    dead = child_that(lambda: None)
    deadline = time.monotonic() + 60
    while not dead.child.has_ended():
        assert time.monotonic() < deadline
    with pytest.raises(NotCompiled, match=r"^the compiler ended with 7$"):
        dead.finish()
