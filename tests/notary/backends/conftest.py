"""Processes for the tests of the database, and notaries whose way to their Redis loses answers."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ipc.settings import StoreSettings
from tests.notary.backends.losing import SILENT, Losing
from tests.notary.running import Running
from tests.notary.samples import changed
from tests.support.redis_server import RedisServer

ROOT = Path(__file__).resolve().parents[3]

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a role of children.py; whatever still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def start_child(role: str, path: Path, *arguments: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "tests.notary.backends.children", role, str(path), *arguments]
        child = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(child)
        return child

    yield start_child
    for child in started:
        child.kill()
        child.communicate(timeout=120)


def line_of(child: "subprocess.Popen[str]") -> str:
    """The next thing that a child says."""
    assert child.stdout is not None
    return child.stdout.readline().strip()


@pytest.fixture
def way(redis_server: RedisServer) -> Iterator[Losing]:
    """To the Redis of the package that asks."""
    way = Losing(redis_server.port)
    yield way
    way.close()


@pytest.fixture
def distant(
    request: pytest.FixtureRequest, start: Callable[..., Running], store: StoreSettings, way: Losing
) -> Running:
    """A notary that goes this way. It waits as long as it takes, unless an answer does not come in this test."""
    given = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    return start(is_patient=given.get("how") != SILENT, store=changed(store, redis_url=f"redis://127.0.0.1:{way.port}"))
