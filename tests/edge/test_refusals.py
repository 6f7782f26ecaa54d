"""The log lines of an edge that refuses, by trio's clock."""

import trio
from trio.testing import MockClock

from edge.refusals import QUIET_SECONDS, EdgeRefusals
from tests.support.logs import capture_logs


async def test_the_first_refusal_is_told_at_once_and_the_others_each_minute(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    refusals = EdgeRefusals()
    with capture_logs() as lines:
        nursery.start_soon(refusals.watch)
        refusals.count("connections", "192.0.2.1")
        await trio.sleep(1)
        assert [line["refused"] for line in lines] == [{"connections": 1}]
        for address in ("192.0.2.2", "192.0.2.1", "192.0.2.2"):
            refusals.count("gateway_busy", address)
        refusals.count("made_room", "192.0.2.2")
        await trio.sleep(QUIET_SECONDS + 1)
        told = {name: lines[-1][name] for name in ("event", "refused", "most_of_address", "of_that_address")}
        assert told == {
            "event": "the edge is busy", "refused": {"gateway_busy": 3, "made_room": 1}, "most_of_address": "192.0.2.2",
            "of_that_address": 3,
        }  # fmt: skip
        await trio.sleep(2 * QUIET_SECONDS)
        assert len(lines) == 2
