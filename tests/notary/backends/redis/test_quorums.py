"""The quorum of a hold that the notaries of two hosts share in a real Redis."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import trio
from hypothesis.stateful import run_state_machine_as_test

from ipc.quorum import QuorumRule
from ipc.settings import ApprovalSettings, OperatorSettings, StoreSettings
from tests.support.front_core import Core, front_core, signed
from tests.support.held_calls import held, state_of
from tests.support.proofs import Key
from tests.support.properties import FEW
from tests.support.quorum_model import GROUPS, QuorumHistories, operators_of
from tests.support.town import town

ROUNDS = 5
KEYS = {name: Key() for name in ("ada", "bob", "eve")}
API = {name: f"key-{name}-{'0' * 32}" for name in KEYS}
OPERATORS = tuple(OperatorSettings(name, dpop_jkt=key.jkt, api_key=API[name]) for name, key in KEYS.items())
OF_TWO = ApprovalSettings(quorum=(QuorumRule(action_id="echo", count=2),))


async def approve(core: Core, name: str, approval_id: str) -> int:
    path = f"/v1/approvals/{approval_id}/approve"
    proof = signed(KEYS[name], "POST", path, API[name], now=core.clock.right)
    return (await core.ask("POST", path, b"", proof)).status


async def test_of_last_approvals_at_two_hosts_at_once_one_executes_the_call(
    tmp_path: Path, store: StoreSettings
) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    async with (
        front_core(tmp_path / "one", store=store, operators=OPERATORS, approvals=OF_TWO) as one,
        front_core(tmp_path / "other", store=store, operators=OPERATORS, approvals=OF_TWO) as other,
    ):
        for _ in range(ROUNDS):
            _, approval_id = await held(one)
            assert await approve(other, "ada", approval_id) == 202
            assert await state_of(one, approval_id) == "pending"
            seen: list[int] = []

            async def race(core: Core, name: str, approval_id: str = approval_id, seen: list[int] = seen) -> None:
                seen.append(await approve(core, name, approval_id))

            async with trio.open_nursery() as nursery:
                for core, name in ((one, "bob"), (other, "eve"), (one, "ada")):
                    nursery.start_soon(race, core, name)
            assert seen.count(200) == 1, seen
            assert {*seen} <= {200, 404, 409}
            granted = [
                [given["approved_by"] for given in event["approvals"]]
                for core in (one, other)
                for event in await core.events(event_type="ApprovalGranted")
                if event["approval_id"] == approval_id
            ]
            assert granted in ([["ada", "bob"]], [["ada", "eve"]])


@asynccontextmanager
async def two_hosts(folder: Path, store: StoreSettings) -> AsyncIterator[Sequence[Core]]:
    operators = operators_of(GROUPS)
    for name in ("one", "other"):
        (folder / name).mkdir()
    async with (
        front_core(folder / "one", store=store, operators=operators) as one,
        front_core(folder / "other", store=store, operators=operators) as other,
    ):
        yield one, other


def test_any_history_of_approvals_at_two_hosts_is_the_models(tmp_path: Path, store: StoreSettings) -> None:
    with town(partial(two_hosts, tmp_path, store)) as running_town:

        class AtTwoHosts(QuorumHistories):
            town = running_town

        run_state_machine_as_test(AtTwoHosts, settings=FEW)
