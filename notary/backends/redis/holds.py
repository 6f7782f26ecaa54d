"""Approvals in Redis, within one unit.

Each approval has a row with the fields for filters: in one hash if it waits or is claimed (bounded by the caps), in
another once it has ended. Request and plan have a key of their own, and another one after the end. A unit that has read
the rows depends on `version`. The id of a holder includes that of its notary: while an approval may be executed, its
claim belongs to fronts of that notary alone.
"""

import heapq
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from ipc.approvals import CLAIMED, ENDED, PENDING, listed, remains_of
from ipc.backends.store import NO_EPOCH, RIGHT_REVOKED, ApprovalRecord
from ipc.operations.holds import ListedHolds, ListHolds
from notary.backends.redis.changes import Changes, milliseconds
from notary.backends.redis.keys import RedisKeys
from notary.store.contract import ELSEWHERE, TOLD_CHARACTERS, Moment, StoreGone, Waiting, as_of
from notary.store.keeping import KEEP_ENDED_SECONDS, LONGEST_CALL_SECONDS, kept_record, kept_text
from notary.store.outcomes import outcome_of

_HALF_MS: Final = 0.0005
"""Times are shown to the nearest millisecond: what is shown as the bound itself is not before it."""


class HoldRow(msgspec.Struct, array_like=True):
    """The fields for filters of approvals. `bytes` is the length of the body in UTF-8."""

    approval_id: str
    session_id: str
    action_id: str
    request_hash: str
    state: str
    created_at: float
    expires_at: float
    principal: str
    epoch: int
    bytes: int
    holder: str | None = None
    given: int = 0
    """Approvals given of several. SECURITY: the row changes with each, so that of two notaries which store one at
    once the second begins anew."""

    def is_live(self, moment: Moment) -> bool:
        """It still waits."""
        return self.state == PENDING and self.epoch == moment.epoch and self.expires_at > moment.now


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(HoldRow).decode


def _row(text: str) -> HoldRow:
    try:
        return _decode(text)
    except (ValueError, RecursionError):
        raise StoreGone("Redis: an approval that makes no sense") from None


