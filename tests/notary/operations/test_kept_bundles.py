"""Bundles of calls that keep values, as the notary makes them and the client library verifies them."""

import json

import msgspec
import pytest
from gateway_client import BundleVerdict, verify_bundle

from contract.evidence import Bundle
from ipc.evidence.kept_values import KeptValue, KeptValues
from ipc.operations.calls import Closed
from ipc.operations.erasing import EraseKept
from ipc.operations.evidence import Prove
from tests.notary.running import Running
from tests.notary.samples import ERASED, call_event, make_note, make_open, record_call

CALL = call_event(action_version="1.0.0", request_hash="sha256:" + "a" * 64)
TEXT = 'a "b"\\ \u2028\x1f€𝄞<&>'
VALUES = {"/amount": 100, "/iban": "3000", "/large": 10**16, "/note": TEXT, "/share": 1e-7, "/urgent": True}
KEPT = KeptValues(
    (
        KeptValue("/amount", "100"), KeptValue("/iban", '"3000"', "masked"), KeptValue("/large", "10000000000000000"),
        KeptValue("/note", '"a \\"b\\"\\\\ \u2028\\u001f€𝄞<&>"'), KeptValue("/share", "1e-7"),
        KeptValue("/urgent", "true"),
    ),
    "{amount}",
)  # fmt: skip
OTHERS = "SELECT value, salt FROM kept_values WHERE pointer = '/share'"


def call(notary: Running, trace_id: str = "trc_own") -> str:
    closed = notary.front.ask(make_open(event=msgspec.structs.replace(CALL, trace_id=trace_id), kept=KEPT))
    assert isinstance(closed, Closed)
    return closed.receipt_id


def bundle_of(notary: Running, receipt_id: str) -> Bundle:
    bundle: Bundle = notary.front.ask(Prove(receipt_id=receipt_id))
    return bundle


def verdict_of(notary: Running, bundle: Bundle) -> BundleVerdict:
    keys = json.loads((notary.folder / "receipt-keys.jwks.json").read_bytes())
    assert bundle.keys is not None
    return verify_bundle(msgspec.json.encode(bundle), origin_keys=bundle.keys.checkpoints, receipt_keys=keys)


def test_a_bundle_proves_the_kept_values_of_its_call(notary: Running) -> None:
    verdict = verdict_of(notary, bundle_of(notary, call(notary)))
    assert verdict.call is not None, verdict.sentence
    assert verdict.call.kept == VALUES
    assert type(verdict.call.kept["/urgent"]) is bool
    assert verdict.call.erased == ()


def test_a_bundle_proves_which_values_were_erased_and_by_which_event(notary: Running) -> None:
    receipt_id = call(notary)
    call(notary, "trc_other")
    notary.front.ask(EraseKept(ERASED, event_id=notary.last_event()["event_id"]))
    assert "erasures" not in msgspec.to_builtins(bundle_of(notary, receipt_id)), "of another call"
    notary.front.ask(EraseKept(ERASED, principal="uid:1000"))
    notary.front.ask(make_note())
    bundle = bundle_of(notary, receipt_id)
    verdict = verdict_of(notary, bundle)
    assert verdict.call is not None, verdict.sentence
    assert (verdict.call.kept, verdict.call.erased) == ({}, tuple(VALUES))
    assert len(bundle.erasures) == 1
    notary.restart()
    assert verdict_of(notary, bundle_of(notary, receipt_id)).is_proven


def test_the_bundle_of_an_event_and_of_an_intent_has_the_values_too(notary: Running) -> None:
    receipt_id = call(notary)
    event = notary.last_event()
    asked = (Prove(event_id=event["event_id"]), Prove(intent_id=event["intent_id"]))
    assert [notary.front.ask(one) for one in asked] == [bundle_of(notary, receipt_id)] * 2


def test_the_bundle_of_a_call_that_keeps_nothing_has_no_such_member(notary: Running) -> None:
    _, closed = record_call(notary.front)
    assert not {"kept", "erasures"} & set(msgspec.to_builtins(bundle_of(notary, closed.receipt_id or "")))


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("DELETE FROM kept_values WHERE pointer = '/amount'", "missing"),
        ("DELETE FROM kept_values", "missing"),
        ("UPDATE kept_values SET value = CAST('101' AS BLOB) WHERE pointer = '/amount'", "missing"),
        (f"UPDATE kept_values SET (value, salt) = ({OTHERS}) WHERE pointer = '/amount'", "kept_value"),
        ("UPDATE kept_values SET salt = randomblob(16) WHERE pointer = '/amount'", "missing"),
        ("UPDATE kept_keys SET keys = zeroblob(length(keys))", "missing"),
        ("DELETE FROM kept_keys", "missing"),
        ("UPDATE kept_values SET pointer = '/other' WHERE pointer = '/amount'", "kept_value"),
        ("UPDATE kept_values SET value = NULL, salt = NULL", "missing"),
        ("UPDATE kept_values SET value = NULL, salt = NULL, erased_by = (SELECT max(seq) FROM events)",
         "event_malformed"),
        ("UPDATE kept_values SET value = NULL, salt = NULL, erased_by = 99999", "missing"),
    ],
)  # fmt: skip
def test_a_bundle_of_changed_rows_proves_nothing(notary: Running, statement: str, reason: str) -> None:
    receipt_id = call(notary)
    notary.front.ask(make_note())
    notary.stop()
    with notary.stranger() as connection:
        assert connection.execute(statement).rowcount > 0
    notary.start()
    assert verdict_of(notary, bundle_of(notary, receipt_id)).reason == reason


def test_an_erasure_of_another_call_does_not_stand_for_a_dropped_row(notary: Running) -> None:
    receipt_id = call(notary)
    call(notary, "trc_other")
    notary.front.ask(EraseKept(ERASED, event_id=notary.last_event()["event_id"]))
    notary.stop()
    notary.execute(
        "UPDATE kept_values SET value = NULL, salt = NULL,"
        " erased_by = (SELECT max(erased_by) FROM kept_values) WHERE value IS NOT NULL"
    )
    notary.start()
    assert verdict_of(notary, bundle_of(notary, receipt_id)).reason == "missing"
