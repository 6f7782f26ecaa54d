"""The records that events name: receipts, ended intents and the epoch. The walk counts each of them and reports a
missing one."""

import json
import sqlite3
from typing import Any

import pytest

from ipc.texts.canonical import sha256_hex
from notary.ledger.page_ring import IntentRow, RingEntry
from notary.ledger.receipts import encode_receipt
from notary.reading.named_walk import NamedWalk
from notary.reading.verify import Break, Stored
from notary.signing.receipt_keys import ReceiptKeys
from tests.notary.reading.tampered import found
from tests.notary.samples import JWKS, make_receipt

KEYS = ReceiptKeys(JWKS)
TIME = "2026-11-23T05:00:00.000Z"


def stored(number: int, **given: Any) -> Stored:
    return Stored(**({"event_id": f"evt_{number}", "event_type": "ActionCall", "timestamp": TIME} | given))


def row_of(number: int, change: object = None) -> tuple[Any, ...]:
    return (number, *[""] * 8, json.dumps({"change": change}).encode())


class Named:
    """Events with their receipts, as a ledger would have them."""

    def __init__(self, connection: sqlite3.Connection, walk: NamedWalk) -> None:
        self.connection, self.walk, self.number = connection, walk, 0
        self.rows: list[tuple[Any, ...]] = []
        self.events: list[Stored] = []

    def add(self, *, change: object = None, **given: Any) -> int:
        self.number += 1
        self.rows.append(row_of(self.number, change))
        self.events.append(stored(self.number, **given))
        return self.number

    def add_receipt(self, *, kept: dict[str, Any] | None = None, **told: Any) -> None:
        """An event that names a receipt: `told` is what it says else, `kept` what lies beside it else."""
        receipt = make_receipt()
        encoded = encode_receipt(receipt)
        beside = {"receipt_id": receipt.receipt_id, "approval_id": None, "bytes": encoded} | (kept or {})
        number = self.add(**({"receipt_id": receipt.receipt_id, "receipt_hash": sha256_hex(encoded)} | told))
        self.connection.execute("INSERT INTO receipts VALUES (?, ?, ?, ?)", (number, *beside.values()))

    def step(self) -> Break | None:
        rows, events, self.rows, self.events = self.rows, self.events, [], []
        return self.walk.step(self.connection, rows, events)


@pytest.fixture(params=[None, KEYS], ids=["without keys", "with keys"])
def named(connection: sqlite3.Connection, request: pytest.FixtureRequest) -> Named:
    return Named(connection, NamedWalk(request.param))


def intents(connection: sqlite3.Connection, *numbers: int, waiting: bool = False) -> None:
    for number in numbers:
        connection.execute(
            "INSERT INTO intents (seq, intent_id, trace_id, action_id, principal, dispatched_at, grant_id,"
            " provider_module, plan_hash) VALUES (?, ?, 'trc', '', '', '', '', '', '')", (number, f"intent_{number}"),
        )  # fmt: skip
        if waiting:
            connection.execute("INSERT INTO unresolved VALUES (?, ?)", (f"intent_{number}", number))


def test_receipts_are_counted_step_by_step(connection: sqlite3.Connection, named: Named) -> None:
    assert named.step() is None
    for count in (1, 3, 2):
        for _ in range(count):
            named.add_receipt()
        named.add()
        assert named.step() is None
    assert named.walk.receipts == 6
    assert named.walk.end(connection, []) is None


@pytest.mark.parametrize(
    ("kept", "told", "reason"),
    [
        ({"receipt_id": "rcpt_x"}, {}, "and the one beside it is rcpt_x"),
        ({}, {"receipt_id": None}, "it names the receipt None"),
        ({}, {"receipt_id": "rcpt_x"}, "it names the receipt rcpt_x"), ({"approval_id": "apr"}, {}, "the columns of"),
        ({}, {"approval_id": "apr"}, "the columns of its receipt"), ({"bytes": b"{}"}, {}, "not those of a receipt"),
        ({"receipt_id": "r"}, {"receipt_id": "r", "receipt_hash": None}, "the columns of its receipt r"),
        ({}, {"receipt_hash": "sha256:x"}, "not the one whose hash it has"),
    ],
)  # fmt: skip
def test_a_receipt_that_is_not_what_its_event_says_is_a_break(
    named: Named, kept: dict[str, Any], told: dict[str, Any], reason: str
) -> None:
    named.add_receipt()
    named.add_receipt(kept=kept, **told)
    broken = found(named.step())
    assert (broken.event_id, broken.seq, reason in broken.reason) == ("evt_2", 2, True), broken
    assert named.walk.receipts == 1


