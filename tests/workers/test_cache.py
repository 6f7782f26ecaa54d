"""The folder of compiled modules: only what was compiled here is ever mapped."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from wasmtime import Engine

from tests.support.compiling import kept
from tests.support.worker_plans import builtin, digest_of
from workers.cache import KEEP_UNUSED_SECONDS, MOST_UNUSED, Cache, CacheRefused, NotTrusted, code_digest
from workers.runtime.modules import NotMapped, make_engine, map_module

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")

ECHO = builtin("echo")
DIGEST = digest_of(ECHO)


@pytest.fixture(scope="module")
def engine() -> Engine:
    return make_engine()


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


def _replace_by_link(cache: Cache, file: Path) -> None:
    file.rename(file.with_name("moved"))
    file.symlink_to(file.with_name("moved"))


def _replace_by_fifo(cache: Cache, file: Path) -> None:
    file.unlink()
    os.mkfifo(file, 0o600)


def _change_a_byte(cache: Cache, file: Path) -> None:
    code = bytearray(file.read_bytes())
    code[len(code) // 2] ^= 1
    file.write_bytes(code)


def _put_another_module_there(cache: Cache, file: Path) -> None:
    other = builtin("text_digest")
    kept(make_engine(), cache, other)
    file.write_bytes(Path(cache.path(digest_of(other))).read_bytes())


def _note_digest_in_link(cache: Cache, file: Path) -> None:
    _change_a_byte(cache, file)
    noted = Path(cache.digest_path(DIGEST))
    elsewhere = noted.parent.with_name("elsewhere")
    elsewhere.write_text(code_digest(file.read_bytes()))
    noted.unlink()
    noted.symlink_to(elsewhere)


SPOILT: dict[str, tuple[Callable[[Cache, Path], object], str]] = {
    "a link": (_replace_by_link, "can't be read"),
    "a file that others may write": (lambda cache, file: file.chmod(0o620), "no file of the gateway's alone"),
    "a folder that others may enter": (lambda cache, file: file.parent.chmod(0o777), "open to other users"),
    "a fifo": (_replace_by_fifo, "no file of the gateway's alone"),
    "a changed byte": (_change_a_byte, "not what was compiled here"),
    "another module": (_put_another_module_there, "not what was compiled here"),
    "a cut end": (lambda cache, file: os.truncate(file, 1000), "not what was compiled here"),
    "no digest": (lambda cache, file: os.unlink(cache.digest_path(DIGEST)), "no digest of it was noted"),
    "a digest that is a link": (_note_digest_in_link, "no digest of it was noted"),
    "a damaged digest": (
        lambda cache, file: Path(cache.digest_path(DIGEST)).write_text("sha256:"), "is damaged",
    ),
    "digests in a folder that others may enter": (
        lambda cache, file: Path(cache.digest_path(DIGEST)).parent.chmod(0o770), "no digest of it was noted",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("spoil", "reason"), SPOILT.values(), ids=SPOILT)
def test_code_that_was_not_compiled_here_is_not_returned(
    engine: Engine, tmp_path: Path, spoil: Callable[[Cache, Path], object], reason: str
) -> None:
    cache = Cache(str(tmp_path / "cache"))
    kept(engine, cache, ECHO)
    spoil(cache, Path(cache.path(DIGEST)))
    with pytest.raises(NotTrusted, match=reason):
        cache.read(DIGEST)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_code_of_another_user_is_not_handed_out(engine: Engine, tmp_path: Path) -> None:
    cache = Cache(str(tmp_path / "cache"))
    kept(engine, cache, ECHO)
    os.chown(cache.path(DIGEST), 12345, -1)
    with pytest.raises(NotTrusted):
        cache.read(DIGEST)


def test_mapped_code_stays_as_it_was_checked_when_its_file_changes(engine: Engine, tmp_path: Path) -> None:
    cache = Cache(str(tmp_path / "cache"))
    kept(engine, cache, ECHO)
    code = cache.read(DIGEST)
    assert code is not None
    os.truncate(cache.path(DIGEST), 0)
    assert map_module(engine, DIGEST, code).interfaces == frozenset()


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x7fELF" + b"\0" * 500])
def test_bytes_that_are_no_compiled_module_are_not_mapped(engine: Engine, content: bytes) -> None:
    with pytest.raises(NotMapped):
        map_module(engine, DIGEST, content)


def test_a_compilers_leftovers_are_cleared_at_the_next_start(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    Cache(str(folder))
    (folder / ".tmp-1-2").touch()
    Cache(str(folder))
    assert os.listdir(folder) == []


NOW = 2_000_000_000.0


def kept_for(cache: Cache, number: int, age: float) -> str:
    """The digest of a module whose code was last used so many seconds before NOW."""
    digest = f"sha256:{number:064x}"
    cache.store(digest, b"code")
    cache.note(digest, code_digest(b"code"))
    os.utime(cache.path(digest), (NOW - age, NOW - age))
    return digest


def left(cache: Cache, *digests: str) -> list[bool]:
    """Whether the code of each is still there, with its digest or without."""
    assert all(os.path.exists(cache.path(one)) == os.path.exists(cache.digest_path(one)) for one in digests)
    return [os.path.exists(cache.path(one)) for one in digests]


def test_the_code_of_a_module_that_was_not_loaded_for_long_is_removed(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path / "cache"))
    old = kept_for(cache, 1, KEEP_UNUSED_SECONDS + 1)
    loaded = kept_for(cache, 2, KEEP_UNUSED_SECONDS + 1)
    recent = kept_for(cache, 3, KEEP_UNUSED_SECONDS - 1)
    assert cache.sweep([loaded], NOW) == 1
    assert left(cache, old, loaded, recent) == [False, True, True]
    assert cache.sweep([], NOW + 1) == 1, "that of the recent one; the loaded one counts as used now"
    assert left(cache, loaded, recent) == [True, False]


def test_the_last_used_of_many_unloaded_modules_are_kept(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path / "cache"))
    loaded = kept_for(cache, 0, 1000)
    digests = [kept_for(cache, age, age) for age in range(1, MOST_UNUSED + 3)]
    assert cache.sweep([loaded], NOW) == 2
    assert left(cache, loaded, *digests) == [True] * (MOST_UNUSED + 1) + [False] * 2


def test_a_sweep_removes_digests_whose_code_is_gone_and_leaves_foreign_files(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path / "cache"))
    gone, stays = kept_for(cache, 1, 1), kept_for(cache, 2, 1)
    os.unlink(cache.path(gone))
    (tmp_path / "cache" / "README").touch()
    assert cache.sweep([], NOW) == 0
    assert left(cache, gone, stays) == [False, True]
    assert (tmp_path / "cache" / "README").exists()
