"""The end of a notary that is told to stop."""

from types import SimpleNamespace
from typing import Any, cast

import trio
import trio.testing

from ipc.settings import Settings
from supervisor.children.children import Child, Children
from supervisor.keepers.notaries import NotaryKeeper
from supervisor.programs import Programs
from supervisor.state import SupervisorState


async def test_a_notary_whose_life_is_over_as_it_is_told_to_stop_ends_in_no_error() -> None:
    settings = Settings(state_dir="/nowhere/s", public_base_url="http://h")
    keeper = NotaryKeeper(SupervisorState(settings, Programs(), Children({})), list)
    child, posted = Child("notary", None), list[Any]()
    keeper._child, keeper._control = child, cast(Any, SimpleNamespace(post=posted.append))
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(keeper.stop)
            await trio.testing.wait_all_tasks_blocked()
            child.note_end(0)
            keeper._child = keeper._control = None
    assert len(posted) == 1
