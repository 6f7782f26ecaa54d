"""A deliverer that names unknown endpoints: fronts get the name of each known endpoint once, and no other name."""

import os
import signal
from typing import cast

import trio

from ipc.messages.control import DelivererStarted
from ipc.messages.message import Message
from ipc.settings import Settings, WebhookSettings
from supervisor.children.children import Children
from supervisor.keepers.deliverers import DelivererKeeper
from supervisor.keepers.fronts import FrontLife
from supervisor.keepers.notaries import NotaryKeeper
from supervisor.programs import Programs
from supervisor.state import SupervisorState

HOOKS = tuple(
    WebhookSettings(name, "https://hooks.test/", secret="a secret of some length") for name in ("hook", "other")
)
TALKS = ("tests.supervisor.programs.talkative_deliverer",)


class PlayedFront:
    """Hears which endpoints are gone."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, ...]] = []
        self.has_heard_all = trio.Event()

    def post(self, message: Message, fds: tuple[int, ...] = ()) -> None:
        assert isinstance(message, DelivererStarted)
        assert not fds
        self.heard.append(message.gone)
        if "other" in message.gone:
            self.has_heard_all.set()


async def test_fronts_hear_once_of_each_endpoint_that_is_configured_and_of_no_other(nursery: trio.Nursery) -> None:
    settings = Settings(state_dir="/nowhere", public_base_url="http://h", webhooks=HOOKS)
    state, front = SupervisorState(settings, Programs(deliverer=TALKS), Children(os.environ)), PlayedFront()
    keeper = DelivererKeeper(state, NotaryKeeper(state, list), lambda: [cast(FrontLife, front)])

    async def reap(task_status: trio.TaskStatus[None]) -> None:
        with trio.open_signal_receiver(signal.SIGCHLD) as ended:
            task_status.started()
            async for _ in ended:
                state.children.reap()

    await nursery.start(reap)
    nursery.start_soon(keeper.run)
    await front.has_heard_all.wait()
    assert front.heard == [(), ("hook",), ("hook", "other")]
    await keeper.stop()
    nursery.cancel_scope.cancel()
