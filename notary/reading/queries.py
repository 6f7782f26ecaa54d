"""Queries of the ledger: receipts, intents, events by filter. Each function is one query.

Functions of a connection that can't write, for a thread that may wait for a disk. They raise sqlite3.Error, and
DatabaseGone for damaged rows.
"""

from collections.abc import Iterable
from math import ceil, floor
from typing import Any, Final

import msgspec

from contract.intents import UnresolvedIntent
from ipc.evidence.events import ACTION_CALL, INTENT_VERIFICATION, AuditEvent
from ipc.evidence.records import EventQuery
from ipc.operations.evidence import FoundEvents
from ipc.process.clock import parse_iso
from notary.database import DatabaseGone, OpenTransaction
from notary.ledger.encrypted_values import VALUE_KEYS, LivingKeys
from notary.reading.shown_kept import FROM_VALUES, kept_terms, rarest_first
from notary.tree.checkpoint import Checkpoint, NoteRefused, parted

_INTENT = """
SELECT intents.intent_id, trace_id, action_id, principal, dispatched_at, grant_id, provider_module
"""

_BEHIND = "WHERE intents.seq < coalesce((SELECT seq FROM intents WHERE intent_id = ?), 0)"
_INDEXES = {
    "trace_id": "events_by_trace",
    "session_id": "events_by_session",
    "principal": "events_by_principal",
    "action_id": "events_by_action",
    "decision": "events_by_decision",
    "event_type": "events_by_type",
}
"""Filter -> index, the choosiest first. SQLite has no statistics here, and would guess."""
_decode_event = msgspec.json.Decoder(AuditEvent).decode
_COMMON = {"decision": "allow", "event_type": "ActionCall"}
"""Values that their index leaves out."""
MOST_COUNTED: Final = 2000
"""The count of a filter's events ends here. Counts find the filter that the fewest events pass."""
LOOKED_AT: Final = 4_000
"""Events that one read looks at. Where few of them pass all filters, the asker goes on behind them with another one."""


def receipt_by_id(connection: OpenTransaction, receipt_id: str) -> bytes | None:
    """One receipt, as stored."""
    row = connection.execute("SELECT bytes FROM receipts WHERE receipt_id = ?", (receipt_id,)).fetchone()
    return None if row is None else bytes(row[0])


def receipt_id_of_approval(connection: OpenTransaction, approval_id: str) -> str | None:
    """Id of an approved call's receipt."""
    row = connection.execute("SELECT receipt_id FROM receipts WHERE approval_id = ?", (approval_id,)).fetchone()
    return None if row is None else str(row[0])


def has_intent_of_approval(connection: OpenTransaction, approval_id: str) -> bool:
    """Whether an approved call was dispatched, resolved or not."""
    return intent_id_of_approval(connection, approval_id) is not None


def intent_id_of_approval(connection: OpenTransaction, approval_id: str) -> str | None:
    """Id of an approved call's intent, resolved or not."""
    row = connection.execute("SELECT intent_id FROM intents WHERE approval_id = ?", (approval_id,)).fetchone()
    return None if row is None else str(row[0])


def principal_of_intent(connection: OpenTransaction, intent_id: str) -> str | None:
    """The principal of a call; None for an unknown intent, and for one that was cut off."""
    row = connection.execute("SELECT principal FROM intents WHERE intent_id = ?", (intent_id,)).fetchone()
    return None if row is None else row[0]


def unresolved_intents(
    connection: OpenTransaction, limit: int, now: float, after: str | None = None
) -> list[UnresolvedIntent]:  # fmt: skip
    """Newest first; `after`: only those that were written before this one, none where it is unknown."""
    # CROSS keeps SQLite from walking all intents in order instead of looking up the few that are open.
    where, values = ("", (limit,)) if after is None else (_BEHIND, (after, limit))
    rows = connection.execute(
        f"{_INTENT} FROM unresolved CROSS JOIN intents USING (seq) {where} ORDER BY intents.seq DESC LIMIT ?", values
    )
    return [_intent_view(row, now) for row in rows]


def unresolved_intent(
    connection: OpenTransaction, intent_id: str, now: float = 0.0
) -> tuple[UnresolvedIntent, str, str | None] | None:  # fmt: skip
    """An unresolved intent, with the hash of its plan and the approval that let it run."""
    row = connection.execute(
        f"{_INTENT}, plan_hash, approval_id FROM unresolved CROSS JOIN intents USING (seq)"
        " WHERE unresolved.intent_id = ?", (intent_id,)
    ).fetchone()  # fmt: skip
    return None if row is None else (_intent_view(row[:-2], now), row[-2], row[-1])