def test_a_receipt_that_is_not_there_is_a_break(named: Named) -> None:
    named.add(receipt_id="rcpt_1")
    assert "it names the receipt rcpt_1, and the one beside it is None" in found(named.step()).reason


def test_a_receipt_older_than_hashes_is_verified_by_its_signature(connection: sqlite3.Connection) -> None:
    known = Named(connection, NamedWalk(KEYS))
    known.add_receipt(receipt_hash=None)
    assert known.step() is None
    connection.execute("DELETE FROM receipts")
    unknown = Named(connection, NamedWalk(ReceiptKeys({"keys": []})))
    unknown.add_receipt(receipt_hash=None)
    assert "is signed by a key that the key file does not list" in found(unknown.step()).reason


def test_an_intent_ends_by_one_event_and_one_that_only_looked_ends_none(
    connection: sqlite3.Connection, named: Named
) -> None:
    intents(connection, 1, 2)
    intents(connection, 3, waiting=True)
    for number in (1, 2):
        named.add(intent_id=f"intent_{number}")
    named.add(intent_id="intent_3", event_type="IntentVerification")
    named.add()
    assert named.step() is None
    assert named.walk.end(connection, []) is None
    assert named.walk.unresolved == 1
    connection.execute("DELETE FROM unresolved")
    assert "3 intents are there, 2 resolved by events and 0 open" in found(named.walk.end(connection, [])).reason


def test_entries_in_the_journal_alone_count_too(connection: sqlite3.Connection, named: Named) -> None:
    intents(connection, 1, waiting=True)
    row: IntentRow = ("intent_2", "trc", "", "", "", "", "", "", None, "", b"")
    receipt = make_receipt()
    encoded = encode_receipt(receipt)
    event = stored(1, intent_id="intent_1", receipt_id=receipt.receipt_id, receipt_hash=sha256_hex(encoded))
    assert named.walk.check([row_of(1)], [event], {1: (receipt.receipt_id, None, encoded)}) is None
    entries = [RingEntry(intents=[row], resolved=["intent_1"], receipts=[(1, receipt.receipt_id, None, encoded)])]
    assert named.walk.end(connection, entries) is None
    assert named.walk.unresolved == 1
    broken = found(named.walk.end(connection, [RingEntry(intents=[row], resolved=["intent_1"])]))
    assert broken.reason == "receipts that belong to no event: -1"


def test_every_unresolved_row_is_an_intent_without_an_ending_event(
    connection: sqlite3.Connection, named: Named
) -> None:
    intents(connection, 1, waiting=True)
    connection.execute("UPDATE unresolved SET seq = 7")
    broken = found(named.walk.end(connection, []))
    assert (broken.event_id, broken.seq) == ("intent_1", None)
    connection.execute("UPDATE unresolved SET seq = 1")
    connection.execute(
        "INSERT INTO events (seq, event_id, event_type, time, trace_id, bytes) VALUES (5, 'evt_5', 'ActionCall', 0,"
        " 'trc', CAST('{\"intent_id\":\"intent_1\"}' AS BLOB))"
    )
    broken = found(named.walk.end(connection, []))
    assert (broken.event_id, broken.seq) == ("evt_5", 5)
    connection.execute("UPDATE events SET event_type = 'IntentVerification'")
    assert named.walk.end(connection, []) is None


def test_the_epoch_in_force_is_not_below_what_any_event_raised_it_to(
    connection: sqlite3.Connection, named: Named
) -> None:
    connection.execute("UPDATE epochs SET epoch = 4")
    assert named.walk.check_epoch(connection) is None
    for raised in (2, 4, 3):
        named.add(event_type="AdminRevokeAll", change={"current_epoch": raised})
    assert named.step() is None
    assert named.walk.check_epoch(connection) is None
    connection.execute("UPDATE epochs SET epoch = 3")
    broken = named.walk.check_epoch(connection)
    assert broken == Break("evt_2", 2, "it raised the epoch to 4, and the one in force is 3")
    connection.execute("DELETE FROM epochs")
    assert found(named.walk.check_epoch(connection)).reason.endswith("the one in force is none")


@pytest.mark.parametrize("damaged", [None, "four", b"\xff", 4.5])
def test_a_byte_that_makes_the_epoch_no_number_is_found(
    connection: sqlite3.Connection, named: Named, damaged: object
) -> None:
    named.add(event_type="AdminRevokeAll", change={"current_epoch": 4})
    assert named.step() is None
    connection.execute("DROP TABLE epochs")
    connection.execute("CREATE TABLE epochs (id, epoch)")  # as the file has it then: no constraint held this back
    connection.execute("INSERT INTO epochs VALUES (1, ?)", (damaged,))
    broken = found(named.walk.check_epoch(connection))
    assert (broken.event_id, broken.seq, broken.reason[-5:]) == ("evt_1", 1, " none")
