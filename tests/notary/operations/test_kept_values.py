"""Kept values: commitments in the event of a call, and rows with value and salt beside the ledger."""

from typing import Any

import msgspec
import pytest

from ipc.evidence.kept_values import KeptValue, KeptValues, commitment
from ipc.operations.calls import ProofRecord, Refuse, UseProof
from notary.ledger.kept_values import stored_values
from tests.notary.running import Running
from tests.notary.samples import NOW, call_event, held_and_claimed, make_approval, make_denial, make_hold, make_open
from tests.support.asking import Told

KEPT = KeptValues((KeptValue("/amount", "100"), KeptValue("/iban", '"3000"', "masked")), "{amount}")
DENIED = {"decision": "deny", "error_code": "policy_denied"}
ROWS = "SELECT * FROM kept_values"


def rows_of(notary: Running, event: dict[str, Any]) -> dict[str, tuple[str, bytes, bytes]]:
    """pointer -> (kind, value, salt) of an event's rows, whose number is the event's."""
    key = event.get("intent_id") or event["event_id"]
    seq = notary.stored("SELECT seq FROM events WHERE event_id = ?", event["event_id"])[0]
    assert set(notary.stored("SELECT seq FROM kept_values WHERE key = ?", key)) == {seq}
    with notary.stranger() as connection:
        found = stored_values(connection, key)
    return {row.pointer: (row.kind, row.value or b"", row.salt or b"") for row in found}


def has_kept(notary: Running, event: dict[str, Any]) -> None:
    rows = rows_of(notary, event)
    assert {pointer: (kind, value) for pointer, (kind, value, _) in rows.items()} == {
        "/amount": ("kept", b"100"), "/iban": ("masked", b'"3000"'),
    }  # fmt: skip
    assert all(len(salt) == 16 for _, _, salt in rows.values())
    assert event["kept"] == {pointer: commitment(salt, value) for pointer, (_, value, salt) in rows.items()}
    assert event["summary_template"] == "{amount}"


def test_a_call_that_ran_has_its_kept_values(notary: Running) -> None:
    notary.front.ask(make_open(kept=KEPT))
    notary.stop()
    has_kept(notary, notary.last_event())


def test_held_denied_and_refused_calls_have_theirs_each_with_its_own_salt(notary: Running) -> None:
    approval = make_approval()
    notary.front.ask(make_hold(approval, kept=KEPT))
    held = notary.last_event()
    notary.front.ask(Refuse(call_event(**DENIED), ProofRecord("p", NOW), kept=KEPT))
    refused = notary.last_event()
    notary.stop()
    has_kept(notary, held)
    has_kept(notary, refused)
    assert held["kept"] != refused["kept"]


def test_an_approval_that_is_denied_has_the_values_of_its_call(notary: Running) -> None:
    approval = held_and_claimed(notary.front)
    notary.front.ask(msgspec.structs.replace(make_denial(approval), kept=KEPT))
    notary.stop()
    has_kept(notary, notary.last_event())


def test_a_proof_that_was_used_keeps_nothing(notary: Running) -> None:
    notary.front.ask(UseProof(ProofRecord("p", NOW)))
    notary.front.ask(Refuse(call_event(**DENIED), ProofRecord("p", NOW), kept=KEPT))
    notary.front.ask(make_open(proof=ProofRecord("p", NOW), kept=KEPT))
    notary.stop()
    assert all("kept" not in event for event in notary.events())
    assert notary.stored(ROWS) == []


def test_a_call_without_kept_values_writes_no_row(notary: Running) -> None:
    notary.front.ask(make_open())
    notary.stop()
    assert "kept" not in notary.last_event()
    assert notary.stored(ROWS) == []


@pytest.mark.parametrize(
    "kept",
    [
        KeptValues(tuple(KeptValue(f"/{number}", "1") for number in range(33))),
        KeptValues((KeptValue("/a", "1"), KeptValue("/a", "2"))),
        KeptValues((KeptValue("/a", "9" * 1025),)),
        KeptValues((KeptValue("/a", "1", "other"),)),
        *(
            KeptValues((KeptValue("/a", text),))
            for text in ("1a", "-", "1.0", "01", "1e999999", "9" * 400, "null", "[1]", "{}", "abc", '"a', "")
        ),
    ],
)
def test_values_that_no_front_reads_are_refused(notary: Running, kept: KeptValues) -> None:
    with pytest.raises(Told):
        notary.front.ask(Refuse(call_event(**DENIED), ProofRecord("p", NOW), kept=kept))
    assert notary.stored(ROWS) == []


def test_commitments_of_a_fronts_own_making_are_refused(notary: Running) -> None:
    with pytest.raises(Told):
        notary.front.ask(Refuse(call_event(**DENIED, kept={"/a": "sha256:" + "0" * 64}), ProofRecord("p", NOW)))