def dispatched(connection: OpenTransaction) -> Iterable[tuple[str, str]]:
    """Id and time of every unresolved intent, oldest first."""
    return connection.execute(
        "SELECT intents.intent_id, dispatched_at FROM unresolved CROSS JOIN intents USING (seq) ORDER BY intents.seq"
    )


def has_call_event(connection: OpenTransaction, trace_id: str) -> bool:
    """The call of this trace was refused, held or executed, and the event says so."""
    row = connection.execute(
        "SELECT 1 FROM events INDEXED BY events_by_trace WHERE trace_id = ? AND event_type = ?",
        (trace_id, ACTION_CALL),
    ).fetchone()  # fmt: skip
    return row is not None


def last_look(connection: OpenTransaction, intent_id: str, trace_id: str) -> AuditEvent | None:
    """The event of the last time that a verifier looked again at an intent. It has `seen`."""
    rows = connection.execute(
        "SELECT bytes FROM events INDEXED BY events_by_trace WHERE trace_id = ? AND event_type = ?"
        " ORDER BY time DESC, seq DESC", (trace_id, INTENT_VERIFICATION),
    )  # fmt: skip
    for (data,) in rows:
        try:
            event = _decode_event(data)
        except msgspec.MsgspecError as error:
            raise DatabaseGone(f"a stored event makes no sense: {error}") from None
        if event.intent_id == intent_id and event.seen is not None:
            return event
    return None


def count_unresolved(connection: OpenTransaction) -> int:
    """Reads the small table alone."""
    return int(connection.execute("SELECT count(*) FROM unresolved").fetchone()[0])


def newest_note(connection: OpenTransaction) -> str | None:
    """The last checkpoint that was signed."""
    row = connection.execute("SELECT note FROM checkpoints ORDER BY size DESC LIMIT 1").fetchone()
    return None if row is None else str(row[0])


def note_of(connection: OpenTransaction, size: int) -> str | None:
    """The checkpoint of this size."""
    row = connection.execute("SELECT note FROM checkpoints WHERE size = ?", (size,)).fetchone()
    return None if row is None else str(row[0])


def read_note(note: str) -> Checkpoint:
    """The checkpoint that a stored note signs. Raises DatabaseGone for a note that is damaged."""
    try:
        return Checkpoint.parse(parted(note)[0])
    except NoteRefused as error:
        raise DatabaseGone(f"a stored checkpoint makes no sense: {error}") from None


_CLOCK_ACCEPTED = (
    "SELECT max(seq), max(leaf) FROM events WHERE event_type = 'ClockAccepted' AND event_type <> 'ActionCall'"
)
# The sign keeps SQLite from reading by number: it reads the index of times from its end, and stops at the first row.
_NEWEST_EVENT = "SELECT time FROM events WHERE +seq >= ? ORDER BY time DESC LIMIT 1"


def newest_time(connection: OpenTransaction) -> float | None:
    """Unix seconds of the newest event or intent, of those since the clock was accepted last."""
    seq, leaf = connection.execute(_CLOCK_ACCEPTED).fetchone()
    event = connection.execute(_NEWEST_EVENT, (seq or 0,)).fetchone()
    intent = connection.execute("SELECT dispatched_at, leaf FROM intents ORDER BY seq DESC LIMIT 1").fetchone()
    times = [event[0] / 1000] if event is not None else []
    if intent is not None and (leaf is None or (intent[1] or 0) > leaf):
        times.append(parse_iso(intent[0]))
    return max(times, default=None)


def events_of(connection: OpenTransaction, query: EventQuery) -> list[bytes]:
    """Stored bytes, newest first, of a query with one filter."""
    return found_events(connection, query).events


def found_events(connection: OpenTransaction, query: EventQuery) -> FoundEvents:
    """Stored bytes, newest first, among the newest LOOKED_AT that pass the filter which the fewest events pass."""
    by_time, keys = False, list[tuple[int, bytes]]()
    if query.kept:
        keys = VALUE_KEYS.living(connection)
        kept, by_time = rarest_first(connection, query.kept, keys)
        query = msgspec.structs.replace(query, kept=tuple(kept))
    first, since = _rarest(connection, query), None
    if by_time or not query.kept:
        since = _end_of_look(connection, query, first)
    statement, values = event_statement(query, keys, by_time=by_time, first=first, since=since)
    found = [bytes(row[0]) for row in connection.execute(statement, values)]
    return FoundEvents(found, None if since is None or len(found) >= query.limit else since / 1000)


