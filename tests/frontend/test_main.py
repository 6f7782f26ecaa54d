"""The front between its supervisor's words: reloads that fail in unforeseen ways, and the last event."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
import trio

from frontend.configuration.active import Commit, Configuration, ConfigurationRefused, Fresh
from frontend.front import Front
from frontend.http.server import Server
from frontend.notary.errors import NotaryUnavailable
from ipc.messages.control import FollowSettings, Reload, ReloadDone, SettingsFollowed
from ipc.messages.message import Message
from ipc.operations.leases import ReadEpoch
from ipc.process.exits import Exit
from ipc.reloadable import reloadable_of
from ipc.settings import LimitSettings
from tests.frontend.configuration.test_reloads import Loading
from tests.support.coded import Coded
from tests.support.front_core import Core, front_core, lose_store, refuses

NOTHING = Fresh()
FULL = NotaryUnavailable("the disk is full")


@asynccontextmanager
async def fronted(folder: Path, outcome: Exception | None = None) -> AsyncIterator[tuple[Core, Front, list[Message]]]:
    async with front_core(folder, workers=0) as core, trio.open_nursery() as nursery:
        loading = Loading(core.services.settings, outcome)
        core.services.configuration = core.services.reloads.configuration = cast(Configuration, loading)
        server = Server([], core.dispatch.respond, LimitSettings())
        front = Front(core.services, server, nursery)
        posted: list[Message] = []

        async def take() -> None:
            async for message in core.services.control._unsent_out:
                posted.append(message)

        nursery.start_soon(take)
        await nursery.start(server.run)
        yield core, front, posted
        nursery.cancel_scope.cancel()


async def posts(posted: list[Message]) -> Any:
    with trio.fail_after(60):
        while not (outcomes := [message for message in posted if isinstance(message, ReloadDone)]):  # noqa: ASYNC110
            await trio.sleep(0.002)
    return outcomes[0]


@pytest.mark.parametrize(
    "outcome",
    [None, ConfigurationRefused(["a.yaml:1 no", "b.yaml:2 no"]), RuntimeError("ours"), OSError("disk")],
    ids=str,
)
async def test_a_reload_however_it_ends_is_answered_and_told(tmp_path: Path, outcome: Exception | None) -> None:
    async with fronted(tmp_path, outcome) as (core, front, posted):
        front.reload(Reload("hangup-1", "signal"))
        answer = await posts(posted)
        assert (answer.request_id, answer.error is None) == ("hangup-1", outcome is None)
        (event,) = await core.events(event_type="AdminReload")
        assert (event["decision"], event["principal"]) == ("allow" if outcome is None else "error", "signal")
        assert bool(event.get("reason")) is bool(answer.error) is (outcome is not None)


async def test_a_front_that_is_told_of_settings_while_it_starts_refuses_who_is_no_operator_any_more(
    tmp_path: Path,
) -> None:
    async with front_core(tmp_path, workers=0) as core, trio.open_nursery() as nursery:
        front = Front(core.services, Server([], core.dispatch.respond, LimitSettings()), nursery)
        assert (await core.operate("GET", "/v1/admin/epoch"))[0] == 200
        none = msgspec.structs.replace(reloadable_of(core.services.settings), operators=())
        front.follow_settings(FollowSettings("r-1", none))
        assert core.services.control._unsent_out.receive_nowait() == SettingsFollowed("r-1")
        assert await core.operate("GET", "/v1/admin/epoch") == (401, Coded("invalid_operator_token"))


async def test_the_last_event_is_written_after_the_last_answer(tmp_path: Path) -> None:
    async with fronted(tmp_path) as (core, front, _posted):
        front.stop(60.0)
        with trio.fail_after(60):
            assert await front.until_stopped() is Exit.OK
        assert (await core.events())[0]["event_type"] == "GatewayStopped"


async def test_a_front_that_had_to_cut_calls_says_so_with_its_exit_code(tmp_path: Path) -> None:
    async with fronted(tmp_path) as (core, front, _posted):
        with core.services.admission.enter(), trio.fail_after(60):
            front.stop(0.05)
            assert await front.until_stopped() is Exit.KILLED


async def test_a_front_whose_ledger_fails_still_ends_as_it_was_told(tmp_path: Path) -> None:
    async with fronted(tmp_path) as (core, front, _posted):
        core.client.faults["WriteEvent"] = refuses(FULL)
        front.stop(60.0)
        with trio.fail_after(60):
            assert await front.until_stopped() is Exit.OK


async def test_a_front_that_can_not_write_its_start_does_not_open(tmp_path: Path) -> None:
    async with fronted(tmp_path) as (core, front, _posted):
        core.client.faults["WriteEvent"] = refuses(FULL)
        assert await front.open(()) is Exit.UNAVAILABLE


async def test_a_front_with_a_wrong_clock_opens_refuses_and_begins_once_it_is_right(tmp_path: Path) -> None:
    async with fronted(tmp_path) as (core, front, _posted):
        core.clock.is_broken = True
        assert await front.open(()) is None
        assert (await core.operate("GET", "/v1/admin/status"))[1] == {"error": "clock_error"}
        core.clock.is_broken = False
        with trio.fail_after(60):
            while not await core.events(event_type="GatewayStarted"):  # noqa: ASYNC110
                await trio.sleep(0.01)
        assert len(await core.events(event_type="GatewayStarted")) == 1


async def test_a_front_that_opens_beside_a_lost_store_revokes_before_its_first_request(tmp_path: Path) -> None:
    async with fronted(tmp_path) as (core, _, _):
        assert (await core.operate("POST", "/v1/admin/revoke-all"))[0] == 200
    lose_store(tmp_path)
    async with fronted(tmp_path) as (core, front, _):
        assert await front.open(("front-1-a",)) is None
        assert await core.real.ask(ReadEpoch()) == 2
        assert [event["event_type"] for event in await core.events()][:2] == ["GatewayStarted", "AdminRevokeAll"]


async def test_a_front_that_is_told_to_stop_while_it_opens_just_leaves(tmp_path: Path) -> None:
    class Endless(Loading):
        async def load(self, commit: Commit | None = None, *, within: float = 0, fresh: Fresh = NOTHING) -> None:
            await trio.sleep_forever()

    async with fronted(tmp_path) as (core, front, _posted):
        core.services.configuration = cast(Configuration, Endless(core.services.settings))
        with trio.fail_after(60), front.opening:
            front.stop(60.0)
            await front.open(())
        assert front.opening.cancelled_caught