class RedisHolds:
    """The approvals of one unit."""

    def __init__(self, changes: Changes, keys: RedisKeys, notary: str, clock: Callable[[], float]) -> None:
        self._changes = changes
        self._keys = keys
        self._mark = ELSEWHERE + notary
        self._clock = clock
        self._rows: dict[str, HoldRow] | None = None
        self._known: dict[str, ApprovalRecord | None] = {}
        self._kept: dict[str, ApprovalRecord | None] = {}
        """Approvals that this unit has ended, whole."""

    @property
    def is_used(self) -> bool:
        """True when the unit has read or changed an approval."""
        return bool(self._known) or self._rows is not None

    # ----------------------------------------------------------------- one

    def get(self, approval_id: str) -> ApprovalRecord | None:
        """The approval as stored; applying the unit requires the same row."""
        if approval_id not in self._known:
            key = self._keys.hold(approval_id)
            texts = self._changes.look("HMGET", key, "row", "body", "outcome")
            self._changes.checks.append([texts[0], "HGET", key, "row"])
            self._known[approval_id] = None if texts[0] is None else self._record(_row(texts[0]), *texts[1:])
        return self._known[approval_id]

    def state(self, approval_id: str) -> ApprovalRecord | None:
        """Without its body, as it is now."""
        if approval_id in self._known:
            record = self._known[approval_id]
            return None if record is None else msgspec.structs.replace(record, body="")
        row, outcome = self._changes.look("HMGET", self._keys.hold(approval_id), "row", "outcome")
        return None if row is None else self._record(_row(row), "", outcome)

    def store(self, record: ApprovalRecord) -> None:
        """A new one."""
        row = _row_of(record, self._marked(record.holder))
        text = _encode(row).decode()
        key = self._keys.hold(record.approval_id)
        summary = listed(record.body)
        self._changes.step(
            "hset", key, "row", text, "outcome", record.outcome, "summary", summary, "body", record.body
        )  # fmt: skip
        self._changes.step("hset", self._keys.live, record.approval_id, text)
        self._changes.step("grow", self._keys.version)
        self._known[record.approval_id] = record
        if self._rows is not None:
            self._rows[record.approval_id] = row

    def move(
        self, approval_id: str, from_state: str, to_state: str, outcome: str, holder: str | None
    ) -> ApprovalRecord | None:
        """Compare and swap."""
        record = self.get(approval_id)
        if record is None or record.state != from_state:
            return None
        body = remains_of(record.body) if to_state in ENDED else record.body
        moved = msgspec.structs.replace(record, state=to_state, outcome=outcome, holder=holder, body=body)
        row = _row_of(moved, self._marked(holder))
        text, key, changes = _encode(row).decode(), self._keys.hold(approval_id), self._changes
        rest = () if body is record.body else ("body", body, "summary", listed(body))
        changes.step("hset", key, "row", text, "outcome", outcome, *rest)
        if to_state in ENDED:
            changes.step("hdel", self._keys.live, approval_id)
            changes.step("hset", self._keys.ended, approval_id, text)
            changes.step("zadd", self._keys.ended_at, approval_id, repr(record.expires_at))
            changes.step("expire", key, milliseconds(record.expires_at + KEEP_ENDED_SECONDS - self._clock()))
        else:
            changes.step("hset", self._keys.live, approval_id, text)
        changes.step("grow", self._keys.version)
        self._known[approval_id] = moved
        if self._rows is not None:
            self._rows[approval_id] = row
        return moved

    def keep(self, record: ApprovalRecord, ended_at: float) -> None:
        """Keep an ended approval with its whole body."""
        text = kept_text(record)
        size = str(len(text.encode()))
        given = (record.approval_id, record.principal, repr(ended_at), size, text)
        self._changes.step("keep", self._keys.kept, *given)
        self._kept[record.approval_id] = record

    def kept(self, approval_id: str) -> ApprovalRecord | None:
        """An ended approval as it is kept, or None."""
        if approval_id in self._kept:
            return self._kept[approval_id]
        text = self._changes.look("GET", f"{self._keys.kept}record:{approval_id}")
        return None if text is None else kept_record(text)

    def forget_kept(self, approval_id: str) -> None:
        """Erase an ended approval as it is kept."""
        if self.kept(approval_id) is not None:
            self._changes.step("unkeep", self._keys.kept, approval_id)
            self._kept[approval_id] = None

    def void(self, session_id: str) -> None:
        """End the pending approvals of a session."""
        for row in list(self._live().values()):
            if row.state == PENDING and row.session_id == session_id and (record := self.get(row.approval_id)):
                self._void(record, NO_EPOCH)

    def void_one(self, approval_id: str) -> None:
        """A pending one whose right was revoked waits no more."""
        record = self.get(approval_id)
        if record is not None and record.state == PENDING:
            self._void(record, RIGHT_REVOKED)

    def _void(self, record: ApprovalRecord, epoch: int) -> None:
        approval_id = record.approval_id
        ended = self._known[approval_id] = msgspec.structs.replace(record, epoch=epoch)
        row = _row_of(ended, self._marked(ended.holder))
        if self._rows is not None:
            self._rows[approval_id] = row
        text = _encode(row).decode()
        self._changes.step("hset", self._keys.hold(approval_id), "row", text)
        self._changes.step("hset", self._keys.live, approval_id, text)
        self._changes.step("grow", self._keys.version)

    # ----------------------------------------------------------------- those that live

    def pending(
        self, session_id: str, action_id: str, request_hash: str, moment: Moment
    ) -> ApprovalRecord | None:  # fmt: skip
        """The pending approval of this same call."""
        of_call = (session_id, action_id, request_hash)
        for row in self._live().values():
            if row.is_live(moment) and (row.session_id, row.action_id, row.request_hash) == of_call:
                return self.get(row.approval_id)
        return None

    def waiting(self, moment: Moment, **wanted: str) -> Waiting:
        """`wanted`: field of the row -> value."""
        rows = [
            row for row in self._live().values()
            if row.is_live(moment) and all(getattr(row, name) == value for name, value in wanted.items())
        ]  # fmt: skip
        return Waiting(len(rows), sum(row.bytes for row in rows), min((row.expires_at for row in rows), default=None))

    def count_pending(self, moment: Moment) -> tuple[int, float | None]:
        """How many wait, and since when the oldest does."""
        rows = [row for row in self._live().values() if row.is_live(moment)]
        oldest = min(rows, key=lambda row: row.expires_at, default=None)
        return len(rows), None if oldest is None else oldest.created_at

    def due(self, moment: Moment, limit: int) -> list[ApprovalRecord]:
        """Those that wait no more."""
        rows = [row for row in self._live().values() if row.state == PENDING]
        over = [row for row in rows if row.expires_at <= moment.now]
        chosen = over or [row for row in rows if row.epoch != moment.epoch]
        return self._that_fit(heapq.nsmallest(limit, chosen, key=lambda row: (row.expires_at, row.approval_id)))

    def claimed(self, is_wanted: Callable[[str, str | None], bool]) -> list[ApprovalRecord]:
        """Claimed ones, by id and holder, oldest first. Those of another notary only once they can't be executed."""
        rows = [row for row in self._live().values() if row.state == CLAIMED]
        chosen = [
            row for row in rows
            if is_wanted(row.approval_id, holder := self._holder(row)) and ELSEWHERE not in (holder or "")
        ]  # fmt: skip
        return self._that_fit(sorted(chosen, key=lambda row: (row.created_at, row.approval_id)))

    def _live(self) -> dict[str, HoldRow]:
        if self._rows is None:
            self._changes.read("GET", self._keys.version)
            texts: Iterable[str] = self._changes.look("HVALS", self._keys.live)
            self._rows = {row.approval_id: row for row in map(_row, texts)}
            for approval_id, record in self._known.items():
                if record is not None:  # this unit may have moved it
                    self._rows[approval_id] = _row_of(record, self._marked(record.holder))
        return self._rows

    def _that_fit(self, rows: list[HoldRow]) -> list[ApprovalRecord]:
        records: list[ApprovalRecord] = []
        left = TOLD_CHARACTERS
        for row in rows:
            left -= row.bytes
            if records and left < 0:
                break
            record = self.get(row.approval_id)
            if record is not None:
                records.append(record)
        return records

    # ----------------------------------------------------------------- the list

    def list(self, asked: ListHolds, moment: Moment) -> ListedHolds:
        """See Store. Reads no body."""
        texts = [*self._changes.look("HVALS", self._keys.live), *self._changes.look("HVALS", self._keys.ended)]
        rows = [row for row in map(_row, texts) if _is_asked(row, asked, moment)]
        rows.sort(key=lambda row: (row.created_at, row.approval_id), reverse=True)
        if asked.in_turns:
            chosen = _in_turns(rows, asked.limit)
        else:
            chosen = rows[: asked.limit]
        fields = [("HMGET", self._keys.hold(row.approval_id), "summary", "outcome") for row in chosen]
        answers = self._changes.client.many(fields)
        records = [
            self._record(row, summary, outcome or "{}")
            for row, (summary, outcome) in zip(chosen, answers, strict=True) if summary is not None
        ]  # fmt: skip
        epoch = moment.epoch
        return ListedHolds([as_of(record, epoch) for record in records], len(rows))

    # ----------------------------------------------------------------- holders

    def _record(self, row: HoldRow, body: Any, outcome: Any) -> ApprovalRecord:
        return ApprovalRecord(
            row.approval_id, row.session_id, row.action_id, row.request_hash, row.state, row.created_at,
            row.expires_at, str(body), self._holder(row), str(outcome), row.principal, row.epoch,
        )  # fmt: skip

    def _marked(self, holder: str | None) -> str | None:
        return holder if holder is None or ELSEWHERE in holder else holder + self._mark

    def _holder(self, row: HoldRow) -> str | None:
        """A front of this notary by its name. One of another has its notary behind it, until its time is over."""
        holder = row.holder
        if holder is None or holder.endswith(self._mark):
            return None if holder is None else holder.removesuffix(self._mark)
        return holder if row.expires_at + LONGEST_CALL_SECONDS > self._clock() else None


