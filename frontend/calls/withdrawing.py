"""Giving up a call that the notary may have opened. The notary gives it back unless it has begun.

A withdrawal is asked once. Its answer decides whether the refusal of the call is already in evidence, which the call's
record then knows.
"""

from contextlib import suppress

import trio

from frontend.calls.record import CallRecord
from frontend.clock import ClockError
from frontend.errors import GateError
from frontend.notary.client import NotaryClient
from frontend.notary.errors import NotaryRefused, NotaryUnavailable
from frontend.notary.pending import PendingOperation
from frontend.telemetry.logs import log
from ipc.operations.calls import Open, Refusal, RepeatedCall, Withdraw, Withdrawn


def begin_withdrawal(notary: NotaryClient, record: CallRecord, opened: Open, error: GateError) -> None:
    """Tell the notary that the call is given up, before its worker ends: then nothing would be left to withdraw.

    Raises nothing: `withdraw` tells it once more if it can't be told now.
    """
    if record.withdrawal is None:
        with suppress(NotaryUnavailable, NotaryRefused):
            record.withdrawal = _told(notary, opened, error)


async def withdraw(
    notary: NotaryClient, record: CallRecord, opened: Open, error: GateError, seconds: float
) -> None:  # fmt: skip
    """Withdraw the call, and wait for the answer at most this long, even if the task is cancelled. Raises nothing.

    There may be an intent, and its worker may have the permit to run.
    """
    record.is_dispatched = True
    try:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + seconds):
            answer = await notary.answer_of(record.withdrawal or _told(notary, opened, error))
            # A call that is not abandoned is cut: its event is written by now, or when its worker ends.
            record.is_abandoned, record.is_decided = answer.is_abandoned, True
    except NotaryRefused:
        record.is_dispatched = False  # there is no such intent
        record.unanswered = opened.intent_id  # or a next notary ended it, as one whose worker is gone, with its event
        late = None if record.opening is None else notary.late_answer_of(record.opening)
        if isinstance(late, Refusal):  # it was refused after its time, with an event
            record.is_decided, record.held = True, late.held
        if isinstance(late, RepeatedCall):
            record.is_decided, record.repeated = True, late
    except (NotaryUnavailable, ClockError) as problem:
        log.error("a call may have run without evidence", intent_id=opened.intent_id, cause=str(problem))


def withdrawal(opened: Open, error: GateError) -> Withdraw:
    """The question that withdraws the call for this reason."""
    decision = "error" if error.status >= 500 else "deny"
    return Withdraw(opened.intent_id, decision, error.code, error.cause, error.failure)


def _told(notary: NotaryClient, opened: Open, error: GateError) -> PendingOperation[Withdrawn]:
    """Send the withdrawal now. Raises NotaryUnavailable, NotaryRefused."""
    begun = notary.begin(withdrawal(opened, error))
    notary.flush()
    return begun
