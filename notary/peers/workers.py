"""The notary's ends of the channels to workers: the word goes out, and what became of the call comes back.

SECURITY: a worker runs strangers' code and may have been taken over. It can tell how the call ended for which it has
the word, and nothing else; whatever else comes over its channel ends it.
"""

import socket
from collections import deque

import msgspec

from ipc.channel.blocking import ChannelClosed
from ipc.channel.framing import FrameError
from ipc.channel.packets import PACKET_BYTES, PacketChannel
from ipc.channel.protocol_states import ProtocolError
from ipc.expected import FileToLeave
from ipc.limits import MAX_AHEAD, MAX_CONTROL_FRAME, MAX_RESULT_FRAME
from ipc.messages.attesting import LOOKS, LookAtFile, NoPermit, NotaryToWorker, Permit, Seen, Tied, WorkerToNotary
from ipc.messages.calling import Result
from ipc.messages.message import Message
from ipc.protocols.worker import WORKER_TO_NOTARY

MAX_PACKETS = 64
"""Taken of one worker at once, so that none holds up all others."""

_decoder: "msgspec.msgpack.Decoder[NotaryToWorker]" = msgspec.msgpack.Decoder(NotaryToWorker)


class WorkerFault(Exception):
    """The worker broke the protocol, or does not read its messages. The text has no data of the worker."""


