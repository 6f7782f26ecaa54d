"""Calls made again under their keys at two fronts whose ledger is a real PostgreSQL, held against a model."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from hypothesis.stateful import run_state_machine_as_test

from ipc.settings import LedgerSettings, StoreSettings
from tests.support.front_core import Core, front_core
from tests.support.keyed_model import ACTIONS, KeyedHistories
from tests.support.postgres_server import PostgresServer
from tests.support.properties import FEW
from tests.support.town import town


@asynccontextmanager
async def two_fronts(folder: Path, store: StoreSettings, ledger: LedgerSettings) -> AsyncIterator[Sequence[Core]]:
    async with (
        front_core(folder, *ACTIONS, store=store, ledger=ledger) as one,
        front_core(folder, *ACTIONS, front_id="front-2-b", store=store, ledger=ledger) as other,
    ):
        yield one, other


def test_any_history_of_repeated_calls_on_postgresql_is_the_tables(
    tmp_path: Path, store: StoreSettings, postgres_server: PostgresServer, database: str
) -> None:
    with town(partial(two_fronts, tmp_path, store, postgres_server.settings(database))) as running_town:

        class OnPostgres(KeyedHistories):
            town = running_town

        run_state_machine_as_test(OnPostgres, settings=FEW)
