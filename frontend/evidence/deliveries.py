"""What the SQLite ledger's writing thread does with the outbox: claims, and what becomes of what was claimed.

Inside the transaction of the evidence that is written meanwhile, so that it must not keep it waiting: a few statements
a unit, however many deliveries it is about. A claim is named by number, attempt and event: a number is used again once
its delivery is gone.
"""

import sqlite3
from collections.abc import Sequence

import msgspec

from frontend.evidence.ledger import LedgerUnavailable
from frontend.evidence.outbox import FAR_MS, MAX_GIVEN_UP, Delivery

GIVEN_UP_AT_ONCE = 100
"""Deliveries that one step of giving up everything moves: what bounds its transaction."""

Name = tuple[int, int, str]
"""seq, attempt, event_id."""


class Task(msgspec.Struct, frozen=True):
    """Something to be done with the outbox: one of those below. One class to tell them by, since every operation of the
    ledger is asked."""


class Claim(Task, frozen=True):
    """Take what is due; answers list[Delivery]."""

    endpoint: str
    now: int
    until: int
    limit: int


class Delivered(Task, frozen=True):
    """Forget a delivery."""

    name: Name


class PutOff(Task, frozen=True):
    """Have it due later."""

    name: Name
    due: int


class GiveUp(Task, frozen=True):
    """Move it to what was given up."""

    name: Name
    at: int
    error: str


class GiveUpSome(Task, frozen=True):
    """Move some of an endpoint's; answers how many, GIVEN_UP_AT_ONCE when there may be more."""

    endpoint: str
    at: int
    error: str


Outcome = list[Delivery] | int | None

_DELIVERY = (
    "json_object('seq', seq, 'event_id', event_id, 'kind', kind, 'endpoint', endpoint, 'payload', payload,"
    " 'attempt', attempts + 1)"
)
# Each row that is fetched hands the interpreter to another thread and has to get it back: all come as one. The
# second part is what was dated by a clock that was wrong since.
DUE = f"""
SELECT CAST(json_group_array({_DELIVERY}) AS BLOB) FROM (
    SELECT * FROM outbox WHERE endpoint = ?1 AND due <= ?2
    UNION ALL SELECT * FROM outbox WHERE endpoint = ?1 AND due > ?3
    ORDER BY due, seq LIMIT ?4
)
"""  # noqa: S608 - names of columns
TAKE = "UPDATE outbox SET attempts = attempts + 1, due = ? WHERE seq IN (SELECT value FROM json_each(?))"

# CROSS has SQLite look each name up, instead of walking all deliveries.
_NAMED = """
FROM json_each(?) AS named CROSS JOIN outbox ON outbox.seq = json_extract(named.value, '$[0]')
    AND outbox.attempts = json_extract(named.value, '$[1]') AND outbox.event_id = json_extract(named.value, '$[2]')
"""
FORGET = f"DELETE FROM outbox WHERE seq IN (SELECT outbox.seq {_NAMED})"  # noqa: S608 - text of this file
PUT_OFF = f"""
UPDATE outbox SET due = later.due FROM (SELECT outbox.seq, json_extract(named.value, '$[3]') AS due {_NAMED}) AS later
WHERE outbox.seq = later.seq
"""  # noqa: S608 - text of this file
_COLUMNS = "event_id, kind, endpoint, attempts, payload"
GIVE_UP = f"""
INSERT INTO given_up ({_COLUMNS}, at, error)
SELECT {_COLUMNS}, json_extract(named.value, '$[3]'), json_extract(named.value, '$[4]') {_NAMED} ORDER BY named.key
"""
SOME = """
SELECT CAST(json_group_array(json_array(seq, attempts, event_id)) AS BLOB) FROM (
    SELECT * FROM outbox WHERE endpoint = ? ORDER BY due, seq LIMIT ?
)
"""
# Numbers grow by one: the newest are those after this one.
FORGET_OLD = f"DELETE FROM given_up WHERE seq <= (SELECT max(seq) FROM given_up) - {MAX_GIVEN_UP}"  # noqa: S608 - a number

_encode = msgspec.json.Encoder().encode
_deliveries = msgspec.json.Decoder(list[Delivery]).decode
_names = msgspec.json.Decoder(list[Name]).decode


def perform(connection: sqlite3.Connection, tasks: Sequence[Task]) -> list[Outcome | LedgerUnavailable]:
    """Perform all, inside the transaction that is open; what each answers.

    What became of deliveries comes first: what is put off for no time can be claimed at once. Raises sqlite3.Error.
    """
    if delivered := [task.name for task in tasks if isinstance(task, Delivered)]:
        connection.execute(FORGET, (_text(delivered),))
    if put_off := [(*task.name, task.due) for task in tasks if isinstance(task, PutOff)]:
        connection.execute(PUT_OFF, (_text(put_off),))
    if given_up := {task.name: (*task.name, task.at, task.error) for task in tasks if isinstance(task, GiveUp)}:
        _give_up(connection, list(given_up.values()))
    return [_answer(connection, task) for task in tasks]


def _answer(connection: sqlite3.Connection, task: Task) -> Outcome | LedgerUnavailable:
    try:
        match task:
            case Claim():
                return _claim(connection, task)
            case GiveUpSome():
                return _give_up_some(connection, task)
            case _:
                return None
    except ValueError as error:
        # Nothing has been written for it, and evidence that shares the transaction does not depend on it.
        return LedgerUnavailable(f"ledger: a stored delivery makes no sense: {error}")


def _claim(connection: sqlite3.Connection, claim: Claim) -> list[Delivery]:
    asked = (claim.endpoint, claim.now, claim.now + FAR_MS, max(claim.limit, 0))
    (found,) = connection.execute(DUE, asked).fetchone()
    taken = _deliveries(found)
    if taken:
        connection.execute(TAKE, (claim.until, _text([delivery.seq for delivery in taken])))
    return taken


def _give_up_some(connection: sqlite3.Connection, some: GiveUpSome) -> int:
    (found,) = connection.execute(SOME, (some.endpoint, GIVEN_UP_AT_ONCE)).fetchone()
    names = _names(found)
    if names:
        _give_up(connection, [(*name, some.at, some.error) for name in names])
    return len(names)


def _give_up(connection: sqlite3.Connection, named: list[tuple[int, int, str, int, str]]) -> None:
    text = _text(named)
    connection.execute(GIVE_UP, (text,))
    connection.execute(FORGET, (text,))
    connection.execute(FORGET_OLD)


def _text(value: Sequence[object]) -> str:
    return _encode(value).decode()
