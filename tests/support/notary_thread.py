"""A whole notary in a thread of the test's own process: real database, real keys, real channels, the test's clock.

Several fronts of one test can share this notary, and a test can ask it directly; tests that need a process (kills,
descriptors) start one.
"""

import itertools
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from frontend.errors import GateError
from ipc.channel.blocking import BlockingChannel
from ipc.limits import MAX_CONTROL_FRAME
from ipc.messages.control import FollowSettings, SettingsFollowed
from ipc.messages.event_reading import AttachEventReader
from ipc.messages.message import Message
from ipc.messages.notarising import (
    AttachDeliverer,
    AttachFront,
    FrontDetached,
    NotaryReady,
    NotaryToSupervisor,
    StartNotary,
    StopNotary,
    SupervisorToNotary,
    TieWorker,
    WorkerBroke,
    WorkerEnded,
)
from ipc.operations.calls import Closed, Open
from ipc.process.clock import ClockWrong, TimeSource, iso
from ipc.process.exits import Exit
from ipc.protocols.notary import NOTARY_TO_SUPERVISOR, SUPERVISOR_TO_NOTARY
from ipc.reloadable import Reloadable
from ipc.settings import Settings
from notary.backends.sqlite import FileLimits
from notary.opening import open_state
from notary.operations.closing import Lost, Reported, lose_call, report_call
from notary.operations.opening import open_call
from notary.servers.table import NOT_LOOKED_UP, Places
from notary.service import Control, Service
from notary.state import NotaryLimits
from notary.units.transaction import Transaction
from tests.support.readable import readable

END_SECONDS = 60.0
SMALL_WAL = FileLimits(reserved_pages=0)
"""Hundreds of short tests need not write a megabyte for each of their files before they begin."""
LIMITS = NotaryLimits(database=SMALL_WAL)
"""Those of a notary of tests; all else as it is by default."""


