"""A child that leaves closes its channel: whichever direction notices it first, the child gets time to exit."""

import signal
import socket
import subprocess
from collections.abc import Iterator

import pytest
import trio

from ipc.messages.control import FrontToSupervisor, StartFront
from ipc.messages.message import Message
from ipc.process.logs import LogWriter, write_lines
from ipc.protocols.front import FRONT_TO_SUPERVISOR
from ipc.settings import Settings
from supervisor.children.children import Child
from supervisor.children.control import Control
from tests.support.supervised import told


@pytest.mark.parametrize("has_unsent", [False, True], ids=["nothing to send", "a message on the way"])
async def test_a_channel_that_the_child_closed_is_known_as_closed(has_unsent: bool) -> None:
    """Otherwise `serve_until_end` kills the child at once, and its exit code is lost."""
    control: Control[Message] = Control(FrontToSupervisor, FRONT_TO_SUPERVISOR, socket.socketpair())
    control.child_end.close()
    if has_unsent:
        control.post(StartFront("front-1-a", (), Settings(state_dir="/nowhere", public_base_url="http://h"), ()))
    await control.serve(lambda _message: None)
    assert control.was_closed
    control.close()


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that does not leave by itself."""
    with subprocess.Popen(["/bin/sleep", "600"]) as process:
        yield process
        process.kill()


async def test_a_child_that_closed_its_channel_and_stays_is_killed(
    sleeper: "subprocess.Popen[bytes]", capfd: pytest.CaptureFixture[str]
) -> None:
    write_lines(LogWriter())
    control: Control[Message] = Control(FrontToSupervisor, FRONT_TO_SUPERVISOR, socket.socketpair())
    child = Child("front 1", sleeper)

    async def reap() -> None:
        child.note_end(await trio.to_thread.run_sync(sleeper.wait))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(reap)
        control.child_end.close()
        await control.serve_until_end(child, lambda _message: None, closing_seconds=0.1)
    assert child.status == -signal.SIGKILL
    (line,) = told(capfd.readouterr().err, "front 1 is killed: it closed its channel and did not leave")
    assert line["pid"] == child.pid
