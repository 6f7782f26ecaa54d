"""The errors of the library, a small tree of exceptions; read `code`, never the text.

Codes are those of the gateway's error table where the gateway answered, and a few of this library's own where it did
not (see each class). Guarantees that no token, key or proof is ever part of an error, whatever a server answers.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, get_args

from gateway_client.contract.failures import FAILURE_HEADER, MAY_HAVE_RUN_HEADER, FailureName, MayHaveRun
from gateway_client.hints import HINTS, OF_NOT_RUN, hint_for
from gateway_client.visible import has_looks

MAX_REASON = 500
MAX_SUGGESTIONS = 5
MAX_VIOLATIONS = 16
_MAY_BE_WRITTEN = {
    "approval_store_unavailable", "epoch_store_unavailable", "evidence_store_unavailable", "learned_rules_unavailable",
}  # fmt: skip
_MAY_PASS = {"upstream_unreachable", "upstream_reset", "upstream_timeout", "worker_lost"}
_NOT_REPEATABLE = {"identity_provider_unavailable"}
_CODE = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)
_TRACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)


class GatewayError(Exception):
    """The base of everything this library raises for an outcome of a call.

    `code`: stable, for programs. `status`: the HTTP status, None when there was no answer. `reason`: why, where the
    gateway says so (`deny_reason`, `reason` or `message` of the answer; of an action that failed, its own words where
    its manifest lets them out), control characters removed. `retry_after`: seconds to wait before asking again. `rule`:
    of the policy that denied it. `violations`: every place of a request that does not fit its schema, where there are
    several. `suggestions`: names that are close to one that is not known. `trace_id`: what the gateway's log and audit
    know this call by. `approval_id` and `receipt_id`: the hold and the receipt that the error is about, where they are
    known. `intent_id`: of a call whose outcome is unknown. `failure`: why an action failed, and `effect`: whether it
    may have had its effect (`no`, `yes` or `unknown`); both where the gateway says so (its docs/errors.md).
    `idempotency_key`: the key that an execute was sent under; the same call under it is answered with its outcome, by a
    gateway that has `GET /v1/calls`. `knows_keys`: the gateway that may have taken the call knows such keys.
    """

    def __init__(
        self,
        code: str,
        *,
        status: int | None = None,
        reason: str | None = None,
        retry_after: float | None = None,
        trace_id: str | None = None,
        receipt_id: str | None = None,
        suggestions: tuple[str, ...] = (),
        violations: tuple[str, ...] = (),
        rule: str | None = None,
    ) -> None:
        self.code = code if _CODE.fullmatch(code) else "unknown_error"
        self.status = status
        self.reason = None if reason is None else clean(reason)
        self.retry_after = retry_after
        self.trace_id = trace_id if trace_id is not None and _TRACE.fullmatch(trace_id) else None
        self.approval_id: str | None = None
        self.intent_id: str | None = None
        self.idempotency_key: str | None = None
        self.knows_keys = False
        self.failure: FailureName | None = None
        self.effect: MayHaveRun | None = None
        self.receipt_id = receipt_id if receipt_id is not None and _TRACE.fullmatch(receipt_id) else None
        self.violations = tuple(clean(one) for one in violations[:MAX_VIOLATIONS])
        self.rule = None if rule is None else clean(rule)
        self.suggestions = tuple(clean(one) for one in suggestions[:MAX_SUGGESTIONS])
        super().__init__(self.code)

    def __str__(self) -> str:
        text = self.code if self.status is None else f"{self.code} ({self.status})"
        told = "; ".join(self.violations) or self.reason
        if told:
            text = f"{text}: {told}"
        if self.suggestions:
            text = f"{text}: did you mean {' or '.join(self.suggestions)}?"
        return text if self.trace_id is None else f"{text} [{self.trace_id}]"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    @property
    def may_have_run(self) -> bool:
        """True when what was asked for may have happened all the same: look before asking again.

        False only where the gateway refused, or where nothing was ever sent. A refusal to tell of a hold says nothing
        about its call, which an operator may approve.
        """
        if self.approval_id is not None:
            return True
        return self.status is not None and self.status >= 500 and self.status != 503

    @property
    def is_retryable(self) -> bool:
        """True when the same call, unchanged, is worth another try after `retry_after` and can't happen twice by it."""
        return False

    @property
    def hint(self) -> str:
        """The next step, as one sentence for the caller. For people and models; programs read `code`."""
        return hint_for(self.code, self.status)


