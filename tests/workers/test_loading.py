"""The log of the loader while a module takes long to compile."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.approvals import TTL_SECONDS
from ipc.messages.modules import LoadModules, ModuleFile
from ipc.walls.given import Given
from tests.support.compiling import kept
from tests.support.worker_plans import builtin, digest_of
from workers import loading
from workers.cache import Cache
from workers.compile import Compilation
from workers.forking import Forked
from workers.loading import Loader
from workers.runtime.modules import make_engine


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A compiler that does not end: it is this process."""
    handles = os.pidfd_open(os.getpid()), os.open(os.devnull, os.O_RDONLY)

    def started(_engine: object, _cache: object, digest: str, _data: bytes, _walls: Given) -> Compilation:
        return Compilation(digest, Forked(os.getpid(), handles[0]), handles[1])

    monkeypatch.setattr(loading, "start_compilation", started)
    yield
    for handle in handles:
        os.close(handle)


def lines(capfd: pytest.CaptureFixture[str]) -> list[tuple[str, str]]:
    read = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    return [(line["module"], line["digest"]) for line in read if line["message"].startswith("a module is still being")]


@pytest.mark.usefixtures("slow")
def test_a_module_that_compiles_for_long_is_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "slow.wasm").write_bytes(builtin("echo"))
    digest = digest_of(builtin("echo"))
    loader = Loader(make_engine(), Cache(str(tmp_path / "cache")), Given())
    loader.submit(LoadModules("r", (ModuleFile(digest, str(tmp_path / "slow.wasm"), ()),)))
    before = time.monotonic()
    assert list(loader.advance()) == []
    due = loader.next_deadline()
    assert due - before < loading.TELL_SECONDS + 60
    assert lines(capfd) == []
    monkeypatch.setattr(time, "monotonic", lambda: due)
    assert list(loader.advance()) == []
    assert lines(capfd) == [(str(tmp_path / "slow.wasm"), digest)]
    assert list(loader.advance()) == []
    assert lines(capfd) == []


def test_compiled_modules_are_swept_later_than_a_hold_waits_and_never_those_that_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, engine = Cache(str(tmp_path / "cache")), make_engine()
    echo, removed = builtin("echo"), "sha256:" + "0" * 64
    kept(engine, cache, echo)
    cache.store(removed, b"of an action that is gone")
    for digest in (digest_of(echo), removed):
        os.utime(cache.path(digest), (0, 0))
    loader, begun = Loader(engine, cache, Given()), time.monotonic()
    loader.submit(LoadModules("r", (ModuleFile("builtin:echo", None, ()),)))
    (loaded,) = loader.advance()
    assert [verdict.verdict for verdict in loaded.verdicts] == ["ok"]
    due = loader.next_deadline()
    assert due - begun > TTL_SECONDS + 60
    assert os.path.exists(cache.path(removed))
    monkeypatch.setattr(time, "monotonic", lambda: due)
    assert list(loader.advance()) == []
    assert (os.path.exists(cache.path(removed)), os.path.exists(cache.path(digest_of(echo)))) == (False, True)
    assert loader.next_deadline() == due + loading.SWEEP_EVERY_SECONDS