class NotaryThread:
    """One notary. `attach` gives a front its channel."""

    def __init__(
        self,
        settings: Settings,
        clock: TimeSource | None = None,
        *,
        remembers: bool = True,
        limits: NotaryLimits = LIMITS,
        is_accepted: bool = False,
        places: Places = NOT_LOOKED_UP,
    ) -> None:
        ours, theirs = socket.socketpair()
        ours.settimeout(END_SECONDS)
        self._control: BlockingChannel[NotaryReady | FrontDetached | WorkerBroke] = BlockingChannel(
            ours, NotaryToSupervisor, table=NOTARY_TO_SUPERVISOR, cap_in=MAX_CONTROL_FRAME,
            cap_out=MAX_CONTROL_FRAME,
        )  # fmt: skip
        notarys: Control = BlockingChannel(
            theirs, SupervisorToNotary, table=SUPERVISOR_TO_NOTARY, cap_in=MAX_CONTROL_FRAME,
            cap_out=MAX_CONTROL_FRAME,
        )  # fmt: skip
        self._control.send(StartNotary(settings))
        notarys.receive()
        notarys.send(NotaryReady())
        state, remembered = open_state(settings, clock, limits=limits, is_accepted=is_accepted, places=places)
        self.state = state
        self.numbers = itertools.count(1)
        """For workers: no two of one notary have the same name."""
        self._notarys = notarys
        self._service = Service(state, notarys, remembered if remembers else {})
        self._guards: list[Callable[[str], None]] = []
        self._opening: Callable[[], object] = lambda: None
        self._service._units._handlers |= {Reported: self._report, Lost: self._lose, Open: self._open}
        self.code: Exit | None = None
        """With what it has ended."""
        self._thread = threading.Thread(target=self._run, name="notary", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with ExitStack() as ends:  # one that fails as it ends leaves nothing open, as no process does
            for close in (self._notarys.close, self.state.database.close, self._service.close):
                ends.callback(close)
            self.code = self._service.run()

    def attach(self, front_id: str) -> socket.socket:
        """A front's end of a new channel."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._control.send(AttachFront(front_id), (theirs.fileno(),))
        return ours

    def attach_deliverer(self, deliverer_id: str = "deliverer-a") -> socket.socket:
        """The deliverer's end of a new channel."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._control.send(AttachDeliverer(deliverer_id), (theirs.fileno(),))
        return ours

    def attach_exporter(self, exporter_id: str = "exporter-a") -> socket.socket:
        """The exporter's end of a new channel."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._control.send(AttachEventReader(exporter_id), (theirs.fileno(),))
        return ours

    def tell(self, message: Message, fds: tuple[int, ...] = ()) -> None:
        """Say something as its supervisor, with descriptors: TieWorker, WorkerEnded."""
        self._control.send(message, fds)

    def hears_now(self) -> list[NotaryReady | FrontDetached | WorkerBroke]:
        """The messages from the notary to its supervisor so far."""
        heard = []
        while True:
            while (message := self._control.pending()) is not None:
                heard.append(message)
            if not readable(self._control, 0):
                return heard
            self._control.fill()

    def guard_closes(self, guard: Callable[[str], None]) -> None:
        """Call this, too, in the notary's thread, before a call is closed, with the id of its intent: what it raises
        keeps the notary from closing it. It is called again when the notary tries again."""
        self._guards.append(guard)

    def guard_opens(self, guard: Callable[[], object]) -> None:
        """Call this, in the notary's thread, before a call is opened."""
        self._opening = guard

    def _open(self, unit: Transaction, asked: Open) -> Any:
        self._opening()
        return open_call(unit, asked)

    def _report(self, unit: Transaction, asked: Reported) -> Closed:
        for guard in self._guards:
            guard(asked.result.call_id)
        return report_call(unit, asked)

    def _lose(self, unit: Transaction, asked: Lost) -> Closed:
        for guard in self._guards:
            guard(asked.intent_id)
        return lose_call(unit, asked)

    def hears(self) -> NotaryReady | FrontDetached | WorkerBroke:
        """Wait for the notary's next message to its supervisor."""
        return self._control.receive()

    def follow(self, reloadable: Reloadable) -> None:
        """Have it decide by other operators from now on."""
        self._control.send(FollowSettings("reload-1", reloadable))
        while not isinstance(self.hears(), SettingsFollowed):
            pass

    def stop(self) -> None:
        """Have it finish, and wait for that."""
        self._control.send(StopNotary())
        self._ended()

    def leave(self) -> None:
        """As a supervisor that ends does, and wait for the notary's end."""
        self._control.close()
        self._ended()

    def _ended(self) -> None:
        self._thread.join(END_SECONDS)
        assert not self._thread.is_alive(), "the notary did not stop"
        self._control.close()


class _NotarysClock:
    """The test's clock, with the notary's own error."""

    def __init__(self, clock: TimeSource) -> None:
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
_lost: set[Path] = set()


def lost_store(folder: Path) -> None:
    """The store of this state folder has lost what it knew, as one can that does not stand in the ledger's file: a
    notary's start refuses that file."""
    _lost.add(folder)


@contextmanager
def shared_notary(settings: Settings, clock: TimeSource) -> Iterator[NotaryThread]:
    """The notary of this state folder: one for all fronts of a test that are at work together."""
    folder = Path(settings.state_dir)
    if folder not in _shared:
        # A test's front may come again under its name, which no other front does: what it asks is not asked again.
        notary = NotaryThread(settings, _NotarysClock(clock), remembers=False, is_accepted=folder in _lost)
        _shared[folder] = (notary, [])
    notary, users = _shared[folder]
    users.append(None)
    try:
        yield notary
    finally:
        users.pop()
        if not users:
            del _shared[folder]
            notary.stop()


class TiesOf:
    """A notary as the desk of one front speaks to it about its workers: see tests/support/worker_desk.py."""

    def __init__(self, notary: NotaryThread) -> None:
        self._notary = notary
        self.numbers = notary.numbers

    def tie(self, worker_id: str, front_id: str, notarys: socket.socket, workers: socket.socket) -> None:
        """A worker's channel: both ends, which stay the caller's."""
        self._notary.tell(TieWorker(worker_id, front_id), (notarys.fileno(), workers.fileno()))

    def end(self, worker_id: str, reason: str) -> None:
        """A worker's process has ended."""
        self._notary.tell(WorkerEnded(worker_id, reason))

    def broken(self) -> list[WorkerBroke]:
        """Workers that the notary can't believe, as told since the last call of `hears_now`."""
        return [heard for heard in self._notary.hears_now() if isinstance(heard, WorkerBroke)]
