"""Calls made again under their keys at two hosts that share a real Redis, held against a model."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from hypothesis.stateful import run_state_machine_as_test

from ipc.settings import StoreSettings
from tests.support.front_core import Core, front_core
from tests.support.keyed_model import ACTIONS, KeyedHistories
from tests.support.properties import FEW
from tests.support.town import town


@asynccontextmanager
async def two_hosts(folder: Path, store: StoreSettings) -> AsyncIterator[Sequence[Core]]:
    for name in ("one", "other"):
        (folder / name).mkdir()
    async with (
        front_core(folder / "one", *ACTIONS, store=store) as one,
        front_core(folder / "other", *ACTIONS, store=store) as other,
    ):
        yield one, other


def test_any_history_of_repeated_calls_at_two_hosts_is_the_tables(tmp_path: Path, store: StoreSettings) -> None:
    with town(partial(two_hosts, tmp_path, store)) as running_town:

        class AtTwoHosts(KeyedHistories):
            town = running_town
            deciding = 2

        run_state_machine_as_test(AtTwoHosts, settings=FEW)
