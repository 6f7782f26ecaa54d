"""A front reports its status once a second, also where the system gives it no thread to weigh itself in."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio
import trio.testing

from frontend.front import WEIGH_SECONDS, Front


async def test_a_front_that_can_not_weigh_itself_goes_on_to_report_what_it_knew(
    monkeypatch: pytest.MonkeyPatch, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    told: list[int | None] = []
    weights: list[int | Exception] = [7, RuntimeError("can't start new thread"), 8]

    async def weigh(*_: Any, **__: Any) -> int:
        weight = weights.pop(0)
        if isinstance(weight, Exception):
            raise weight
        return weight

    monkeypatch.setattr(trio.to_thread, "run_sync", weigh)
    services = SimpleNamespace(
        metrics=SimpleNamespace(dropped_lines=id), control=SimpleNamespace(post_status=id), front_status=dict,
        presence=SimpleNamespace(is_alone=False, tell=told.append), processes=SimpleNamespace(proportional=id),
        present=lambda proportional: proportional,
    )  # fmt: skip
    front = Front(cast(Any, services), cast(Any, None), nursery)
    with trio.move_on_after(2.5 * WEIGH_SECONDS):
        await front.report()
    assert sorted(set(told), key=told.index) == [7, 8]
    nursery.cancel_scope.cancel()