def event_statement(
    query: EventQuery, keys: LivingKeys = (), *, by_time: bool = False, first: str | None = None,
    since: int | None = None,
) -> tuple[str, list[Any]]:  # fmt: skip
    """SQL and its values; every text in it is one of this file's. `keys`: of kept values, if these are encrypted. With
    `by_time` it does not begin with kept values. `first`: the filter whose index is used, by default the choosiest.
    `since`: only events of this time (milliseconds) and later ones."""
    first = first or next(iter(_indexed(query)), None)
    index = "events_by_time" if first is None else _INDEXES[first]
    terms, values = kept_terms(query.kept, keys, by_time=by_time)
    for name in _INDEXES:
        if (value := getattr(query, name)) is not None:
            terms.append(_term(name, value))
            values.append(value)
    more, bounds = _bounds(query)
    terms, values = terms + more, values + bounds
    if since is not None:
        terms.append("time >= ?")
        values.append(since)
    where = f"WHERE {' AND '.join(terms)}" if terms else ""
    values.append(query.limit)
    source = FROM_VALUES if query.kept and not by_time else f"events INDEXED BY {index}"
    statement = f"SELECT bytes FROM {source} {where} ORDER BY time DESC, seq DESC LIMIT ?"  # noqa: S608
    return statement, values


def _rarest(connection: OpenTransaction, query: EventQuery) -> str | None:
    """The one of several filters with an index that the fewest events pass; None where there are not several.

    Each event that passes the first filter is looked at: without an end where no event passes all of them.
    """
    given = _indexed(query)
    if len(given) < 2 or query.kept:
        return None
    counts = dict[str, int]()
    for name in given:
        terms, values = _bounds(query)
        where = " AND ".join([_term(name, getattr(query, name)), *terms])
        some = f"SELECT 1 FROM events INDEXED BY {_INDEXES[name]} WHERE {where} LIMIT ?"  # noqa: S608
        values = [getattr(query, name), *values, MOST_COUNTED + 1]
        row = connection.execute(f"SELECT count(*) FROM ({some}) AS some_events", values).fetchone()  # noqa: S608
        counts[name] = int(row[0])
    return min(given, key=counts.__getitem__)


def _end_of_look(connection: OpenTransaction, query: EventQuery, first: str | None) -> int | None:
    """The time (milliseconds) of the last event that one read looks at; None where it finds each by its index, and
    where there are no more."""
    first = first or next(iter(_indexed(query)), None)
    terms, values = _bounds(query)
    if first is not None:
        terms.insert(0, _term(first, getattr(query, first)))
        values.insert(0, getattr(query, first))
    if not query.kept and all(getattr(query, name) is None for name in _INDEXES if name != first):
        return None
    where = f"WHERE {' AND '.join(terms)}" if terms else ""
    index = "events_by_time" if first is None else _INDEXES[first]
    row = connection.execute(
        f"SELECT time FROM events INDEXED BY {index} {where} ORDER BY time DESC, seq DESC LIMIT 1 OFFSET ?",  # noqa: S608
        (*values, LOOKED_AT),
    ).fetchone()
    return None if row is None else int(row[0])


def _indexed(query: EventQuery) -> list[str]:
    """Filters of a query whose index has their value, the choosiest first."""
    given = {name: getattr(query, name) for name in _INDEXES}
    return [name for name, value in given.items() if value is not None and value != _COMMON.get(name)]


def _term(name: str, value: str) -> str:
    if name not in _COMMON or value == _COMMON[name]:
        return f"{name} = ?"
    # By the second part SQLite knows that the index has every row that is looked for.
    return f"{name} = ? AND {name} <> '{_COMMON[name]}'"


def _bounds(query: EventQuery) -> tuple[list[str], list[Any]]:
    terms, values = list[str](), list[Any]()
    for name, sign in (("after", ">"), ("before", "<")):
        bound = getattr(query, name)
        if bound is not None:
            terms.append(f"time {sign} ?")
            # A float of seconds does not hold a millisecond exactly, and bounds are exclusive.
            exact = round(bound * 1000, 2)
            values.append(floor(exact) if name == "after" else ceil(exact))
    return terms, values


def _intent_view(row: tuple[str, ...], now: float) -> UnresolvedIntent:
    intent_id, trace_id, action_id, principal, dispatched_at, grant_id, provider_module = row
    try:
        age = now - parse_iso(dispatched_at)
    except ValueError:
        raise DatabaseGone(f"the stored time of intent {intent_id} makes no sense") from None
    return UnresolvedIntent(
        intent_id=intent_id, trace_id=trace_id, action_id=action_id, principal=principal, dispatched_at=dispatched_at,
        age_seconds=max(int(age), 0), grant_id=grant_id, provider_module=provider_module,
    )  # fmt: skip
