"""What this front asks the notary, each as a typed question.

Their meaning stands with the messages, which ipc/messages/notary_frames.py lists.
Every method raises NotaryUnavailable, NotaryRefused and ClockError; each caller decides what it answers then.
"""

from dataclasses import dataclass
from typing import Any

from frontend.notary.client import NotaryClient
from frontend.notary.waiting import Course, Waiter
from ipc import messages as m
from ipc.events import AuditEvent
from ipc.evidence import Bundle, Consistency, EventQuery, IntentDetail, IntentView, ShownCheckpoint
from ipc.store import ApprovalRecord, Budget

_ENDS: Any = m.Closed | m.Refusal | m.NoSuchWorker | m.Unbegun


@dataclass(frozen=True, slots=True)
class Notary:
    """Questions to the notary."""

    client: NotaryClient

    # ------------------------------------------------------------------ calls

    async def enter(self, proof: m.Proof) -> m.Entered:
        """Use a proof once."""
        return await self.client.ask(m.Enter(proof), m.Entered)

    def begin_call(self, asked: m.Open | m.Assign, course: Course) -> Waiter:
        """Proof, epoch, budget, intent and grant of a call, whose worker then runs it: see `end_of_call`."""
        return self.client.begin(asked, course)

    async def end_of_call(self, begun: Waiter) -> m.Closed | m.Refusal | m.NoSuchWorker | m.Unbegun:
        """Receipt and event of a call, or why it was not begun."""
        return await self.client.answer_of(begun, _ENDS)

    def begin_withdrawal(self, asked: m.Withdraw) -> Waiter:
        """A call is given up, and the notary told so before this returns: see `end_of_withdrawal`."""
        begun = self.client.begin(asked)
        self.client.flush()
        return begun

    async def end_of_withdrawal(self, begun: Waiter) -> m.Withdrawn:
        """What had become of the call by then."""
        return await self.client.answer_of(begun, m.Withdrawn)

    async def refuse(self, asked: m.Refuse) -> m.Refused:
        """The event of a refusal, and its proof."""
        return await self.client.ask(asked, m.Refused)

    async def hold(self, asked: m.Hold) -> m.Held | m.Refusal:
        """Proof, budget, hold and event of a call that waits for a person."""
        return await self.client.ask(asked, m.Held | m.Refusal)  # type: ignore[arg-type]  # mypy takes no union

    # ------------------------------------------------------------------ leases, acts

    async def issue(self, asked: m.Issue) -> m.Issued | m.TooManySessions:
        """A lease."""
        return await self.client.ask(asked, m.Issued | m.TooManySessions)  # type: ignore[arg-type]  # a union

    async def note(self, event: AuditEvent) -> None:
        """An event."""
        return await self.client.ask(m.Note(event), type(None))

    async def revoke(self, asked: m.Revoke) -> m.Revoked:
        """The next epoch."""
        return await self.client.ask(asked, m.Revoked)

    async def revoke_session(self, asked: m.RevokeSession) -> m.RevokedSession | None:
        """The end of one session."""
        return await self.client.ask(asked, m.RevokedSession | None)  # type: ignore[arg-type]  # a union

    async def void_holds(self, approval_ids: tuple[str, ...]) -> None:
        """These wait no more: the right to their calls was revoked."""
        return await self.client.ask(m.VoidHolds(approval_ids), type(None))

    async def sessions(self, asked: m.ListSessions) -> m.ListedSessions:
        """Sessions that live."""
        return await self.client.ask(asked, m.ListedSessions)

    async def move(self, asked: m.MoveHold) -> ApprovalRecord | None:
        """Compare and swap an approval's state."""
        return await self.client.ask(asked, ApprovalRecord | None)  # type: ignore[arg-type]  # mypy takes no union

    # ------------------------------------------------------------------ looking

    async def budget(self, session_id: str) -> Budget:
        """What a session has left."""
        return await self.client.ask(m.ReadBudget(session_id), Budget)

    async def epoch(self) -> int:
        """The epoch in force."""
        return await self.client.ask(m.ReadEpoch(), int)

    async def approval(self, approval_id: str) -> ApprovalRecord | None:
        """One approval."""
        return await self.client.ask(m.GetHold(approval_id), ApprovalRecord | None)  # type: ignore[arg-type]  # a union

    async def approval_state(self, approval_id: str) -> ApprovalRecord | None:
        """One approval without its body."""
        asked = m.GetHold(approval_id, with_body=False)
        return await self.client.ask(asked, ApprovalRecord | None)  # type: ignore[arg-type]  # a union

    async def approvals(self, asked: m.ListHolds) -> m.ListedHolds:
        """The newest, and how many there are."""
        return await self.client.ask(asked, m.ListedHolds)

    async def due(self, limit: int) -> list[ApprovalRecord]:
        """Pending ones that wait no more."""
        return await self.client.ask(m.DueHolds(limit), list[ApprovalRecord])

    async def orphaned(self, live_holders: tuple[str, ...]) -> list[ApprovalRecord]:
        """Claimed ones whose holder is none of these: as many as one answer takes."""
        return await self.client.ask(m.OrphanedHolds(live_holders), list[ApprovalRecord])

    async def unsettled(self, at_work: tuple[str, ...]) -> list[ApprovalRecord]:
        """Claimed by this front and none of these: as many as one answer takes."""
        return await self.client.ask(m.UnsettledHolds(at_work), list[ApprovalRecord])

    async def store_status(self) -> m.StoreStatus:
        """How the store is."""
        return await self.client.ask(m.ReadStore(), m.StoreStatus)

    async def ledger_status(self) -> m.LedgerStatus:
        """How the ledger is."""
        return await self.client.ask(m.ReadLedger(), m.LedgerStatus)

    async def receipt(self, receipt_id: str, asker: str = "") -> m.ShownReceipt | None:
        """A receipt as it was signed, and what its signature is worth."""
        return await self.client.ask(m.ShowReceipt(receipt_id, asker), m.ShownReceipt | None)  # type: ignore[arg-type]  # a union

    async def trace_of_approval(self, approval_id: str) -> m.ApprovalTrace:
        """What the ledger holds of an approved call."""
        return await self.client.ask(m.TraceOfApproval(approval_id), m.ApprovalTrace)

    async def unresolved(self, limit: int, after: str | None = None, asker: str = "") -> list[IntentView]:
        """Intents without a receipt, the oldest first; those that were written after this one."""
        return await self.client.ask(m.ListUnresolved(limit, after, asker), list[IntentView])

    async def intent(self, intent_id: str) -> IntentDetail | None:
        """All that is known of one without a receipt."""
        return await self.client.ask(m.ShowIntent(intent_id), IntentDetail | None)  # type: ignore[arg-type]  # a union

    async def verify_intent(self, asked: m.VerifyIntent) -> m.Looked | m.Unverifiable | m.NoSuchWorker:
        """What a worker sees that looks again."""
        return await self.client.ask(asked, m.Looked | m.Unverifiable | m.NoSuchWorker)  # type: ignore[arg-type]  # a union

    async def resolve_intent(self, asked: m.ResolveIntent) -> m.ResolvedIntent | None:
        """What an operator says came of an intent."""
        return await self.client.ask(asked, m.ResolvedIntent | None)  # type: ignore[arg-type]  # a union

    async def events(self, query: EventQuery, asker: str = "") -> list[bytes]:
        """Events as stored, the newest first."""
        return await self.client.ask(m.QueryEvents(query, asker), list[bytes])

    # ------------------------------------------------------------------ proofs

    async def checkpoint(self) -> ShownCheckpoint:
        """A signed checkpoint of all that is durable."""
        return await self.client.ask(m.ReadCheckpoint(), ShownCheckpoint)

    async def bundle(self, asked: m.Prove) -> Bundle | None:
        """The evidence of what is named."""
        return await self.client.ask(asked, Bundle | None)  # type: ignore[arg-type]  # a union

    async def consistency(self, old_size: int) -> Consistency | None:
        """Proof that the log continues the one of this size."""
        return await self.client.ask(m.ProveConsistency(old_size), Consistency | None)  # type: ignore[arg-type]  # a union

    # ------------------------------------------------------------------ witnesses

    async def next_checkpoint(self, witness: str, old_size: int | None = None) -> m.ToCosign | None:
        """What a witness, which knows so much, is to cosign next."""
        return await self.client.ask(m.NextCheckpoint(witness, old_size), m.ToCosign | None)  # type: ignore[arg-type]  # a union

    async def cosign(self, witness: str, size: int, lines: str) -> str | None:
        """Keep a witness's cosignature; why it does not hold."""
        return await self.client.ask(m.Cosign(witness, size, lines), str | None)  # type: ignore[arg-type]  # a union

    async def note_trouble(self, witness: str, problem: str) -> None:
        """Why a witness has not cosigned."""
        return await self.client.ask(m.NoteTrouble(witness, problem), type(None))

    # ------------------------------------------------------------------ deliveries

    async def deliveries(self, asked: m.ListDeliveries) -> m.ListedDeliveries:
        """What waits and what was given up."""
        return await self.client.ask(asked, m.ListedDeliveries)

    async def redeliver(self, asked: m.RedeliverDeliveries) -> m.Requeued:
        """Have what was given up wait again."""
        return await self.client.ask(asked, m.Requeued)

    # ------------------------------------------------------------------ keys

    async def check_keys(self) -> list[str]:
        """Problems of the key files as they lie."""
        return await self.client.ask(m.CheckKeys(), list[str])

    async def follow_keys(self) -> list[str]:
        """Put the key files in force; problems."""
        return await self.client.ask(m.FollowKeys(), list[str])
