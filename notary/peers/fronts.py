"""All fronts of one notary, the deliverer and the exporter: their operations, in turns, and the answers.

Guarantees that a front which floods delays no other, and that a front whose channel ends is known to be gone.
"""

import select
import socket
from collections.abc import Callable, Collection, Iterator

import msgspec

from ipc.channel.framing import FrameError
from ipc.channel.protocol_states import ProtocolError
from ipc.limits import MAX_OPERATIONS
from ipc.messages.delivering import Welcome, Woken
from ipc.messages.message import Message
from ipc.messages.notary_frames import Answered, FrontFacts
from ipc.process.logs import log
from notary.peers.channels import DELIVERER, EXPORTER, FRONT, FrontChannel, FrontGone, PeerKind
from notary.state import NotaryState
from notary.units.tasks import Remembered, Task, TaskOutcome

_NOTHING = msgspec.Raw(msgspec.msgpack.encode(None))


class Fronts:
    """`gone` hears the id of each whose channel has ended; `detached` of those that have no other one."""

    def __init__(
        self, state: NotaryState, poll: "select.epoll", gone: Callable[[str], None], detached: Callable[[str], None]
    ) -> None:
        self._state = state
        self._poll = poll
        self._gone = gone
        self._detached = detached
        self._channels: dict[int, FrontChannel] = {}
        self._turn = 0

    @property
    def have_tasks(self) -> bool:
        """True when `gathered` has something."""
        return any(front.tasks for front in self._channels.values())

    def attach(self, front_id: str, sock: socket.socket, told: FrontFacts) -> None:
        """Serve a front from now on, and tell it this first. A channel of the same front that was there is closed."""
        self._attach(front_id, sock, FRONT, told)

    def attach_deliverer(self, deliverer_id: str, sock: socket.socket, newest_evidence: float) -> None:
        """Serve the deliverer from now on; there is one at a time."""
        self._attach_single(deliverer_id, sock, DELIVERER, newest_evidence)

    def attach_exporter(self, exporter_id: str, sock: socket.socket, newest_evidence: float) -> None:
        """Serve the exporter from now on; there is one at a time."""
        self._attach_single(exporter_id, sock, EXPORTER, newest_evidence)

    def _attach_single(self, peer_id: str, sock: socket.socket, kind: PeerKind, newest_evidence: float) -> None:
        for earlier in [one for one in self._channels.values() if one.kind is kind]:
            self._forget(earlier, "has a successor")
        self._attach(peer_id, sock, kind, Welcome(newest_evidence))

    def _attach(self, front_id: str, sock: socket.socket, kind: PeerKind, first: Message) -> None:
        for earlier in [one for one in self._channels.values() if one.front_id == front_id]:
            self._forget(earlier, "has another one")
        front = FrontChannel(front_id, sock, self._state.limits, kind)
        if front.is_front:
            self._state.fronts.add(front_id)
        self._channels[front.fileno()] = front
        self._poll.register(front.fileno(), front.watched)
        self._send(front, first)

    def close(self) -> None:
        """Close every channel."""
        for front in self._channels.values():
            front.close()
        self._channels.clear()

    def serve(self, descriptor: int, events: int) -> bool:
        """Take what a front has asked, and send it what waits. False for a descriptor of none."""
        front = self._channels.get(descriptor)
        if front is None:
            return False
        try:
            if events & select.EPOLLOUT:
                front.flush()
            if events & ~select.EPOLLOUT and front.wants_reading:
                front.receive()
            self._watch(front)
        except FrontGone as error:
            self._drop(front, str(error))
        except (FrameError, ProtocolError) as error:
            self._drop(front, f"broke the protocol: {error}", is_fault=True)
        return True

    def _watch(self, front: FrontChannel) -> None:
        wanted = (select.EPOLLIN if front.wants_reading else 0) | (select.EPOLLOUT if front.wants_writing else 0)
        if wanted != front.watched:
            front.watched = wanted
            self._poll.modify(front.fileno(), wanted)

    def _drop(self, front: FrontChannel, reason: str, *, is_fault: bool = False) -> None:
        """End the channel of a front. If the front still lives, it refuses every call until it is replaced."""
        self._forget(front, reason, is_fault=is_fault)
        self._detached(front.front_id)

    def _forget(self, front: FrontChannel, reason: str, *, is_fault: bool = False) -> None:
        (log.error if is_fault else log.info)(front.kind.ended_line, front=front.front_id, reason=reason)
        del self._channels[front.fileno()]
        self._state.fronts.discard(front.front_id)
        self._gone(front.front_id)
        self._poll.unregister(front.fileno())
        front.close()

    def gathered(self) -> Iterator[Task]:
        """One unit's tasks: of each front in turn, another one first each time."""
        fronts = list(self._channels.values())
        self._turn += 1
        fronts = fronts[self._turn % len(fronts) :] + fronts[: self._turn % len(fronts)] if fronts else []
        left = MAX_OPERATIONS
        while left and (busy := [front for front in fronts if front.tasks]):
            share = max(1, left // len(busy))
            for front in busy:
                for _ in range(min(share, len(front.tasks), left)):
                    yield front.tasks.popleft()
                    left -= 1

    def say(self, messages: dict[str, list[Message]]) -> None:
        """Tell fronts these, by their ids."""
        for front in list(self._channels.values()):
            if front.front_id in messages:
                self._send(front, *messages[front.front_id])

    def say_to_all(self, message: Message) -> None:
        """Tell every front this."""
        for front in list(self._channels.values()):
            if front.is_front:
                self._send(front, message)

    def wake(self, endpoints: Collection[str]) -> None:
        """Tell the deliverer, if there is one, that deliveries were written for these endpoints."""
        for channel in list(self._channels.values()):
            if endpoints and channel.kind is DELIVERER:
                self._send(channel, Woken(tuple(endpoints)))

    def note_unheard(self, task: Task, outcome: TaskOutcome) -> None:
        """Note an answer that may not reach its front before this notary ends."""
        front = next((one for one in self._channels.values() if one.front_id == task.front_id), None)
        if front is not None:
            front.unheard[task.front_id, task.number] = outcome

    def unheard(self) -> Remembered:
        """Answers that wait for a socket."""
        return {asked: outcome for front in self._channels.values() for asked, outcome in front.unheard.items()}

    def _send(self, front: FrontChannel, *messages: Message) -> None:
        try:
            for message in messages:
                _queue(front, message)
            front.flush()
            self._watch(front)
        except FrontGone as error:
            self._drop(front, str(error))


def _queue(front: FrontChannel, message: Message) -> None:
    """Queue a message. In place of an answer that is too large for a frame, queue an error."""
    try:
        front.queue(message)
    except FrameError as error:
        if not isinstance(message, Answered):
            raise
        log.error("an answer is too large", front=front.front_id, cause=str(error))
        front.queue(Answered(message.number, _NOTHING, "fault", "notary", "the answer is too large"))
