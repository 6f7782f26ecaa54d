"""The supervisor asks the serving notary to cut the ledger at the end of a segment that was written."""

import msgspec

from ipc.messages.sealing import CutLedger, LedgerCut
from ipc.process.logs import log
from notary.operations.cutting import CutOff, SealedRange
from notary.units.runner import TransactionRunner
from notary.units.tasks import Task


def cut_ledger(units: TransactionRunner, asked: CutLedger) -> LedgerCut:
    """Do it, as a unit of its own; the answer. Without a segment nothing is cut: all that was asked before is done."""
    if not asked.sealed:
        return LedgerCut(asked.request_id)
    try:
        sealed = msgspec.json.decode(asked.sealed, type=SealedRange)
    except msgspec.MsgspecError as error:
        return LedgerCut(asked.request_id, problem=f"no segment of a ledger: {error}", is_refused=True)
    done = units.perform((Task("", 0, CutOff(sealed)),))[0]
    if isinstance(done.value, int):
        return LedgerCut(asked.request_id, done.value)
    log.warning("the ledger could not be sealed", segment=sealed.end.segment, cause=done.cause)
    return LedgerCut(asked.request_id, problem=done.cause or done.problem, is_refused=done.problem == "refused")
