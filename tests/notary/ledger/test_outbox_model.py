"""Any history of an outbox that two fronts use, by a clock that may jump, held against a plain list."""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ipc.evidence.records import FAR_MS, Delivery
from ipc.operations.status import ReadLedger
from notary.ledger import outbox
from tests.notary.running import Running
from tests.notary.samples import NOW_MS, claim, hooks, notify, settled
from tests.support.asking import Asker
from tests.support.properties import FEW

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
    """The expected contents of an outbox. `waiting` is in the order of writing."""

    now: int = NOW_MS
    waiting: list[Row] = field(default_factory=list)
    given_up: list[tuple[str, str, int]] = field(default_factory=list)
    events: int = 0
    claims: list[Delivery] = field(default_factory=list)
    """Every claim that ever was."""

    def due(self, endpoint: str, limit: int) -> list[Row]:
        """The deliveries that a claim must take now."""
        rows = [
            row for row in self.waiting
            if row.endpoint == endpoint and (row.due <= self.now or row.due > self.now + FAR_MS)
        ]  # fmt: skip
        return sorted(rows, key=lambda row: row.due)[:limit]

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
    st.tuples(st.just("write")),
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


def take(step: tuple[Any, ...], front: Asker, notary: Running, model: Model) -> None:
    """One step, on the outbox and on the model."""
    match step:
        case ("write",):
            notary.clock.time = model.now / 1000
            notify(front)
            (event_id,) = notary.stored("SELECT event_id FROM events ORDER BY seq DESC LIMIT 1")
            model.events += 1
            model.waiting += [Row(event_id, endpoint, model.now) for endpoint in ENDPOINTS]
        case ("claim", endpoint, limit, span):
            wanted = model.due(endpoint, limit)
            for row in wanted:
                row.attempts, row.due = row.attempts + 1, model.now + span
            claimed = claim(front, endpoint, now=model.now, until=model.now + span, limit=limit)
            assert [(one.event_id, one.attempt) for one in claimed] == [(row.event_id, row.attempts) for row in wanted]
            model.claims += claimed
        case ("time", step_ms):
            model.now += step_ms
        case ("give up all", endpoint):
            rows = model.of(endpoint)
            with notary.stranger() as connection:
                assert outbox.give_up(connection, endpoint, at=model.now, error="all") == len(rows)
            for row in rows:
                model.give_up(row)
        case (kind, place, *more) if model.claims:
            settle(kind, model.claims[-1 - place % len(model.claims)], front, model, *more)


def settle(kind: str, held: Delivery, front: Asker, model: Model, wait: int = 0) -> None:
    """Say of a claim, perhaps one of long ago, what became of it."""
    row = model.held(held)
    match kind:
        case "delivered":
            front.ask(settled(held))
            if row is not None:
                model.waiting.remove(row)
        case "put off":
            front.ask(settled(held, due=model.now + wait))
            if row is not None:
                row.due = model.now + wait
        case "give up":
            front.ask(settled(held, at=model.now, error="one"))
            if row is not None:
                model.give_up(row)


def compare(front: Asker, notary: Running, model: Model) -> None:
    """Everything that the file holds is what the model has."""
    assert front.ask(ReadLedger()).waiting == {
        endpoint: count for endpoint in ENDPOINTS if (count := len(model.of(endpoint)))
    }
    assert notary.stored("SELECT event_id, endpoint, attempts FROM given_up ORDER BY seq") == model.given_up
    assert notary.stored("SELECT event_id, endpoint, attempts, due FROM outbox ORDER BY seq") == [
        (row.event_id, row.endpoint, row.attempts, row.due) for row in model.waiting
    ]


@FEW
@given(STEPS)
def test_any_history_is_the_models(steps: list[tuple[int, tuple[Any, ...]]]) -> None:
    model = Model()
    with tempfile.TemporaryDirectory() as folder:
        notary = Running(Path(folder), webhooks=hooks(*ENDPOINTS))
        try:
            fronts = [notary.front, notary.attach("another")]
            for place, step in steps:
                if step == ("reopen",):
                    fronts = [notary.restart(), notary.attach(f"another-{notary.lives}")]
                else:
                    take(step, fronts[place], notary, model)
                compare(fronts[1 - place], notary, model)
        finally:
            notary.stop()
