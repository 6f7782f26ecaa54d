"""Quorums over two fronts of one host, held against a model."""

import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from hypothesis.stateful import run_state_machine_as_test

from tests.support.front_core import Core, front_core
from tests.support.properties import FEW
from tests.support.quorum_model import GROUPS, QuorumHistories, operators_of
from tests.support.town import town


@asynccontextmanager
async def two_fronts(folder: Path) -> AsyncIterator[Sequence[Core]]:
    operators = operators_of(GROUPS)
    async with (
        front_core(folder, operators=operators) as one,
        front_core(folder, front_id="front-2-b", operators=operators) as other,
    ):
        yield one, other


def test_any_history_of_approvals_at_two_fronts_is_the_models() -> None:
    with tempfile.TemporaryDirectory() as folder, town(partial(two_fronts, Path(folder))) as running_town:

        class InTown(QuorumHistories):
            town = running_town

        run_state_machine_as_test(InTown, settings=FEW)
