"""Bundles of calls that keep values, of a ledger on PostgreSQL."""

from ipc.operations.erasing import EraseKept
from tests.notary.operations.test_kept_bundles import VALUES, bundle_of, call, verdict_of
from tests.notary.running import Running
from tests.notary.samples import ERASED


def test_a_shared_ledger_proves_kept_values_and_their_erasure(notary: Running) -> None:
    receipt_id = call(notary)
    told = verdict_of(notary, bundle_of(notary, receipt_id)).call
    assert told is not None
    assert told.kept == VALUES
    notary.front.ask(EraseKept(ERASED, principal="uid:1000"))
    told = verdict_of(notary, bundle_of(notary, receipt_id)).call
    assert told is not None
    assert (told.kept, told.erased) == ({}, tuple(VALUES))
