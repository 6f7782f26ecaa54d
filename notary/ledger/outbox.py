"""The outbox: deliveries that were written with their events, until they are delivered or given up.

Guarantees that a delivery exists exactly when its event does, and is due from the time of the event; that one
deliverer at a time has a claim on it, and that a claim whose owner died ends by itself. Keeps the newest MAX_GIVEN_UP
of the deliveries that were given up. A claim is named by number, attempt and event: a number is used again once its
delivery is gone. Times are milliseconds since the Unix epoch.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from ipc.evidence.records import FAR_MS, Delivery
from ipc.operations.deliveries import GIVEN_UP_FOR, ClaimDeliveries, SettleDelivery
from ipc.process.logs import log
from ipc.settings import WebhookSettings
from notary.database import OpenTransaction

GIVEN_UP_AT_ONCE: Final = 100
"""Deliveries that one step of giving up everything moves: what bounds its transaction."""
MAX_GIVEN_UP: Final = 10_000
MAX_WAITING: Final = 10_000
"""Deliveries of one endpoint: a receiver that is gone for days must not fill the disk that evidence needs."""
SAY_AGAIN_SECONDS: Final = 60.0
"""Between two lines about drops of the same endpoint."""
MAX_ERROR_CHARACTERS: Final = 500
WHENEVER: Final = 2**63 - 1
"""A time that every delivery is due until."""
OTHER: Final = "other"
"""Under which is counted what waited for endpoints that are not configured any more, whatever they were called."""

Name = tuple[int, int, str]
"""seq, attempt, event_id."""

_ROW = (
    "json_object('seq', seq, 'event_id', event_id, 'kind', kind, 'endpoint', endpoint, 'payload', payload,"
    " 'attempt', attempts + 1)"
)
# All come as one. The second part is what was dated by a clock that was wrong since.
DUE = f"""
SELECT CAST(json_group_array({_ROW}) AS BLOB) FROM (
    SELECT * FROM outbox WHERE endpoint = ? AND due <= ?
    UNION ALL SELECT * FROM outbox WHERE endpoint = ? AND due > ?
    ORDER BY due, seq LIMIT ?
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
    SELECT * FROM outbox WHERE endpoint = ? AND due <= ? ORDER BY due, seq LIMIT ?
)
"""
# Numbers grow by one: the newest are those after this one.
FORGET_OLD = f"DELETE FROM given_up WHERE seq <= (SELECT max(seq) FROM given_up) - {MAX_GIVEN_UP}"  # noqa: S608 - a number

_encode = msgspec.json.Encoder().encode
_deliveries = msgspec.json.Decoder(list[Delivery]).decode
_names = msgspec.json.Decoder(list[Name]).decode


def claim(connection: OpenTransaction, asked: ClaimDeliveries) -> list[Delivery]:
    """Claim due deliveries, the longest due first; no other claim gets them before `until`. Raises ValueError for a
    stored delivery that is damaged."""
    due = (asked.endpoint, asked.now, asked.endpoint, asked.now + FAR_MS, max(asked.limit, 0))
    (rows,) = connection.execute(DUE, due).fetchone()
    taken = _deliveries(rows)
    if taken:
        connection.execute(TAKE, (asked.until, _text([delivery.seq for delivery in taken])))
    return taken


def settle(connection: OpenTransaction, settled: SettleDelivery) -> bool:
    """See SettleDelivery. True when the delivery waits no more."""
    name = (settled.seq, settled.attempt, settled.event_id)
    if settled.due is not None:
        connection.execute(PUT_OFF, (_text([(*name, settled.due)]),))
        return False
    if settled.error is not None:
        return _give_up(connection, [(*name, settled.at or 0, _sentence(settled.error))]) == 1
    return connection.execute(FORGET, (_text([name]),)).rowcount == 1


def give_up(connection: OpenTransaction, endpoint: str, *, at: int, error: str, due_until: int = WHENEVER) -> int:
    """Move some of an endpoint's deliveries that were due until then to what was given up; how many."""
    (rows,) = connection.execute(SOME, (endpoint, due_until, GIVEN_UP_AT_ONCE)).fetchone()
    names = _names(rows)
    if names:
        _give_up(connection, [(*name, at, _sentence(error)) for name in names])
    return len(names)


def waiting(connection: OpenTransaction) -> dict[str, int]:
    """How many wait, claimed ones among them, by endpoint. Reads the index alone."""
    return dict(connection.execute("SELECT endpoint, count(*) FROM outbox GROUP BY endpoint").fetchall())


