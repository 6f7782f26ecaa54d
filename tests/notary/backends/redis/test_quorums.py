"""Quorums of holds, keys of calls and standing approvals that the notaries of two hosts share in a real Redis."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from hypothesis.stateful import run_state_machine_as_test

from ipc.configuration.quorum import QuorumRule
from ipc.settings import ApprovalSettings, EvidenceSettings, OperatorSettings, StoreSettings
from tests.support.front_core import HOLD, Core, front_core, signed
from tests.support.held_calls import held, state_of
from tests.support.keyed_model import ACTIONS, KeyedHistories
from tests.support.logs import capture_logs
from tests.support.proofs import Key
from tests.support.properties import FEW
from tests.support.quorum_model import GROUPS, QuorumHistories, operators_of
from tests.support.redis_server import RedisServer
from tests.support.standing_approvals import signed_standing
from tests.support.town import town
from tests.support.worker_desk import until

pytestmark = pytest.mark.usefixtures("patient_backends")
ROUNDS = 5
KEYS = {name: Key() for name in ("ada", "bob", "eve")}
API = {name: f"key-{name}-{'0' * 32}" for name in KEYS}
OPERATORS = tuple(OperatorSettings(name, dpop_jkt=key.jkt, api_key=API[name]) for name, key in KEYS.items())
OF_TWO = ApprovalSettings(quorum=(QuorumRule(action_id="echo", count=2),))


async def approve(core: Core, name: str, approval_id: str) -> int:
    path = f"/v1/approvals/{approval_id}/approve"
    proof = signed(KEYS[name], "POST", path, API[name], now=core.clock.right)
    return (await core.ask("POST", path, b"", proof)).status


@asynccontextmanager
async def two_hosts(folder: Path, store: StoreSettings, *actions: Any, **given: Any) -> AsyncIterator[Sequence[Core]]:
    for name in ("one", "other"):
        (folder / name).mkdir()
    async with (
        front_core(folder / "one", *actions, store=store, **given) as one,
        front_core(folder / "other", *actions, store=store, **given) as other,
    ):
        yield one, other


async def test_of_last_approvals_at_two_hosts_at_once_one_executes_the_call(
    tmp_path: Path, store: StoreSettings
) -> None:
    async with two_hosts(tmp_path, store, operators=OPERATORS, approvals=OF_TWO) as (one, other):
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


def test_any_history_of_approvals_at_two_hosts_is_the_models(tmp_path: Path, store: StoreSettings) -> None:
    with town(partial(two_hosts, tmp_path, store, operators=operators_of(GROUPS))) as running_town:

        class AtTwoHosts(QuorumHistories):
            town = running_town

        run_state_machine_as_test(AtTwoHosts, settings=FEW)


def test_any_history_of_repeated_calls_at_two_hosts_is_the_tables(tmp_path: Path, store: StoreSettings) -> None:
    with town(partial(two_hosts, tmp_path, store, *ACTIONS)) as running_town:

        class KeyedAtTwoHosts(KeyedHistories):
            town = running_town
            deciding = 2

        run_state_machine_as_test(KeyedAtTwoHosts, settings=FEW)


ADA, ADA_API = Key(), f"key-ada-{'0' * 32}"
ADA_ALONE = (OperatorSettings("ada", dpop_jkt=ADA.jkt, api_key=ADA_API),)
STANDING = "/v1/admin/standing"


async def ask(core: Core, method: str, path: str, body: object = b"") -> tuple[int, Any]:
    answer = await core.ask(method, path, body, signed(ADA, method, path, ADA_API, now=core.clock.right))
    return answer.status, msgspec.json.decode(answer.body)


async def add(core: Core, **terms: Any) -> str:
    known: dict[str, Any] = {"aud": ["http://gate.test", "gate.test"], "action_id": "echo", "operator": "ada"}
    text = signed_standing(ADA, principal="dev:anonymous", now=core.clock.right, **known | terms)
    status, added = await ask(core, "POST", STANDING, {"signature": text})
    assert status == 200, added
    return str(added["standing_id"])


async def called(core: Core, number: int) -> int:
    status, _ = await (await core.agent()).call("echo", {"n": number})
    return status


async def test_hosts_with_a_ledger_each_run_calls_by_their_own_and_revoke_those_of_all(
    tmp_path: Path, store: StoreSettings
) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    async with (
        front_core(tmp_path / "one", store=store, operators=ADA_ALONE) as one,
        front_core(
            tmp_path / "other", store=store, operators=ADA_ALONE, evidence=EvidenceSettings(origin="gate.test/2")
        ) as other,
    ):
        one.policy.answer = other.policy.answer = HOLD
        first, second = await add(one), await add(other, aud=["http://gate.test", "gate.test/2"], max_calls=1)
        with capture_logs() as logs:
            assert [await called(other, number) for number in (1, 2)] == [200, 202]
            assert await called(one, 3) == 200
        used = [event.get("standing_id") for event in await other.events(event_type="ActionCall")]
        assert used.count(second) == 1
        assert first not in used
        for core in (one, other):
            listed = (await ask(core, "GET", STANDING))[1]
            assert listed["origin"] == ("gate.test" if core is one else "gate.test/2")
            origins = {item["standing_id"]: item["origin"] for item in listed["standing"]}
            assert origins == {first: "gate.test", second: "gate.test/2"}
        assert [one["event"] for one in logs if "standing" in str(one["event"])] == []
        assert (await ask(other, "DELETE", f"{STANDING}/{first}"))[0] == 200
        assert await called(one, 4) == 202


async def test_a_count_lives_as_long_as_its_standing_approval_whatever_the_clock(
    tmp_path: Path, store: StoreSettings, redis_server: RedisServer, prefix: str
) -> None:
    async with front_core(tmp_path, store=store, operators=ADA_ALONE) as core:
        core.policy.answer = HOLD
        standing_id = await add(core, max_calls=1, until=int(core.clock.right) + 7200)
        assert await called(core, 1) == 200
        (count,) = [name for name in redis_server.names(prefix) if standing_id in name]
        assert redis_server.ask("PTTL", count) == -1
        core.clock.ahead += 7200

        def is_gone() -> bool:
            return not any("standing" in name for name in redis_server.names(prefix))

        await until(is_gone)
