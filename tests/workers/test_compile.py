"""The folder of compiled modules, and compilers that end badly."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from wasmtime import Engine

from tests.support import worker_wat as wat
from tests.support.worker_plans import builtin, digest_of
from workers.compile import Cache, CacheRefused, Compilation, start_compilation
from workers.forking import Forked
from workers.runtime.modules import NotMapped, make_engine, map_module

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")

ECHO = builtin("echo")
DIGEST = digest_of(ECHO)


@pytest.fixture(scope="module")
def engine() -> Engine:
    return make_engine()


def compiled(engine: Engine, cache: Cache, data: bytes = ECHO) -> str | None:
    compilation = start_compilation(engine, cache, digest_of(data), data)
    deadline = time.monotonic() + 300
    while not compilation.child.has_ended():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return compilation.finish()


def test_a_module_is_compiled_in_a_child_and_mapped(engine: Engine, tmp_path: Path) -> None:
    cache = Cache(str(tmp_path / "cache"))
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700
    assert cache.find(DIGEST) is None
    assert compiled(engine, cache) is None
    path = cache.find(DIGEST)
    assert path is not None
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path / "cache") == [os.path.basename(path)]
    assert map_module(engine, DIGEST, path).interfaces == frozenset()


def test_bytes_that_do_not_compile_are_refused_with_the_reason(engine: Engine, tmp_path: Path) -> None:
    cache = Cache(str(tmp_path / "cache"))
    problem = compiled(engine, cache, ECHO[:-5])
    assert problem
    assert "\n" not in problem[:1]
    assert os.listdir(tmp_path / "cache") == []


def test_a_feature_that_is_off_does_not_compile(engine: Engine, tmp_path: Path) -> None:
    assert compiled(engine, Cache(str(tmp_path / "cache")), wat.provider(wat.SUCCEED, memories=2)) is not None


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
    assert stuck.finish() == "compiling took more than 60 s"


def test_a_compiler_that_dies_is_told_apart() -> None:
    dead = child_that(lambda: None)
    deadline = time.monotonic() + 60
    while not dead.child.has_ended():
        assert time.monotonic() < deadline
    assert dead.finish() == "the compiler ended with 7"


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701, 0o777])
def test_a_folder_that_others_may_enter_is_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(CacheRefused, match="other users"):
        Cache(str(folder))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, 12345)
    with pytest.raises(CacheRefused):
        Cache(str(folder))


def test_a_link_or_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "file").touch()
    for name in ("link", "file"):
        with pytest.raises(CacheRefused):
            Cache(str(tmp_path / name))


def test_a_folder_that_can_not_be_made_is_refused() -> None:
    with pytest.raises(CacheRefused):
        Cache("/proc/no/such/cache")


@pytest.mark.parametrize("spoil", ["link", "writable", "folder", "owner"])
def test_a_compiled_file_that_others_could_have_written_is_not_found(
    engine: Engine, tmp_path: Path, spoil: str
) -> None:
    cache = Cache(str(tmp_path / "cache"))
    assert compiled(engine, cache) is None
    path = Path(cache.path(DIGEST))
    if spoil == "link":
        path.rename(tmp_path / "moved")
        path.symlink_to(tmp_path / "moved")
    elif spoil == "writable":
        path.chmod(0o666)
    elif spoil == "folder":
        (tmp_path / "cache").chmod(0o777)
    elif os.geteuid() == 0:
        os.chown(path, 12345, -1)
    else:
        path.chmod(0o620)
    assert cache.find(DIGEST) is None


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x7fELF" + b"\0" * 500])
def test_what_is_no_compiled_module_does_not_map(engine: Engine, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.cwasm"
    path.write_bytes(content)
    with pytest.raises(NotMapped):
        map_module(engine, DIGEST, str(path))


def test_a_truncated_module_does_not_map(engine: Engine, tmp_path: Path) -> None:
    cache = Cache(str(tmp_path / "cache"))
    assert compiled(engine, cache) is None
    whole = Path(cache.path(DIGEST)).read_bytes()
    for size in (10, len(whole) // 2, len(whole) - 1):
        path = tmp_path / "cut.cwasm"
        path.write_bytes(whole[:size])
        with pytest.raises(NotMapped):
            map_module(engine, DIGEST, str(path))


def test_what_a_compiler_left_behind_is_cleared_at_the_next_start(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    Cache(str(folder))
    (folder / ".tmp-1-2").touch()
    Cache(str(folder))
    assert os.listdir(folder) == []
