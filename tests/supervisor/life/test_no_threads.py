"""A supervisor to which the system gives no thread: it goes on without what a thread would have read or written."""

from typing import Any, cast

import pytest
import trio

from ipc.messages.manifests import ManifestsLoaded
from ipc.settings import Settings
from supervisor.children.children import Children
from supervisor.keepers.fronts import FrontLife
from supervisor.life.manifest_history import HistoryRecorder
from supervisor.programs import Programs
from supervisor.settings.config import Loaded
from supervisor.settings.rereading import RereadFile, Rereading
from supervisor.state import SupervisorState

SETTINGS = Settings(state_dir="/nowhere/s", public_base_url="http://h")


@pytest.fixture(autouse=True)
def no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(trio.to_thread, "run_sync", refuse)


def read() -> Loaded:
    raise AssertionError("there is no thread to read in")


async def test_a_reload_without_a_thread_changes_nothing_and_says_why() -> None:
    look = await Rereading(SETTINGS, read).look(SETTINGS)
    assert look == RereadFile(("the configuration file can't be read: can't start new thread",))


async def test_a_load_that_can_not_be_recorded_without_a_thread_ends_no_recorder(nursery: trio.Nursery) -> None:
    state = SupervisorState(SETTINGS, Programs(), Children({}))
    recorder = HistoryRecorder(state)
    nursery.start_soon(recorder.run)
    for _ in range(2):
        recorder.note(cast(FrontLife, None), ManifestsLoaded(()))
        await state.condition.until(lambda: recorder.is_idle)
    nursery.cancel_scope.cancel()