class WorkerLink:
    """One worker. Non-blocking."""

    def __init__(self, worker_id: str, front_id: str, sock: socket.socket, others_end: socket.socket) -> None:
        """`others_end` is the worker's, for taking back what it has not taken. Raises WorkerFault."""
        sock.setblocking(False)
        self.worker_id = worker_id
        self.front_id = front_id
        self.calls: dict[str, bool] = {}
        """Intents that it has the word for, in order -> whether it has told how they ended. Until that is durable."""
        self._late: dict[str, Result] = {}
        """Results that it told the previous notary, which gave the word and was killed."""
        self._is_fresh = True
        self._settled: deque[str] = deque(maxlen=2 * MAX_AHEAD)
        """Calls that have ended, newest last."""
        self._unsaid: list[str] = []
        """Those of them that the worker was not told."""
        self._others_end = others_end
        untaken = self._taken_back()
        self._never_taken = {message.call_id for message in untaken if isinstance(message, Permit)}
        """Words of the notary before that it has not taken, and now never will."""
        self.looks: set[int] = set()
        """Numbers of files that it was asked to look at, and has not told of."""
        self._may_repeat_look = True
        """The notary before may have asked it, too."""
        self._repeated: set[str] = set()
        """Calls whose word it may have taken from the notary before: none of them can be called unbegun."""
        self._packets: PacketChannel[WorkerToNotary] = PacketChannel(
            sock, WorkerToNotary, table=WORKER_TO_NOTARY, cap_in=MAX_RESULT_FRAME,
            cap_out=MAX_CONTROL_FRAME,
        )  # fmt: skip
        self.tell(Tied())
        for message in untaken:
            if isinstance(message, NoPermit):
                self.tell(message)

    def fileno(self) -> int:
        """For epoll."""
        return self._packets.fileno()

    def tell(self, message: Message) -> None:
        """Say something to the worker. Raises WorkerFault; one that is gone hears nothing, which its end shows."""
        try:
            self._packets.send(message)
        except BlockingIOError:
            raise WorkerFault("does not take what it is told") from None
        except OSError:
            return

    def results(self, *, to_the_end: bool) -> list[WorkerToNotary]:
        """Messages of the worker; with `to_the_end` all, for a worker that has ended. Raises WorkerFault."""
        results: list[WorkerToNotary] = []
        packets = 0
        try:
            while to_the_end or packets < MAX_PACKETS:
                packets += 1
                if (result := self._packets.receive()) is not None:
                    results.append(result)
                    if len(self.calls) == 1 and not to_the_end:
                        break  # nothing more is due; what comes all the same is found with the next look
        except (BlockingIOError, ChannelClosed, OSError):
            pass  # nothing more for now; the supervisor tells of its end
        except (FrameError, ProtocolError) as error:
            raise WorkerFault(f"broke the protocol: {error}") from None
        return results

    def give_word(
        self, intent_id: str, plan_hash: str, *, is_approved: bool, is_repeated: bool = False
    ) -> Result | None:  # fmt: skip
        """Let it run a call. The result, where it told that to the notary before. Raises WorkerFault.

        `is_repeated`: the notary before may have given the same word.
        """
        self._is_fresh = False
        if is_repeated and intent_id not in self._never_taken:
            self._repeated.add(intent_id)
        self.calls[intent_id] = False
        if (late := self._late.pop(intent_id, None)) is not None:
            self.calls[intent_id] = True
            return late
        settled, self._unsaid = tuple(self._unsaid), []
        self.tell(Permit(intent_id, plan_hash, is_approved, settled))
        return None

    def take_back(self, only: str | None = None) -> list[str]:
        """Calls that it has the word for and has not taken, or `only` this one if it has not: it will not run them.

        Either this end takes a word or the worker does, never both. The rest is said again, in the same order.
        SECURITY: a word that is repeated and not taken tells nothing: the worker may run that call already.
        """
        calls, rest = [], []
        for message in self._taken_back():
            if (
                not isinstance(message, Permit)
                or message.call_id in self._repeated
                or only not in (None, message.call_id)
            ):
                rest.append(message)
            elif self.calls.pop(message.call_id, None) is not None:
                calls.append(message.call_id)
                self._unsaid += message.settled
        for message in rest:
            self.tell(message)
        return calls

    def _taken_back(self) -> list[NotaryToWorker]:
        messages = []
        while True:
            try:
                messages.append(_decoder.decode(self._others_end.recv(PACKET_BYTES + 1, socket.MSG_DONTWAIT)[1:]))
            except OSError:  # nothing left
                return messages

    def late_result(self, intent_id: str) -> Result | None:
        """The result of this call that it told the previous notary."""
        return self._late.pop(intent_id, None)

    def accepts(self, result: Result) -> bool:
        """True for the result of a call that it has the word for. Raises WorkerFault for what no sound worker tells."""
        call_id = result.call_id
        if self.calls.get(call_id) is False:
            self.calls[call_id] = True
            return True
        if self._is_fresh and len(self._late) < MAX_AHEAD and call_id not in self._late:
            self._late[call_id] = result
        elif call_id not in self.calls and call_id not in self._settled:  # else repeated, as the word was
            raise WorkerFault("told of a call that it has no word for")
        return False

    def look(self, number: int, verifier_kind: str, file: FileToLeave, seconds: float) -> None:
        """Have the verifier look at a file again. Raises WorkerFault."""
        self.looks.add(number)
        self.tell(LookAtFile(number, verifier_kind, file, seconds))

    def accepts_look(self, seen: Seen) -> bool:
        """True for what it saw of a file that it was asked to look at. Raises WorkerFault for what no sound worker
        tells."""
        is_asked = seen.number in self.looks
        if not _is_plausible(seen) or not (is_asked or self._may_repeat_look):
            raise WorkerFault("told of a look that cannot be")
        self.looks.discard(seen.number)
        self._may_repeat_look = self._may_repeat_look and is_asked
        return is_asked

    def finish(self, intent_id: str) -> None:
        """A call of it has ended."""
        self._repeated.discard(intent_id)
        if self.calls.pop(intent_id, None) is not None:
            self._settled.append(intent_id)
            self._unsaid.append(intent_id)

    def close(self) -> None:
        """Close both ends, as far as this process has them."""
        self._packets.close()
        self._others_end.close()


def _is_plausible(seen: Seen) -> bool:
    return seen.state in LOOKS and (seen.sha256 is None or len(seen.sha256) == len("sha256:") + 64)
