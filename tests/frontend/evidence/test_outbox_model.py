"""Any history of an outbox that two fronts use, by a clock that may jump, held against a plain list."""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from frontend.clock import iso
from frontend.evidence.outbox import FAR_MS, Delivery
from frontend.evidence.sqlite import SqliteLedger
from tests.frontend.evidence.conftest import stored
from tests.frontend.evidence.samples import NOW_MS, make_event, make_rows

ENDPOINTS = ("chat", "pager")


@dataclass
class Row:
    """One delivery that waits."""

    event_id: str
    endpoint: str
    due: int
    attempts: int = 0


@dataclass
class Model:
    """What an outbox must hold. `waiting` is in the order of writing."""

    now: int = NOW_MS
    waiting: list[Row] = field(default_factory=list)
    given_up: list[tuple[str, str, int]] = field(default_factory=list)
    events: int = 0
    claims: list[Delivery] = field(default_factory=list)
    """Every claim that ever was."""

    def due(self, endpoint: str, limit: int) -> list[Row]:
        """What a claim must take now."""
        found = [
            row for row in self.waiting
            if row.endpoint == endpoint and (row.due <= self.now or row.due > self.now + FAR_MS)
        ]  # fmt: skip
        return sorted(found, key=lambda row: row.due)[:limit]

    def of(self, endpoint: str) -> list[Row]:
        """All of an endpoint, the first that is due first."""
        return sorted((row for row in self.waiting if row.endpoint == endpoint), key=lambda row: row.due)

    def held(self, claim: Delivery) -> Row | None:
        """The row of a claim that has not passed to another."""
        named = (claim.event_id, claim.endpoint, claim.attempt)
        return next((row for row in self.waiting if (row.event_id, row.endpoint, row.attempts) == named), None)

    def give_up(self, row: Row) -> None:
        """Move a row to where what was given up is kept."""
        self.waiting.remove(row)
        self.given_up.append((row.event_id, row.endpoint, row.attempts))


MOMENTS = st.sampled_from([-3 * 3_600_000, -50, 0, 1, 50, 3 * 3_600_000])
PLACES = st.integers(0, 40)
STEP = st.one_of(
    st.tuples(st.just("write"), st.sampled_from([("chat",), ("pager",), ENDPOINTS, ()])),
    st.tuples(st.just("claim"), st.sampled_from(ENDPOINTS), st.integers(0, 3), st.sampled_from([0, 20, 100])),
    st.tuples(st.just("claim"), st.sampled_from(ENDPOINTS), st.integers(0, 3), st.sampled_from([0, 20, 100])),
    st.tuples(st.just("delivered"), PLACES),
    st.tuples(st.just("put off"), PLACES, st.sampled_from([0, 30, 200])),
    st.tuples(st.just("give up"), PLACES),
    st.tuples(st.just("give up all"), st.sampled_from(ENDPOINTS)),
    st.tuples(st.just("time"), MOMENTS),
    st.tuples(st.just("reopen")),
)
STEPS = st.lists(st.tuples(st.integers(0, 1), STEP), min_size=1, max_size=30)


async def take(step: tuple[Any, ...], ledger: SqliteLedger, model: Model) -> None:
    """One step, on the outbox and on the model."""
    outbox = ledger.outbox
    match step:
        case ("write", endpoints):
            event = make_event(timestamp=iso(model.now / 1000))
            await ledger.append(event, make_rows(event, *endpoints))
            model.events += 1
            model.waiting += [Row(event.event_id, endpoint, model.now) for endpoint in endpoints]
        case ("claim", endpoint, limit, span):
            wanted = model.due(endpoint, limit)
            for row in wanted:
                row.attempts, row.due = row.attempts + 1, model.now + span
            claimed = await outbox.claim(endpoint, now=model.now, until=model.now + span, limit=limit)
            assert [(one.event_id, one.attempt) for one in claimed] == [(row.event_id, row.attempts) for row in wanted]
            model.claims += claimed
        case ("time", step_ms):
            model.now += step_ms
        case ("give up all", endpoint):
            rows = model.of(endpoint)
            assert await outbox.give_up_all(endpoint, at=model.now, error="all") == len(rows)
            for row in rows:
                model.give_up(row)
        case (kind, place, *more) if model.claims:
            claim = model.claims[-1 - place % len(model.claims)]
            await settle(kind, claim, ledger, model, *more)


async def settle(kind: str, claim: Delivery, ledger: SqliteLedger, model: Model, wait: int = 0) -> None:
    """Say of a claim, perhaps one of long ago, what became of it."""
    held = model.held(claim)
    match kind:
        case "delivered":
            await ledger.outbox.delivered(claim)
            if held is not None:
                model.waiting.remove(held)
        case "put off":
            await ledger.outbox.put_off(claim, model.now + wait)
            if held is not None:
                held.due = model.now + wait
        case "give up":
            await ledger.outbox.give_up(claim, at=model.now, error="one")
            if held is not None:
                model.give_up(held)


@settings(max_examples=80, deadline=None)
@given(STEPS)
async def test_any_history_is_the_models(steps: list[tuple[int, tuple[Any, ...]]]) -> None:
    model = Model()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite3"
        ledgers = [await SqliteLedger.open(path), await SqliteLedger.open(path)]
        try:
            for place, step in steps:
                if step == ("reopen",):
                    await ledgers[place].close()
                    ledgers[place] = await SqliteLedger.open(path)
                else:
                    await take(step, ledgers[place], model)
                await compare(ledgers[1 - place], path, model)
            report = await ledgers[0].verify()
            assert (report.intact, report.total_events) == (True, model.events)
        finally:
            for ledger in ledgers:
                await ledger.close()


async def compare(ledger: SqliteLedger, path: Path, model: Model) -> None:
    """Everything that the other front sees is what the model has."""
    sorted_rows = {endpoint: model.of(endpoint) for endpoint in ENDPOINTS}
    assert await ledger.outbox.waiting() == {endpoint: len(rows) for endpoint, rows in sorted_rows.items() if rows}
    for endpoint, rows in sorted_rows.items():
        assert await ledger.outbox.next_due(endpoint) == (rows[0].due if rows else None)
    assert stored(path, "SELECT event_id, endpoint, attempts FROM given_up ORDER BY seq") == model.given_up
    assert stored(path, "SELECT event_id, endpoint, attempts, due FROM outbox ORDER BY seq") == [
        (row.event_id, row.endpoint, row.attempts, row.due) for row in model.waiting
    ]