def _row_of(record: ApprovalRecord, holder: str | None) -> HoldRow:
    return HoldRow(
        record.approval_id, record.session_id, record.action_id, record.request_hash, record.state, record.created_at,
        record.expires_at, record.principal, record.epoch, len(record.body.encode()), holder,
        len(outcome_of(record).approvals) if record.state == PENDING and record.outcome != "{}" else 0,
    )  # fmt: skip


def _is_asked(row: HoldRow, asked: ListHolds, moment: Moment) -> bool:
    if asked.states is not None:
        # An expired approval, or one of an earlier epoch, has ended; its row does not say so yet.
        if row.state == PENDING and not row.is_live(moment):
            return False
        if row.state not in asked.states:
            return False
    return (
        (asked.principal is None or row.principal == asked.principal)
        and (asked.action_id is None or row.action_id == asked.action_id)
        and (asked.before is None or row.created_at < asked.before - _HALF_MS)
    )


def _in_turns(rows: list[HoldRow], limit: int) -> list[HoldRow]:
    """The newest of each principal, then the second of each, and so on; newest first."""
    turns: dict[str, int] = {}
    placed = []
    for row in rows:
        turn = turns[row.principal] = turns.get(row.principal, -1) + 1
        placed.append((turn, row))
    placed.sort(key=lambda one: one[0])  # stable: newest first within a turn
    chosen = [row for _, row in placed[:limit]]
    return sorted(chosen, key=lambda row: (row.created_at, row.approval_id), reverse=True)
