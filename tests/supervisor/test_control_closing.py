"""A child that leaves closes its channel: whoever notices it first, it has its moment to exit."""

import pytest

from ipc import messages as m
from ipc.sessions import FRONT_TO_SUPERVISOR
from supervisor.control import Control


@pytest.mark.parametrize("has_unsent", [False, True], ids=["nothing to send", "a message on the way"])
async def test_a_channel_that_the_child_closed_is_known_as_closed(has_unsent: bool) -> None:
    """Otherwise `serve_until_end` kills the child at once, and its exit code is lost."""
    control: Control[m.Message] = Control(m.FrontToSupervisor, FRONT_TO_SUPERVISOR, "starting")
    control.child_end.close()
    if has_unsent:
        control.post(m.Drain())
    await control.serve(lambda _message: None)
    assert control.was_closed
    control.close()
