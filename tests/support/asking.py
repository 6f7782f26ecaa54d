"""A front's end of the notary's channel that blocks: for tests that ask a real notary one thing after the other."""

import itertools
import socket
from pathlib import Path
from typing import Any

import msgspec

from ipc import messages as m
from ipc.blocking import BlockingChannel
from ipc.evidence import Delivery, IntentView
from ipc.framing import encode_frame
from ipc.limits import MAX_NOTARY_FRAME
from ipc.sessions import NOTARY_TO_FRONT
from ipc.store import ApprovalRecord, Budget

ANSWER_SECONDS = 60.0
"""No answer for so long is a failure of the test."""

ANSWERS: dict[type[m.Operation], Any] = {
    m.Enter: m.Entered, m.Open: m.Opened | m.Refusal, m.Close: m.Closed, m.Abandon: None, m.Refuse: m.Refused,
    m.Hold: m.Held | m.Refusal, m.Issue: m.Issued, m.Note: None, m.Revoke: m.Revoked,
    m.MoveHold: ApprovalRecord | None, m.ReadBudget: Budget, m.ReadEpoch: int, m.GetHold: ApprovalRecord | None,
    m.ListHolds: list[ApprovalRecord], m.DueHolds: list[ApprovalRecord], m.OrphanedHolds: list[ApprovalRecord],
    m.UnsettledHolds: list[ApprovalRecord],
    m.ReadStore: m.StoreStatus, m.ReadLedger: m.LedgerStatus, m.ShowReceipt: m.ShownReceipt | None,
    m.TraceOfApproval: m.ApprovalTrace, m.ListUnresolved: list[IntentView],
    m.QueryEvents: list[bytes], m.ClaimDeliveries: list[Delivery], m.SettleDelivery: None, m.GiveUpDeliveries: int,
    m.NextDelivery: int | None, m.CheckKeys: list[str], m.FollowKeys: list[str],
}  # fmt: skip


class Told(Exception):
    """The notary has no answer, and says why."""

    def __init__(self, answered: m.Answered) -> None:
        super().__init__(f"{answered.problem} ({answered.part}): {answered.cause}")
        self.problem, self.part, self.cause = answered.problem, answered.part, answered.cause


class Asker:
    """One front. `in_force` is the last word of the notary, `woken` every wake-up that has come."""

    def __init__(self, sock: socket.socket, path: Path) -> None:
        sock.settimeout(ANSWER_SECONDS)
        self.in_force: list[m.InForce] = []
        self.woken: list[tuple[str, ...]] = []
        self.path = path
        """The notary's database, for looks beside it."""
        self._sock = sock
        self._channel: BlockingChannel[Any] = BlockingChannel(
            sock, m.NotaryToFront, table=NOTARY_TO_FRONT, start="new", cap_in=MAX_NOTARY_FRAME,
            cap_out=MAX_NOTARY_FRAME,
        )  # fmt: skip
        self._numbers = itertools.count(1)
        self._kinds: dict[int, type[m.Operation]] = {}
        self._arrived: dict[int, m.Answered] = {}

    def send(self, *operations: Any) -> list[int]:
        """Ask all of these in one piece; their numbers."""
        if not operations:
            return []
        numbers = [next(self._numbers) for _ in operations]
        self.resend(dict(zip(numbers, operations, strict=True)))
        return numbers

    def resend(self, asked: dict[int, Any]) -> None:
        """Ask under these numbers, which may have been used before, in one piece."""
        self._numbers = itertools.count(max(asked) + 1)
        self._kinds |= {number: type(operation) for number, operation in asked.items()}
        self.send_raw(b"".join(encode_frame(m.Asked(*one), MAX_NOTARY_FRAME) for one in asked.items()))

    def send_raw(self, data: bytes) -> None:
        """Any bytes."""
        self._sock.sendall(data)

    def heard(self, number: int) -> m.Answered:
        """The answer to a number as it came. Raises ChannelClosed when the notary has closed this channel."""
        while number not in self._arrived:
            match self._channel.receive():
                case m.InForce() as told:
                    self.in_force.append(told)
                case m.Woken(endpoints):
                    self.woken.append(endpoints)
                case answered:
                    assert answered.number not in self._arrived, "answered twice"
                    self._arrived[answered.number] = answered
        return self._arrived.pop(number)

    def answer(self, number: int) -> Any:
        """The answer to a number. Raises Told."""
        answered = self.heard(number)
        if answered.problem is not None:
            raise Told(answered)
        return msgspec.msgpack.decode(answered.value, type=ANSWERS[self._kinds[number]])

    def ask(self, operation: Any) -> Any:
        """Ask one thing and wait for its answer. Raises Told."""
        return self.answer(self.send(operation)[0])

    def close(self) -> None:
        """Leave."""
        self._channel.close()
