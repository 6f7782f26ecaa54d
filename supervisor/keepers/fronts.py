"""Fronts: one keeper per front process, one Front per life of it.

Listening sockets stay here, so that a front that ends loses the calls it was serving and no others: new connections
are taken by another front, or wait in the backlog for its successor. So does the memory that all fronts share. A
front's policy process and its reader live and end with it.
"""

import secrets
import socket
from collections.abc import Callable, Mapping

import trio

from ipc.backends.webhooks import without_addresses
from ipc.limits import COMPILE_SECONDS
from ipc.messages import control
from ipc.messages.control import CrashLoops, Drain, Draining, FrontStatus, FrontToSupervisor, StartFront
from ipc.messages.message import Message
from ipc.process.exits import Exit
from ipc.protocols.front import FRONT_TO_SUPERVISOR
from supervisor.children.backoff import Backoff, reason_of
from supervisor.children.children import Child, not_started
from supervisor.children.control import Control
from supervisor.children.fd_passing import copies, handing_over
from supervisor.keepers.front_memory import FrontMemory
from supervisor.keepers.policies import PolicyKeeper
from supervisor.keepers.readers import ReaderKeeper
from supervisor.logs import log
from supervisor.sockets import Listener
from supervisor.state import SupervisorState
from supervisor.systemd.watchdog import SignOfLife

READY_SECONDS = COMPILE_SECONDS + 60.0
"""From start to FrontReady. Long, because modules that were never seen are compiled first."""
LOOK_SECONDS = 1.0
QUIET_SHARE = 0.4
"""A front that has been silent for this part of the time after which it is killed does not count as serving."""

Answers = Mapping[type[Message], Callable[["FrontLife", Message], None]]


class FrontLife:
    """One life of a front. `front_id` is new with each life: claims that an earlier one held are orphaned."""

    def __init__(self, state: SupervisorState, number: int, *, is_successor: bool) -> None:
        """Raises OSError if no descriptor is free for its channel."""
        self.number = number
        self.name = f"front {number}"
        self.front_id = f"front-{number}-{secrets.token_hex(4)}"
        self.policy = PolicyKeeper(state, number)
        self.reader = ReaderKeeper(state)
        self.child: Child | None = None
        self.is_ready = False
        self.is_drained = False
        self.in_flight = 0
        self.status: FrontStatus | None = None
        """The last status that it reported."""
        self.pulse = SignOfLife()
        self._unheard_seconds = 0.0
        self._has_answered_drain = False
        self.followed = ""
        """The last reload whose settings it said to have followed, having taken no part in it."""
        self._state = state
        self._is_successor = is_successor
        self._spare = state.spares.take()
        pair = socket.socketpair() if self._spare is None else self._spare.pair
        self._control: Control[Message] = Control(FrontToSupervisor, FRONT_TO_SUPERVISOR, pair)

    def post(self, message: Message, fds: tuple[int, ...] = ()) -> None:
        """Queue a message; see Control.post."""
        self._control.post(message, fds)

    @property
    def queued(self) -> int:
        """Messages that it has not taken."""
        return self._control.queued

    @property
    def answers(self) -> bool:
        """It serves, and has said so lately."""
        return self.is_ready and self._unheard_seconds < self._state.programs.front_silent_seconds * QUIET_SHARE

    def note_status(self, status: FrontStatus) -> None:
        """Keep the status that the front reports once a second."""
        self.status = status
        self.pulse.expect()
        self._note_in_flight(status.in_flight)

    def note_draining(self, draining: Draining) -> None:
        """The front takes no new work from now on; before, none in flight did not mean that none comes."""
        self._has_answered_drain = True
        self._note_in_flight(draining.in_flight)

    def _note_in_flight(self, in_flight: int) -> None:
        self.in_flight = in_flight
        self.is_drained = in_flight == 0 and self._has_answered_drain and self._state.lifecycle.is_draining
        self._state.condition.notify_all()

    async def live(
        self, listeners: tuple[Listener, ...], memory: FrontMemory, live_fronts: tuple[str, ...], answers: Answers,
        attach: Callable[["FrontLife"], None],
    ) -> int:  # fmt: skip
        """Run a front from start to end; return its exit status. On every return the process is gone.

        `attach` ties the front to the notary, or raises OSError.
        """
        self.child = self._started()
        self._state.standings.started(self.name, self.child.pid)
        with handing_over(self.child):
            handed = copies(*(one.sock.fileno() for one in listeners), memory.descriptor)
            self.post(self._start(listeners, live_fronts), handed)
            attach(self)
        if self._state.standings.crash_loops:
            self.post(CrashLoops(self._state.standings.crash_loops))
        if self._state.lifecycle.is_draining:
            self.post(Drain(is_leaving=self._state.is_leaving))
        async with trio.open_nursery() as nursery:
            if self._state.settings.opa_url is None:
                nursery.start_soon(self.policy.run, self.post)
            nursery.start_soon(self.reader.run, self.post)
            nursery.start_soon(self._state.expect_up, self.child, lambda: self.is_ready, READY_SECONDS)
            nursery.start_soon(self._end_if_silent, self.child, self._state.programs.front_silent_seconds)
            await self._control.serve_until_end(self.child, lambda message: answers[type(message)](self, message))
            nursery.cancel_scope.cancel()
        return await self.child.wait()

    async def _end_if_silent(self, child: Child, seconds: float) -> None:
        """Kill a front that hangs, for any reason: stopped, in a system call, in an endless loop. Looks are
        counted, not time: while the supervisor itself stood still, no word could be read."""
        last = self.status
        while self._unheard_seconds < seconds:
            await trio.sleep(LOOK_SECONDS)
            is_unheard = self.status is last and last is not None
            self._unheard_seconds = self._unheard_seconds + LOOK_SECONDS if is_unheard else 0.0
            last = self.status
        log.error(f"{self.name} is killed: it said nothing for {seconds:g} s", pid=child.pid, in_flight=self.in_flight)
        child.kill()

    def _started(self) -> Child:
        """Take the spare process, or start a new one."""
        if self._spare is None:
            return self._state.children.spawn(self.name, self._state.programs.front, self._control.child_end)
        self._spare.child.name = self.name
        return self._spare.child

    def _start(self, listeners: tuple[Listener, ...], live_fronts: tuple[str, ...]) -> StartFront:
        handed = tuple(control.HandedListener(one.kind, one.address, one.stays_open) for one in listeners)
        live = (*live_fronts, self.front_id)
        return StartFront(
            self.front_id, live, without_addresses(self._state.settings), handed, number=self.number,
            is_successor=self._is_successor,
        )  # fmt: skip


