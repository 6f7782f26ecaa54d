"""A whole notary in a thread of the test's own process: real database, real keys, real channels, the test's clock.

What needs a process (kills, descriptors) is tested with one; here several fronts of one test can share a notary, and a
test can ask it directly.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from frontend.errors import GateError
from ipc import messages as m
from ipc.blocking import BlockingChannel
from ipc.clock import Clock, ClockWrong, iso
from ipc.limits import MAX_CONTROL_FRAME
from ipc.sessions import NOTARY_TO_SUPERVISOR, SUPERVISOR_TO_NOTARY
from ipc.settings import Settings
from notary.opening import open_state
from notary.service import Service

END_SECONDS = 30.0


class NotaryThread:
    """One notary. `attach` gives a front its channel."""

    def __init__(self, settings: Settings, clock: Clock | None = None, *, remembers: bool = True) -> None:
        ours, theirs = socket.socketpair()
        ours.settimeout(END_SECONDS)
        self._control: BlockingChannel[m.NotaryReady | m.FrontDetached] = BlockingChannel(
            ours, m.NotaryToSupervisor, table=NOTARY_TO_SUPERVISOR, start="starting", cap_in=MAX_CONTROL_FRAME,
            cap_out=MAX_CONTROL_FRAME,
        )  # fmt: skip
        notarys: BlockingChannel[m.StartNotary | m.AttachFront | m.StopNotary] = BlockingChannel(
            theirs, m.SupervisorToNotary, table=SUPERVISOR_TO_NOTARY, start="new", cap_in=MAX_CONTROL_FRAME,
            cap_out=MAX_CONTROL_FRAME,
        )  # fmt: skip
        self._control.send(m.StartNotary(settings))
        notarys.receive()
        notarys.send(m.NotaryReady())
        state, remembered = open_state(settings, clock)
        self.state = state
        self._notarys = notarys
        self._service = Service(state, notarys, remembered if remembers else {})
        self._thread = threading.Thread(target=self._run, name="notary", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._service.run()
        finally:
            self._service.close()
            self.state.database.close()
            self._notarys.close()

    def attach(self, front_id: str) -> socket.socket:
        """A front's end of a new channel."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._control.send(m.AttachFront(front_id), (theirs.fileno(),))
        return ours

    def hears(self) -> m.NotaryReady | m.FrontDetached:
        """What the notary says to its supervisor next."""
        return self._control.receive()

    def stop(self) -> None:
        """Have it finish, and wait for that."""
        self._control.send(m.StopNotary())
        self._thread.join(END_SECONDS)
        assert not self._thread.is_alive(), "the notary did not stop"
        self._control.close()


class _NotarysClock:
    """The test's clock, with the notary's own error."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> float:
        """Unix seconds."""
        try:
            return self._clock.now()
        except GateError as error:
            raise ClockWrong(str(error)) from None

    def follow(self, floor: float) -> None:
        """The test knows better."""

    def iso(self, t: float | None = None) -> str:
        """As text."""
        return iso(self.now() if t is None else t)


_shared: dict[Path, tuple[NotaryThread, list[None]]] = {}


@contextmanager
def shared_notary(settings: Settings, clock: Clock) -> Iterator[NotaryThread]:
    """The notary of this state folder: one for all fronts of a test that are at work together."""
    folder = Path(settings.state_dir)
    if folder not in _shared:
        # A test's front may come again under its name, which no other front does: what it asks is not asked again.
        _shared[folder] = (NotaryThread(settings, _NotarysClock(clock), remembers=False), [])
    notary, users = _shared[folder]
    users.append(None)
    try:
        yield notary
    finally:
        users.pop()
        if not users:
            del _shared[folder]
            notary.stop()
