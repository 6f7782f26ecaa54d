"""Fronts in the test's own process, as most tests of the front have them, and who receives what they send."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.front_core import Core, front_core
from tests.support.policed import policed
from tests.support.webhook_receiver import Receiver, webhook_receiver

MAKERS = {"front": front_core, "policed": policed}


def pytest_configure(config: pytest.Config) -> None:
    for name, maker in MAKERS.items():
        marker = f"{name}(*manifests, **settings): what the fixture `core` gives to {maker.__name__}"
        config.addinivalue_line("markers", marker)


@pytest.fixture
async def core(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Core]:
    """A front whose state is in `tmp_path`, made by the nearest mark `front` or `policed`, or without any settings."""
    mark = next((mark for mark in request.node.iter_markers() if mark.name in MAKERS), pytest.mark.front().mark)
    async with MAKERS[mark.name](tmp_path, *mark.args, **mark.kwargs) as front:
        yield front


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """One for each test: an attempt that was given up may reach its receiver later."""
    with webhook_receiver() as one:
        yield one
