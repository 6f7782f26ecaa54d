"""The status that people see while a front reports impossible values."""

from math import inf, nan
from types import SimpleNamespace
from typing import cast

import pytest

from ipc.messages.control import FrontStatus
from ipc.operations.status import ClockTold
from ipc.settings import Settings
from supervisor.children.children import Children
from supervisor.keepers.fronts import FrontLife
from supervisor.life.census import whole
from supervisor.programs import Programs
from supervisor.state import SupervisorState

SETTINGS = Settings(state_dir="/nowhere", public_base_url="http://h")


@pytest.mark.parametrize(
    ("until", "shown"), [(0.0, "1970-01-01T00:00:00.000Z"), (None, None), (inf, None), (nan, None), (1e17, None)]
)
async def test_an_end_of_a_wrong_clock_that_is_no_time_is_left_out(until: float | None, shown: str | None) -> None:
    status = FrontStatus(0, 0, 0, 7, clock_error=ClockTold("it went back", until))
    front = cast(FrontLife, SimpleNamespace(status=status, answers=True, in_flight=0))
    told = whole(SupervisorState(SETTINGS, Programs(), Children({})), [front], 1)
    assert told["clock_error"] == {"cause": "it went back", "until": shown}
    assert not told["is_ready"]
