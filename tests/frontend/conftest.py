"""Fronts in the test's own process, as most tests of the front have them, and who receives what they send."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.front_core import Core, front_core
from tests.support.webhook_receiver import Receiver, webhook_receiver


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "front(*manifests, **settings): what the fixture `core` gives to front_core")


@pytest.fixture
async def core(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Core]:
    """A front whose state is in `tmp_path`, with the actions and settings of the nearest mark `front`."""
    mark = request.node.get_closest_marker("front")
    args, settings = ((), {}) if mark is None else (mark.args, mark.kwargs)
    async with front_core(tmp_path, *args, **settings) as front:
        yield front


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """One for each test: an attempt that was given up may reach its receiver later."""
    with webhook_receiver() as one:
        yield one