class FrontKeeper:
    """Holds one front alive. `current` is its present life."""

    def __init__(
        self, state: SupervisorState, number: int, listeners: tuple[Listener, ...], memory: FrontMemory
    ) -> None:
        self.current: FrontLife | None = None
        self._state = state
        self._number = number
        self._listeners = listeners
        self._memory = memory

    async def run(
        self, answers: Answers, other_ids: Callable[[], tuple[str, ...]], attach: Callable[[FrontLife], None],
        on_end: Callable[[FrontLife], None],
    ) -> None:  # fmt: skip
        """Live after life, until the gateway leaves. `other_ids` are the fronts that live besides this one; `attach`
        ties each life to the notary."""
        backoff, has_served = Backoff(), False
        while not self._state.is_leaving:
            try:
                front = self.current = FrontLife(self._state, self._number, is_successor=has_served)
            except OSError as error:
                child = not_started(f"front {self._number}", error)
                self._state.standings.started(child.name)
                if not await self._state.after_end("front", child, backoff, had_served=False):
                    return
                continue
            await front.live(self._listeners, self._memory, other_ids(), answers, attach)
            self._memory.clear(self._number)
            self.current, has_served = None, has_served or front.is_ready
            on_end(front)
            self._state.condition.notify_all()
            assert front.child is not None
            assert front.child.status is not None
            if self._state.is_leaving:
                if front.child.status != Exit.OK:
                    log.error(f"{front.name} ended", reason=reason_of(front.child.status), in_flight=front.in_flight)
                    self._state.has_lost_front = True
                    self._state.has_cut_calls |= front.child.status == Exit.KILLED
                return
            if not await self._state.after_end("front", front.child, backoff, had_served=front.is_ready):
                return
