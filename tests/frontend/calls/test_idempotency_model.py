"""Calls made again under their keys over two fronts of one host, held against a model."""

import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from hypothesis.stateful import run_state_machine_as_test

from tests.support.front_core import Core, front_core
from tests.support.keyed_model import ACTIONS, KeyedHistories
from tests.support.properties import FEW
from tests.support.town import town


@asynccontextmanager
async def two_fronts(folder: Path) -> AsyncIterator[Sequence[Core]]:
    async with (
        front_core(folder, *ACTIONS) as one,
        front_core(folder, *ACTIONS, front_id="front-2-b") as other,
    ):
        yield one, other


def test_any_history_of_repeated_calls_at_two_fronts_is_the_tables() -> None:
    with tempfile.TemporaryDirectory() as folder, town(partial(two_fronts, Path(folder))) as running_town:

        class InTown(KeyedHistories):
            town = running_town

        run_state_machine_as_test(InTown, settings=FEW)
