"""Fixtures for the policy engine's tests."""

from collections.abc import AsyncIterator

import pytest

from tests.support.played_policy import PlayedHouse, playing


@pytest.fixture
async def house() -> AsyncIterator[PlayedHouse]:
    async with playing() as running:
        yield running
