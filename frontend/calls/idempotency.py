"""`Idempotency-Key`: reads the key of a call, and makes the answer of a call that was made before under it.

The header is that of draft-ietf-httpapi-idempotency-key-header: a quoted string (RFC 9651 §3.3.3). A bare token is the
same key. Which call has a key, and how it ended, is the notary's to say (notary/operations/idempotency.py).
"""

import re
from typing import Final

from frontend.actions.registry import Action
from frontend.calls.awaiting import awaited
from frontend.calls.executed import CallOutcome, ExecutedCall
from frontend.calls.record import CallRecord
from frontend.errors import GateError
from frontend.http.requests import Request
from frontend.notary.client import NotaryClient
from frontend.notary.errors import NotaryRefused, NotaryUnavailable
from ipc.operations.calls import CallKey, RepeatedCall
from ipc.operations.idempotency import ReadKeptOutput
from ipc.texts.foreign_texts import clean_reason

HEADER: Final = "idempotency-key"
MAX_CHARACTERS: Final = 255
_QUOTED: Final = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])*)"')
_TOKEN: Final = re.compile(r"[A-Za-z0-9._-]+")
_ESCAPED: Final = re.compile(r'\\(["\\])')


def call_key(request: Request, action: Action) -> CallKey | None:
    """The key of a call; None without the header. Raises GateError invalid_idempotency_key."""
    values = [value for name, value in request.headers if name == HEADER]
    if not values:
        return None
    if len(values) > 1:
        raise GateError("invalid_idempotency_key", reason="the header stands in the request twice")
    value = values[0].strip(" \t")
    if quoted := _QUOTED.fullmatch(value):
        key = _ESCAPED.sub(r"\1", quoted[1])
    elif _TOKEN.fullmatch(value):
        key = value
    else:
        raise GateError("invalid_idempotency_key", reason="it must be a quoted string or a token")
    if not 1 <= len(key) <= MAX_CHARACTERS:
        raise GateError("invalid_idempotency_key", reason=f"it must have 1 to {MAX_CHARACTERS} characters")
    return CallKey(key, action.manifest.keep_output)


async def outcome_of(notary: NotaryClient, record: CallRecord, repeated: RepeatedCall) -> CallOutcome:
    """The answer to a call that was made before. Raises GateError where that is an error."""
    if repeated.held is not None:
        return awaited(record, repeated.held, is_replayed=True)
    closed = repeated.closed
    if repeated.code is None and closed is not None:
        if closed.kind != "success":
            exposes = record.action is not None and record.action.manifest.expose_provider_error
            executed = ExecutedCall(repeated.trace_id, record.action_id, closed, None, exposes, is_replayed=True)
            raise executed.failure()
        output = await _kept_output(notary, repeated.call_id)
        if output is not None:
            return ExecutedCall(repeated.trace_id, record.action_id, closed, output, is_replayed=True)
    raise _error_of(repeated)


def _error_of(repeated: RepeatedCall) -> GateError:
    error = GateError(repeated.code or "already_executed", cause=f"the key is that of {repeated.call_id}")
    if error.code == "policy_denied":
        error.extra["deny_reason"] = clean_reason(repeated.deny_reason or "an operator denied it")
    error.is_replayed = repeated.code not in ("call_in_progress", "idempotency_key_reused")
    if repeated.closed is not None:
        error.receipt_id = repeated.closed.receipt_id
    error.intent_id = repeated.intent_id
    return error


async def _kept_output(notary: NotaryClient, call_id: str) -> str | None:
    """None where it is not kept any more, or can't be read now: the receipt tells that the call was executed."""
    try:
        return await notary.ask(ReadKeptOutput(call_id))
    except (NotaryUnavailable, NotaryRefused):
        return None
