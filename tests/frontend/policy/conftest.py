"""Fixtures for the policy engine's tests."""

from collections.abc import AsyncIterator

import pytest

from frontend.deadlines import PolicyDeadlines
from tests.support.patience import PATIENT
from tests.support.played_policy import PlayedEngine, playing


@pytest.fixture
def deadlines(request: pytest.FixtureRequest) -> PolicyDeadlines:
    """Those of a gateway where the test has a clock of its own, and patient ones where it is the machine's."""
    return PolicyDeadlines() if "autojump_clock" in request.fixturenames else PATIENT.policy


@pytest.fixture
async def played(deadlines: PolicyDeadlines) -> AsyncIterator[PlayedEngine]:
    async with playing(deadlines) as running:
        yield running
