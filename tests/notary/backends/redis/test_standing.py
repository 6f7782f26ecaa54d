"""A standing approval that the notaries of two hosts share in a real Redis."""

from pathlib import Path
from typing import Any

import msgspec
import trio

from ipc.settings import EvidenceSettings, OperatorSettings, StoreSettings
from tests.support.front_core import HOLD, Core, front_core, signed
from tests.support.logs import capture_logs
from tests.support.proofs import Key
from tests.support.redis_server import RedisServer
from tests.support.standing_approvals import signed_standing
from tests.support.worker_desk import until

ADA, API = Key(), f"key-ada-{'0' * 32}"
OPERATORS = (OperatorSettings("ada", dpop_jkt=ADA.jkt, api_key=API),)
STANDING = "/v1/admin/standing"
CALLS, MOST = 12, 7


async def ask(core: Core, method: str, path: str, body: object = b"") -> tuple[int, Any]:
    answer = await core.ask(method, path, body, signed(ADA, method, path, API, now=core.clock.right))
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


async def test_two_hosts_run_no_more_calls_than_it_is_good_for_and_one_ends_it_at_both(
    tmp_path: Path, store: StoreSettings
) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    async with (
        front_core(tmp_path / "one", store=store, operators=OPERATORS) as one,
        front_core(tmp_path / "other", store=store, operators=OPERATORS) as other,
    ):
        one.policy.answer = other.policy.answer = HOLD
        standing_id = await add(one, max_calls=MOST)
        seen: list[int] = []

        async def call(core: Core, number: int) -> None:
            seen.append(await called(core, number))

        async with trio.open_nursery() as nursery:
            for number in range(CALLS):
                nursery.start_soon(call, one if number % 2 else other, number)
        assert (seen.count(200), seen.count(202)) == (MOST, CALLS - MOST)
        for core in (one, other):
            (listed,) = (await ask(core, "GET", STANDING))[1]["standing"]
            assert (listed["standing_id"], listed["calls"]) == (standing_id, MOST)
        used = [
            event["standing_id"] for core in (one, other) for event in await core.events(event_type="ActionCall")
            if "standing_id" in event
        ]  # fmt: skip
        assert used == [standing_id] * MOST
        second = await add(other)
        assert await called(one, 100) == 200
        assert (await ask(one, "DELETE", f"{STANDING}/{second}"))[0] == 200
        assert await called(other, 101) == 202


async def test_hosts_with_a_ledger_each_run_calls_by_their_own_and_revoke_those_of_all(
    tmp_path: Path, store: StoreSettings
) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    async with (
        front_core(tmp_path / "one", store=store, operators=OPERATORS) as one,
        front_core(
            tmp_path / "other", store=store, operators=OPERATORS, evidence=EvidenceSettings(origin="gate.test/2")
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
    async with front_core(tmp_path, store=store, operators=OPERATORS) as core:
        core.policy.answer = HOLD
        standing_id = await add(core, max_calls=1, until=int(core.clock.right) + 7200)
        assert await called(core, 1) == 200
        (count,) = [name for name in redis_server.names(prefix) if standing_id in name]
        assert redis_server.ask("PTTL", count) == -1
        core.clock.ahead += 7200

        def is_gone() -> bool:
            return not any("standing" in name for name in redis_server.names(prefix))

        await until(is_gone)
