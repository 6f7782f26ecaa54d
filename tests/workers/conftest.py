"""Fixtures for the tests of workers: one engine a session, one template a module."""

from collections.abc import Iterator

import pytest

from ipc.messages.modules import ModuleFile
from tests.support.worker_runner import Bench
from tests.support.worker_template import Template, template

ALL = ("http", "fs", "log", "clock")
BUILTINS = tuple(
    ModuleFile(f"builtin:{name}", None, ALL) for name in ("echo", "text_digest", "file_write", "spin", "http")
)


@pytest.fixture(scope="session")
def bench() -> Bench:
    """An engine of this process."""
    return Bench()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Template]:
    """A template process that has loaded the built-in providers."""
    with template(tmp_path_factory.mktemp("template")) as started:
        loaded = started.load(*BUILTINS)
        assert [verdict.verdict for verdict in loaded.verdicts] == ["ok"] * len(BUILTINS)
        yield started