class AuthenticationFailed(GatewayError):
    """401: lease, proof or operator credential do not hold."""

    @property
    def is_retryable(self) -> bool:
        """True for `replay_detected`: the next attempt has a proof of its own."""
        return self.code == "replay_detected" and not self.may_have_run

    @property
    def hint(self) -> str:
        """As its code says, or that the call still waits."""
        return HINTS["approval_pending"] if self.may_have_run else super().hint


class Denied(GatewayError):
    """403: understood, and not allowed. `reason` is the policy's deny_reason."""


class ApprovalDenied(Denied):
    """An operator denied the held call (code `approval_denied`)."""

    @property
    def may_have_run(self) -> bool:
        """False."""
        return False


class NotFound(GatewayError):
    """404: no such action, approval, receipt, entry or route."""


class Conflict(GatewayError):
    """409: what is there already, or has moved on since, prevents it."""


class ApprovalEnded(Conflict):
    """The hold is over without a result. Codes: `approval_expired` (not decided in time), `approval_failed` (approved,
    but not executed, or with an unknown outcome)."""

    @property
    def may_have_run(self) -> bool:
        """False for what expired."""
        return self.code != "approval_expired"

    @property
    def is_retryable(self) -> bool:
        """True for what expired: nothing ran, and calling again asks for another decision."""
        return self.code == "approval_expired"


class OutcomeUnknown(Conflict):
    """The same call was made before under its idempotency key, and may have run. Codes: `outcome_unknown` (it has no
    receipt and is never run again; an operator resolves `intent_id`), `call_in_progress` (it still runs)."""

    @property
    def may_have_run(self) -> bool:
        """True."""
        return True


class AlreadyExecuted(Conflict):
    """The call was executed, before under its idempotency key or after its approval, and there is no result to return
    (code `already_executed`): its receipt (`receipt_id`) can't be read here, or an operator has said that it happened
    (`intent_id`)."""

    @property
    def may_have_run(self) -> bool:
        """True: it has."""
        return True


class ApprovalPending(GatewayError):
    """The hold is undecided and the wait is over (code `approval_pending`). `approval_id` can be polled on.

    When the lease that the call was held under has run out, polling it is over too: its `reason` says so.
    """

    @property
    def may_have_run(self) -> bool:
        """True: an operator may approve it at any time."""
        return True


class ApprovalsMissing(GatewayError):
    """An operator's approval is stored, and others must follow before the call runs (code `approvals_missing`).
    `given` of `needed` approvals are there."""

    def __init__(self, given: int, needed: int) -> None:
        super().__init__("approvals_missing", status=202, reason=f"{given} of {needed} approvals are given")
        self.given = given
        self.needed = needed


class Invalid(GatewayError):
    """400, 405, 408, 413, 415, 422, 431: the request is wrong. For 422, `reason` is JSON pointer and keyword."""


class RateLimited(GatewayError):
    """429: too many requests at once. The call was not made; ask again after `retry_after`."""

    @property
    def is_retryable(self) -> bool:
        """True."""
        return True


class Unavailable(GatewayError):
    """503: a dependency is missing or the gateway is overloaded. The call was not dispatched."""

    @property
    def may_have_run(self) -> bool:
        """True where a store failed while it was writing: a hold, a decision or a change may be in it all the same."""
        return self.code in _MAY_BE_WRITTEN

    @property
    def is_retryable(self) -> bool:
        """True, except where something may be written, or where another socket has to be asked."""
        is_of_this_socket = self.code in _NOT_REPEATABLE and self.retry_after is None
        return not self.may_have_run and not is_of_this_socket


class ActionFailed(GatewayError):
    """502: the provider ran and failed, or hit a limit; its receipt (`receipt_id`) says which, `failure` why."""

    @property
    def may_have_run(self) -> bool:
        """False only where the gateway says that it has not."""
        return self.effect != "no"

    @property
    def is_retryable(self) -> bool:
        """True for a failure that may pass, of a call that has not run."""
        return not self.may_have_run and self.failure in _MAY_PASS

    @property
    def hint(self) -> str:
        """As its code says, or that nothing was sent."""
        return super().hint if self.may_have_run else OF_NOT_RUN


class GatewayFault(GatewayError):
    """500 and the rest of 5xx: a fault of the gateway. With `evidence_persistence_failed` the action may have run."""


