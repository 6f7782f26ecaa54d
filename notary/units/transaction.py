"""One unit: the writes of several operations, in one transaction that is durable with one flush.

Memory changes only after the commit. notary/units/runner.py performs units.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from itertools import chain
from typing import Any

import msgspec

from ipc.evidence.events import AuditEvent
from ipc.evidence.kept_values import KeptValues
from ipc.process.clock import iso, parse_iso
from ipc.process.logs import log
from ipc.texts.identifiers import new
from notary.database import DatabaseGone, OpenTransaction
from notary.ledger import gateways, intents, kept_values, page_ring
from notary.ledger.head import Head
from notary.ledger.intents import OpenIntent
from notary.ledger.known_proofs import UnitProofs
from notary.ledger.outbox import Queued
from notary.ledger.page_ring import RingEntry
from notary.ledger.receipts import LedgerReceipt
from notary.ledger.refused import Key, RefusalCount, pruned
from notary.ledger.settling import Unsettled, count_leaves, head_with, move, settle
from notary.ledger.writing import write_deliveries, write_event
from notary.reading import queries
from notary.state import MAX_KNOWN_INTENTS, NotaryState, UnderWay
from notary.store import sessions
from notary.store.contract import Moment, Store

_ANSWERS = "INSERT OR REPLACE INTO last_unit (id, answers) VALUES (1, ?)"
ENDED_SECONDS = 60.0
"""So long after its time limit no news of a call can come: fronts give up sooner, and so do workers."""
_encode = msgspec.msgpack.Encoder().encode


class Transaction:
    """The open transaction and the time of its beginning, for operations."""

    def __init__(self, state: NotaryState, connection: OpenTransaction) -> None:
        if state.unsettled is None:
            state.unsettled = Unsettled(gateways.read_last(state.database, connection))
        self.state = state
        self.connection = connection
        self.store: Store = state.open_store(connection)
        self.part = "ledger"
        """Which part of the database is at work, for errors."""
        self.front_id = ""
        """The front whose operation is performed."""
        self.number = 0
        """The number of that operation."""
        self.kept: KeptValues | None = None
        """Kept values of the operation that is performed, until its intent or its event is written."""
        self.store_us: dict[str, int] = {}
        """Duration of its requests to the store: see Answered."""
        self.woken: set[str] = set()
        """Endpoints that deliveries were written for."""
        self._now: float | None = None
        self._is_shared = state.database.is_shared
        is_known = not self._is_shared or state.database.is_unchanged
        self._head = state.head if is_known else None
        self._leaves = state.leaves if is_known else None
        self._epoch = state.epoch
        self._revoked = state.revoked
        self._unsettled = state.unsettled
        self._entry = RingEntry()
        self._pieces = 0
        self._is_finished = False
        self._has_settled = False
        self._proofs = UnitProofs(state.proofs, connection, self._unsettled.entries, self.store)
        self._opened: dict[str, OpenIntent] = {}
        self._foreseen: dict[str, bool] = {}
        self._closed: set[str] = set()
        self._cut: set[str] = set()
        self._given: Counter[str] = Counter()
        self.has_taken_room = False
        """Something was written that takes room for good: a full disk would have refused it."""
        self.withdrawn: dict[str, str] = {}
        """Intents that this unit opened and ended without a word to any worker -> code of the error."""
        self.refusals: dict[Key, RefusalCount] = {}
        """Those that this unit changes of `state.refusals`."""
        self.continues = True
        """Leases may continue sessions; False where the store has failed for one."""
        self._queued = Queued()
        self._after: list[Callable[[], None]] = []

    @property
    def now(self) -> float:
        """Unix seconds, the same for the whole unit. Raises ClockWrong."""
        if self._now is None:
            self._now = self.state.clock.now()
        return self._now

    @property
    def epoch(self) -> int:
        """The epoch in force."""
        if self._epoch is None:
            self.part = "store"
            self._epoch = self.store.epoch()
        return self._epoch

    @property
    def moment(self) -> Moment:
        """The time and the epoch, which decide whether a hold still waits. Raises ClockWrong."""
        return Moment(self.now, self.epoch)

    def raise_epoch(self, above: int) -> tuple[int, int]:
        """(previous, current)."""
        self.part = "store"
        previous, current = self.store.raise_epoch(above)
        self._epoch = current
        return previous, current

    @property
    def revoked(self) -> dict[str, float]:
        """Sessions that were revoked, as far as it is known here, and when their leases end."""
        if self._revoked is None:
            self.settle()
            self.part = "store"
            self._revoked = self.store.revoked(self.now)
        return self._revoked

    def is_revoked(self, session_id: str) -> bool:
        """True for a session that was revoked; where others may have done it, the unit is in vain otherwise."""
        if session_id in self.revoked:
            return True
        self.store.confirm_session(session_id)
        return False

    def revoke_session(self, session_id: str, principal: str, epoch: int, expires_at: float) -> None:
        """No call of this session is opened from now on."""
        self._revoked = {**sessions.living(self.revoked, self.now), session_id: expires_at}
        self.part = "store"
        self.store.end_session(session_id, principal, epoch, expires_at)

    def renew_store(self, above: int) -> tuple[int, int]:
        """Go on with a store that is not the one the ledger remembers: (previous, current) epoch."""
        self.part = "store"
        previous, current = self.store.renew(above)
        self._epoch = current
        return previous, current

    def apply(self) -> None:
        """Change the store, where that is not a part of the transaction."""
        self.store.apply(self._unsettled.number + 1)

    def append(self, event: AuditEvent, receipt: LedgerReceipt | None = None, **more: Any) -> None:
        """Complete an event with `more`, link it and write it, with its receipt and its deliveries."""
        self.part = "ledger"
        self.has_taken_room = True
        event = msgspec.structs.replace(event, event_id=new("evt_"), timestamp=iso(self.now), **more)
        if self._head is None:
            self._head = _head_of(self.connection, self._unsettled.entries)
        event = self._with_kept(event, self._head.seq + 1)
        self._head = write_event(self._entry, self._head, event, receipt)
        self._say("an event is in the ledger", event, intent_id=event.intent_id, event_type=event.event_type)
        self._entry.event_leaves.append(self._next_leaf())
        self._entry.head = (self._head.seq, self._head.hash)
        self.woken.update(write_deliveries(self.connection, self.state.backlog, event, self._queued))

    def _with_kept(self, event: AuditEvent, seq: int) -> AuditEvent:
        """The event with commitments to the values that the operation brought, whose rows are written with it.

        SECURITY: a proof that was used before proves nothing about who has sent this request.
        """
        if event.kept is not None and event.intent_id is not None:
            self._entry.kept_ends.append((event.intent_id, seq))
        if self.kept is None or event.kept is not None or event.error_code == "replay_detected":
            return event
        return self._keep(event, event.event_id, seq)

    def _keep(self, event: AuditEvent, key: str, seq: int | None) -> AuditEvent:
        kept, self.kept = self.kept, None
        if kept is None:
            return event
        rows = kept_values.rows_of(key, seq, kept)
        self._entry.kept.extend(rows)
        return msgspec.structs.replace(event, kept=kept_values.commitments_of(rows), summary_template=kept.summary)

    @property
    def last_seq(self) -> int:
        """The number of the event that was written last."""
        return 0 if self._head is None else self._head.seq

    def _say(self, message: str, event: AuditEvent, **fields: object) -> None:
        """A line about a call, once the unit is committed."""
        if log.says_details:
            known = {"trace_id": event.trace_id, "action_id": event.action_id, "event_decision": event.decision}
            self.after(lambda: log.debug(message, **known, **fields))

    def _next_leaf(self) -> int:
        """The place in the tree of what was just written."""
        if self._leaves is None:
            # Leaves that this unit has written are counted already.
            self._leaves = count_leaves(self.connection, self._entries())
        self._leaves += 1
        return self._leaves - 1

    def use_proof(self, key: str) -> bool:
        """Record a proof. False when it was used already."""
        began = time.perf_counter_ns()
        is_new = self._use_proof(key)
        self.took("proof", began)
        return is_new

    def took(self, request: str, began: int) -> None:
        """A request to the store has ended that began then (nanoseconds of the performance counter)."""
        self.store_us[request] = (time.perf_counter_ns() - began) // 1000

    def _use_proof(self, key: str) -> bool:
        if self._proofs.is_used(key, self.now) or not self.store.use_proof(key, self.now):
            return False
        row = self._proofs.use(key, self.now)
        if self.store.is_in_ledger:
            self._entry.proofs.append(row)
        return True

    def is_known(self, intent_id: str) -> bool:
        """True for the id of any intent that was ever opened."""
        if intent_id in self._opened or intent_id in self._unsettled.intents:
            return True
        if intent_id in self._foreseen:
            return self._foreseen[intent_id]
        return intents.is_known(self.connection, intent_id)

    def foresee_intents(self, intent_ids: Collection[str]) -> None:
        """Whether these are known will be asked: one question for all of them, where a question is a journey."""
        if self._is_shared and len(intent_ids) > 1:
            known = intents.known_among(self.connection, intent_ids)
            self._foreseen = {intent_id: intent_id in known for intent_id in intent_ids}

    def open(self, intent: OpenIntent, grant: str) -> None:
        """Write an intent, whose id is new."""
        self.has_taken_room = True
        if self.kept is not None:
            intent = msgspec.structs.replace(intent, event=self._keep(intent.event, intent.intent_id, None))
        self._entry.intents.append(intents.row_of(intent, grant))
        self._entry.intent_leaves.append(self._next_leaf())
        self._opened[intent.intent_id] = intent
        self._say("an intent is in the ledger", intent.event, intent_id=intent.intent_id, worker_id=intent.worker_id)
        self.give(intent.worker_id)

    def give(self, worker_id: str) -> None:
        """A worker gets a call by this unit."""
        self._given[worker_id] += 1

    def calls_of(self, worker_id: str) -> int:
        """How many calls the worker has, those counted that it gets by this unit."""
        return self._given[worker_id] + self.state.given[worker_id]

    def resolve(self, intent_id: str) -> None:
        """Take an open intent from those that wait."""
        self._entry.resolved.append(intent_id)
        self._closed.add(intent_id)

    def is_unbegun(self, intent_id: str) -> bool:
        """True when no worker runs the call, or will: this unit has opened it, or it was taken back."""
        return intent_id in self._opened or intent_id in self.state.unbegun

    def has_lost_worker(self, intent: OpenIntent) -> bool:
        """True for a call that may have begun and whose worker ended together with the notary of then."""
        return intent.worker_id not in (*self.state.workers, "") and intent.intent_id not in self.state.under_way

    def is_of_this_life(self, intent_id: str) -> bool:
        """True for an intent that this notary has opened, or given to a worker, and that has not ended."""
        state = self.state
        known = (self._opened, state.intents, state.under_way, state.unbegun)
        return any(intent_id in some for some in known)

    def may_still_end(self, intent_id: str) -> bool:
        """True for an open intent that a worker may still run, or whose front may still ask about it."""
        if any(intent_id in some for some in (self._opened, self.state.under_way, self.state.unbegun)):
            return True
        intent = self.intent(intent_id)
        if intent is None:
            return False
        return self.now < parse_iso(intent.started_at) + intent.terms.timeout_seconds + ENDED_SECONDS

    def cut(self, intent: OpenIntent) -> None:
        """Its front gives it up: once its worker ends it counts as cut."""
        call = UnderWay(intent.front_id, intent.number, intent.worker_id)
        self._cut.add(intent.intent_id)
        self.after(lambda: setattr(self.state.under_way.setdefault(intent.intent_id, call), "is_cut", True))

    def is_cut(self, intent_id: str) -> bool:
        """True for a call that its front gave up, by this unit or before."""
        call = self.state.under_way.get(intent_id)
        return intent_id in self._cut or (call is not None and call.is_cut)

    def intent(self, intent_id: str) -> OpenIntent | None:
        """An open intent; None for any other."""
        if intent_id in self._closed:
            return None
        known = self._opened.get(intent_id) or self.state.intents.get(intent_id)
        if known is None:
            self.settle()
            known = intents.waiting(self.connection, intent_id)
        return known

    def settle(self, *, is_forced: bool = False) -> None:
        """Move all that was written up to now to its tables, inside this transaction: for operations that read them.
        `is_forced`: the journal holds nothing that is needed afterwards."""
        if is_forced or not all(entry.is_settled for entry in self._entries()):
            self._make_room()

    def erase(self) -> None:
        """Something was overwritten that is to leave the WAL, too."""
        self.after(lambda: setattr(self.state, "has_erased", True))

    def after(self, follow: Callable[[], None]) -> None:
        """Do this once the unit is committed."""
        self._after.append(follow)

    def _entries(self) -> list[RingEntry]:
        """Entries that are not in their tables, with those of this unit."""
        return [self._entry] if self._has_settled else [*self._unsettled.entries, self._entry]

    def _make_room(self) -> None:
        if self._is_shared:
            move(self.connection, self._entries(), is_file=False)
        else:
            settle(self.connection, self._entries(), self._unsettled.number)
        self._entry, self._has_settled = RingEntry(), True

    def count_unresolved(self) -> int:
        """How many intents wait for their end."""
        change = sum(len(entry.intents) - len(entry.resolved) for entry in self._entries())
        return queries.count_unresolved(self.connection) + change

    def oldest_unresolved(self) -> float | None:
        """When the oldest intent was dispatched that no worker runs, or will run (Unix seconds)."""
        waiting = (self.state.under_way, self.state.unbegun, self._opened)
        entries = self._entries()
        resolved = {intent_id for entry in entries for intent_id in entry.resolved}
        unsettled = ((row[0], row[4]) for entry in entries for row in entry.intents)
        for intent_id, dispatched_at in chain(queries.dispatched(self.connection), unsettled):
            if intent_id not in resolved and not any(intent_id in some for some in waiting):
                return parse_iso(dispatched_at)
        return None

    def finish(self, answers: list[page_ring.Remembered]) -> None:
        """Write the unit's entry with what is answered, inside the transaction."""
        if not self.store.is_in_ledger:
            self.store.keep_doubt(self._unsettled.number)
        number, slots = self._unsettled.number + 1, self.state.limits.unsettled_slots
        if self._is_shared:
            self.settle()
            gateways.remember(self.connection, self.state.database.gateway_id, number, answers)
            self._is_finished = True
            return
        self._entry.answers = answers
        pieces = page_ring.pieces_of(self._entry, number)
        if len(pieces) + (0 if self._has_settled else self._unsettled.used) > slots:
            self._make_room()
            self._entry.answers = answers
            pieces = page_ring.pieces_of(self._entry, number)
            if len(pieces) > slots:
                pieces = []
                settle(self.connection, (), number)
                self.connection.execute(_ANSWERS, (_encode(answers),))
        page_ring.write(self.connection, pieces, self._unsettled.slot)
        self._pieces, self._is_finished = len(pieces), True

    def commit(self) -> None:
        """The transaction is committed: follow it in memory."""
        state = self.state
        self.store.confirm()
        state.head, state.epoch, state.leaves = self._head, self._epoch, self._leaves
        state.revoked, state.proofs = self._revoked, self._proofs.committed()
        if self.refusals:
            state.refusals = pruned(state.refusals | self.refusals)
        state.database.follow()
        if self._has_settled:
            self._unsettled.clear()
        if self._is_finished:
            self._unsettled.add(self._entry, self._pieces)
        state.intents.update(self._opened)
        for intent_id in self._closed:
            state.intents.pop(intent_id, None)
        state.backlog.follow(self._queued)
        while len(state.intents) > MAX_KNOWN_INTENTS:
            del state.intents[next(iter(state.intents))]
        for follow in self._after:
            follow()


Handler = Callable[[Transaction, Any], Any]


def _head_of(connection: OpenTransaction, entries: Sequence[RingEntry]) -> Head:
    head = head_with(connection, entries)
    if head is None:
        raise DatabaseGone("the head of the chain is gone")
    return head
