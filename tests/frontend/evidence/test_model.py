"""Any history of a ledger that two fronts write, held against a plain model; and any change of it from outside."""

import sqlite3
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontend.clock import iso
from frontend.evidence.events import AuditEvent
from frontend.evidence.ledger import AlreadyRecorded, EventQuery, GrantConsumed, Intent
from frontend.evidence.receipts import Receipt
from frontend.evidence.sqlite import SqliteLedger
from tests.frontend.evidence.samples import NOW, make_event, make_intent, make_receipt

SESSIONS, ACTIONS = ("ses_1", "ses_2", None), ("text_digest", "file_write")
DECISIONS = ("allow", "deny", "error", "pending_approval")


@dataclass
class Model:
    """What a ledger must hold."""

    events: list[AuditEvent] = field(default_factory=list)
    waiting: dict[str, Intent] = field(default_factory=dict)
    """Intents without a receipt, oldest first."""
    done: dict[str, Receipt] = field(default_factory=dict)
    """Receipts by the intent that they resolve."""
    seconds: int = 0

    def event(self, session: str | None, action: str, decision: str, **more: Any) -> AuditEvent:
        """One more event, a second after the last."""
        self.seconds += 1
        given = {"session_id": session, "action_id": action, "decision": decision} | more
        event = make_event(timestamp=iso(NOW + self.seconds), **given)
        self.events.append(event)
        return event

    def wanted(self, query: EventQuery) -> list[str]:
        """Ids of the events that a plain filter finds, newest first."""
        found = [
            event.event_id
            for event in reversed(self.events)
            if (query.session_id is None or event.session_id == query.session_id)
            and (query.action_id is None or event.action_id == query.action_id)
            and (query.decision is None or event.decision == query.decision)
        ]
        return found[: query.limit]


APPEND = st.tuples(st.just("append"), st.sampled_from(SESSIONS), st.sampled_from(ACTIONS), st.sampled_from(DECISIONS))
QUERY = st.tuples(
    st.just("query"), st.sampled_from(SESSIONS), st.none() | st.sampled_from(ACTIONS),
    st.none() | st.sampled_from(DECISIONS), st.integers(1, 4),
)  # fmt: skip
OTHERS = [
    st.tuples(st.just("begin"), st.booleans()), st.tuples(st.just("record"), st.integers(0, 3)),
    st.tuples(st.just("record again"), st.integers(0, 3)), st.tuples(st.just("reopen")), st.tuples(st.just("look")),
]  # fmt: skip
STEPS = st.lists(st.one_of(APPEND, QUERY, *OTHERS), min_size=1, max_size=25)


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[list[SqliteLedger]]:
    """The same file, open twice; a place of the list can be opened anew."""
    ledgers = [await SqliteLedger.open(path), await SqliteLedger.open(path)]
    try:
        yield ledgers
    finally:
        for ledger in ledgers:
            await ledger.close()


async def take(step: tuple[Any, ...], ledger: SqliteLedger, model: Model) -> None:
    """One step, on the ledger and on the model."""
    match step:
        case ("append", session, action, decision):
            await ledger.append(model.event(session, action, decision))
        case ("begin", is_used):
            known = [*model.waiting.values()]
            if is_used and known:
                with pytest.raises(GrantConsumed):
                    await ledger.begin(make_intent(grant_id=known[0].grant_id))
            else:
                intent = make_intent()
                await ledger.begin(intent)
                model.waiting[intent.intent_id] = intent
        case ("record", place) if model.waiting:
            intent = [*model.waiting.values()][place % len(model.waiting)]
            receipt = make_receipt(grant_id=intent.grant_id)
            event = model.event(
                "ses_1", "text_digest", "allow", receipt_id=receipt.receipt_id, intent_id=intent.intent_id
            )
            await ledger.record(receipt=receipt, event=event, intent_id=intent.intent_id)
            del model.waiting[intent.intent_id]
            model.done[intent.intent_id] = receipt
        case ("record again", place) if model.done:
            intent_id = [*model.done][place % len(model.done)]
            receipt = make_receipt()
            event = make_event(receipt_id=receipt.receipt_id, intent_id=intent_id)
            with pytest.raises(AlreadyRecorded):
                await ledger.record(receipt=receipt, event=event, intent_id=intent_id)
        case ("query", session, action, decision, limit):
            query = EventQuery(session_id=session, action_id=action, decision=decision, limit=limit)
            found = [msgspec.json.decode(event)["event_id"] for event in await ledger.query(query)]
            assert found == model.wanted(query)
        case ("look",):
            await compare(ledger, model)


async def compare(ledger: SqliteLedger, model: Model) -> None:
    """Everything that a ledger tells is what the model has."""
    assert [one.intent_id for one in await ledger.unresolved(100)] == list(model.waiting)
    assert await ledger.unresolved_count() == len(model.waiting)
    for receipt in model.done.values():
        assert await ledger.receipt(receipt.receipt_id) == receipt
    report = await ledger.verify()
    assert (report.intact, report.broken_at) == (True, None)
    assert report.events_checked == report.total_events == len(model.events)
    has_any = model.events or model.waiting  # an intent is evidence too
    assert await ledger.last_time() == (NOW + model.seconds if has_any else None)


@settings(max_examples=20, deadline=None)
@given(STEPS, st.data())
async def test_any_history_is_the_models_and_no_change_of_it_goes_unseen(
    steps: list[tuple[Any, ...]], data: st.DataObject
) -> None:
    model = Model()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite3"
        async with opened(path) as ledgers:
            for step in steps:
                place = data.draw(st.integers(0, 1), label="front")
                if step == ("reopen",):
                    await ledgers[place].close()
                    ledgers[place] = await SqliteLedger.open(path)
                else:
                    await take(step, ledgers[place], model)
            await compare(ledgers[0], model)
            if model.events:
                spoil(path, len(model.events), data)
                assert (await ledgers[1].verify()).intact is False


def spoil(path: Path, count: int, data: st.DataObject) -> None:
    """What somebody with the file could do to an event: another byte, another column, none at all, another place."""
    seq = data.draw(st.integers(1, count), label="event")
    kind = data.draw(st.sampled_from(["byte", "decision", "time", "gone", "moved"]), label="change")
    with closing(sqlite3.connect(path, isolation_level=None)) as ledger:
        (text,) = ledger.execute("select bytes from events where seq = ?", (seq,)).fetchone()
        place = data.draw(st.integers(0, len(text) - 1), label="byte")
        other = bytes(text[:place]) + bytes([text[place] ^ 1]) + bytes(text[place + 1 :])
        change: dict[str, tuple[str, tuple[Any, ...]]] = {
            "byte": ("update events set bytes = ? where seq = ?", (other, seq)),
            "decision": ("update events set decision = 'none' where seq = ?", (seq,)),
            "time": ("update events set time = time + 1 where seq = ?", (seq,)),
            "gone": ("delete from events where seq = ?", (seq,)),
            "moved": ("update events set seq = ? where seq = ?", (count + 1, seq)),
        }
        assert ledger.execute(*change[kind]).rowcount == 1