class Unreachable(GatewayError):
    """No answer. Codes: `unreachable` (no connection), `connection_lost`, `timed_out`, `client_closed`.

    `was_sent` False: not one byte of the request has left. True: the outcome is unknown.
    """

    def __init__(self, code: str, *, was_sent: bool = True, reason: str | None = None) -> None:
        super().__init__(code, reason=reason)
        self.was_sent = was_sent

    @property
    def may_have_run(self) -> bool:
        """True if the request may have been carried out: the value of `was_sent`."""
        return self.was_sent

    @property
    def is_retryable(self) -> bool:
        """True when nothing was sent and the client is still open."""
        return not self.was_sent and self.code != "client_closed"

    @property
    def hint(self) -> str:
        """As its code says, or that nothing was sent."""
        return super().hint if self.was_sent or self.code == "client_closed" else HINTS["unreachable"]


class ProtocolViolation(GatewayError):
    """An answer that the interface does not have (code `protocol_violation`): another service, or a broken one."""

    def __init__(self, reason: str, *, status: int | None = None) -> None:
        super().__init__("protocol_violation", status=status, reason=reason)

    @property
    def may_have_run(self) -> bool:
        """True: what the answer meant is unknown."""
        return True


class EvidenceRefused(ValueError):
    """Evidence that does not prove what it should. The text is one sentence for people, which may quote the evidence.

    `reason`: the class of the refusal, for programs (contrib/verify/README.md of the gateway lists them).
    """

    def __init__(self, reason: str, sentence: str) -> None:
        super().__init__(sentence)
        self.reason = reason


_BY_STATUS: dict[int, type[GatewayError]] = {
    401: AuthenticationFailed,
    403: Denied,
    404: NotFound,
    409: Conflict,
    429: RateLimited,
    502: ActionFailed,
    503: Unavailable,
}

_BY_CODE: dict[tuple[int, str], type[GatewayError]] = {
    (409, "already_executed"): AlreadyExecuted,
    (409, "approval_expired"): ApprovalEnded,
    (409, "call_in_progress"): OutcomeUnknown,
    (409, "outcome_unknown"): OutcomeUnknown,
}
"""Classes of answers to calls that were made before under their key."""


def error_for(
    status: int,
    body: Mapping[str, Any],
    headers: Mapping[str, str],
    *,
    retry_after: float | None,
    secrets: tuple[str, ...] = (),
) -> GatewayError:
    """The exception for an answer of 400 or more; `headers` in lower case. A server that repeats one of `secrets` is
    not quoted."""
    code = body.get("error")
    kind = _BY_CODE.get((status, code)) if isinstance(code, str) else None
    kind = kind or _BY_STATUS.get(status, Invalid if status < 500 else GatewayFault)
    reasons = [body.get(name) for name in ("deny_reason", "reason", "message")]
    reasons.append(_quoted(headers.get("x-provider-error")))
    trace_id, receipt_id, intent_id = (headers.get(f"x-{name}-id") for name in ("trace", "receipt", "intent"))
    rule = body.get("rule")
    error = kind(
        code if isinstance(code, str) else f"http_{status}",
        status=status,
        reason=next((_without(text, secrets) for text in reasons if isinstance(text, str)), None),
        retry_after=retry_after,
        trace_id=None if trace_id is None else _without(trace_id, secrets),
        receipt_id=None if receipt_id is None else _without(receipt_id, secrets),
        suggestions=_texts(body.get("did_you_mean"), secrets),
        violations=_texts(body.get("violations"), secrets),
        rule=_without(rule, secrets) if isinstance(rule, str) else None,
    )
    if intent_id is not None and _TRACE.fullmatch(intent_id):
        error.intent_id = _without(intent_id, secrets)
    failure, effect = headers.get(FAILURE_HEADER.lower()), headers.get(MAY_HAVE_RUN_HEADER.lower())
    error.failure = next((name for name in get_args(FailureName) if name == failure), None)
    error.effect = next((name for name in get_args(MayHaveRun) if name == effect), None)
    return error


def _texts(listed: object, secrets: tuple[str, ...]) -> tuple[str, ...]:
    """The texts of an array; none of what is no array."""
    return tuple(_without(one, secrets) for one in listed if isinstance(one, str)) if isinstance(listed, list) else ()


def _quoted(text: str | None) -> str | None:
    """The value of a header that holds a JSON string; None for anything else."""
    try:
        parsed = None if text is None else json.loads(text)
    except ValueError:
        return None
    return parsed if isinstance(parsed, str) else None


def clean(text: str) -> str:
    """`text` without characters that can deceive a terminal or a log, cut to 500 characters."""
    return _visible(text)[:MAX_REASON]


def _visible(text: str) -> str:
    return "".join(one for one in text if has_looks(one))


def _without(text: str, secrets: tuple[str, ...]) -> str:
    # SECURITY: cleaned first: a secret with something invisible inside would be whole again afterwards.
    text = _visible(text)
    for secret in secrets:
        text = text.replace(secret, "[removed]")
    return text