def bring_back(connection: OpenTransaction, now: int) -> None:
    """Make deliveries due later than now (milliseconds) due at once: the clock had been ahead."""
    connection.execute("UPDATE outbox SET due = ? WHERE due > ?", (now, now))


def next_due(connection: OpenTransaction, endpoint: str) -> int | None:
    """When the first of an endpoint's deliveries is due."""
    due: int | None = connection.execute("SELECT min(due) FROM outbox WHERE endpoint = ?", (endpoint,)).fetchone()[0]
    return due


def _give_up(connection: OpenTransaction, named: list[tuple[int, int, str, int, str]]) -> int:
    text = _text(named)
    connection.execute(GIVE_UP, (text,))
    count = connection.execute(FORGET, (text,)).rowcount
    connection.execute(FORGET_OLD)
    return count


def _text(value: Sequence[object]) -> str:
    return _encode(value).decode()


def _sentence(error: str) -> str:
    return error[:MAX_ERROR_CHARACTERS].replace("\0", "\ufffd")  # no text of a PostgreSQL holds one


class Queued(msgspec.Struct):
    """Deliveries that one transaction queues and drops, by endpoint. They count once it is committed."""

    written: dict[str, int] = {}
    dropped: dict[str, int] = {}


class Backlog:
    """The endpoints, their kinds, and how many deliveries wait for each. Limits the log lines of a flood of drops."""

    def __init__(
        self, webhooks: Iterable[WebhookSettings], version: str, monotonic: Callable[[], float] = time.monotonic,
        max_waiting: int = MAX_WAITING,
    ) -> None:  # fmt: skip
        self.endpoints: tuple[WebhookSettings, ...] = ()
        self.configured: frozenset[str] = frozenset()
        """Names of all that are configured, disabled ones among them."""
        self.version = version
        self.max_waiting = max_waiting
        """For each endpoint."""
        self.attempts: dict[str, Counter[str]] = {}
        """Endpoint -> outcome -> attempts, since the notary started."""
        self.drops: dict[str, Counter[str]] = {}
        """Endpoint -> reason -> deliveries that will never arrive, likewise."""
        self._monotonic = monotonic
        self.waiting: dict[str, int] = {}
        self._say_at: dict[str, float] = {}
        self.use(webhooks)

    def use(self, webhooks: Iterable[WebhookSettings]) -> None:
        """Use these endpoints from now on; `found` counts their deliveries."""
        rows = tuple(webhooks)
        self.endpoints = tuple(row for row in rows if not row.disable)
        self.configured = frozenset(row.name for row in rows)
        names = [row.name for row in self.endpoints]
        self.waiting = {name: self.waiting.get(name, 0) for name in names}
        self._say_at = {name: self._say_at.get(name, 0.0) for name in names}

    def found(self, waiting: Mapping[str, int]) -> None:
        """Take the counts of the outbox; an endpoint without a count has no delivery."""
        self.waiting = {name: waiting.get(name, 0) for name in self.waiting}

    def has_room(self, name: str, queued: Queued) -> bool:
        """Count one more that is about to wait; False when it must be dropped, which is counted too."""
        is_room = self.waiting[name] + queued.written.get(name, 0) < self.max_waiting
        counts = queued.written if is_room else queued.dropped
        counts[name] = counts.get(name, 0) + 1
        return is_room

    def follow(self, queued: Queued) -> None:
        """Count the deliveries of a committed transaction, and log those that it dropped."""
        for name, count in queued.written.items():
            self.waiting[name] += count
        for name, count in queued.dropped.items():
            self.note_drops(name, "outbox_full", count)
            now = self._monotonic()
            if now >= self._say_at[name]:
                dropped = self.drops[name]["outbox_full"]
                log.warning("webhooks are dropped: too many wait", endpoint=name, dropped=dropped)
                self._say_at[name] = now + SAY_AGAIN_SECONDS

    def less(self, name: str, count: int = 1) -> None:
        """Count deliveries that do not wait any more."""
        if name in self.waiting:
            self.waiting[name] = max(0, self.waiting[name] - count)

    def note_drops(self, name: str, reason: str, count: int = 1) -> None:
        """Count and log deliveries that will never arrive."""
        self.drops.setdefault(name, Counter())[reason] += count

    def note_settled(self, name: str, settled: SettleDelivery, *, waits: bool) -> None:
        """An attempt was made; `waits`: it did not end the delivery."""
        is_delivered = settled.due is None and settled.error is None
        self.attempts.setdefault(name, Counter())["delivered" if is_delivered else "failed"] += 1
        if waits:
            return
        self.less(name)
        if not is_delivered:
            self.note_drops(name, settled.reason if settled.reason in GIVEN_UP_FOR else OTHER)
