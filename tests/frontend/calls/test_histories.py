"""Histories over two fronts of one host, held against models: calls made again under their keys, and quorums."""

import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from tests.support.front_core import Core, front_core
from tests.support.keyed_model import ACTIONS, KeyedHistories
from tests.support.properties import FEW
from tests.support.quorum_model import GROUPS, QuorumHistories, operators_of
from tests.support.town import town


@asynccontextmanager
async def two_fronts(folder: Path, *actions: dict[str, Any], **settings: Any) -> AsyncIterator[Sequence[Core]]:
    async with (
        front_core(folder, *actions, **settings) as one,
        front_core(folder, *actions, front_id="front-2-b", **settings) as other,
    ):
        yield one, other


@pytest.mark.parametrize(
    ("histories", "actions", "settings"),
    [(KeyedHistories, ACTIONS, {}), (QuorumHistories, (), {"operators": operators_of(GROUPS)})],
    ids=["repeated calls", "quorums"],
)
def test_any_history_at_two_fronts_is_the_models(
    histories: type[RuleBasedStateMachine], actions: tuple[dict[str, Any], ...], settings: dict[str, Any]
) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        town(partial(two_fronts, Path(folder), *actions, **settings)) as running_town,
    ):
        in_town: Any = type("InTown", (histories,), {"town": running_town})
        run_state_machine_as_test(in_town, settings=FEW)
