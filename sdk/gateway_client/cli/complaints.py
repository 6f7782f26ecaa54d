"""Errors on standard error: one line with the next step, and below it each wrong member of a request where there are
several. With --json the same as one JSON object."""

import shlex
import sys
from typing import Any

from gateway_client.cli.display.safe import json_text, safe
from gateway_client.cli.exits import Failure, ScriptExit, exit_of
from gateway_client.contract.failures import MEANINGS
from gateway_client.errors import ActionFailed, GatewayError, Unreachable

SILENT = "look why, on the gateway's host: gateway status; see whether a change was made before you ask for it again"
NEXT = {
    "invalid_operator_token": "check operator_key_file of the context, [[operators]] of the gateway: gatectl doctor",
    "invalid_dpop": "check public_base_url, the private key file and the clock: gatectl doctor",
    "missing_auth_header": "this address wants an operator's credential: gatectl context show",
    "replay_detected": "run the command again",
    "replay_cache_unavailable": "the key-value store is down: gatectl doctor",
    "budget_store_unavailable": "the key-value store is down: gatectl doctor",
    "approval_store_unavailable": "the key-value store is down: gatectl doctor",
    "policy_engine_unavailable": "the policy engine is down: gatectl doctor",
    "policy_engine_timeout": "the policy engine is slow or down: gatectl doctor",
    "policy_refused": "nothing was changed; the gateway's log says why",
    "policy_not_writable": "nothing was changed; look at owner, mode and disk of policy_dir: the gateway's log",
    "policy_denied": "ask for something else, or let an operator change the policy: gatectl policy show",
    "action_not_registered": "let an operator add the module's digest to trusted_modules.yaml, then gatectl reload",
    "action_digest_mismatch": "module or tool is not the one that the manifest names: look at it before anything else",
    "budget_exhausted": "take a new lease; where the reason names a quota, wait, or let an operator raise it",
    "identity_forbidden": "let an operator map this user, token or certificate to a principal: docs/identity.md",
    "identity_provider_unavailable": "use the client socket; with a token: wait, then see the gateway's log",
    "approval_denied": "read the reason; change the request",
    "approval_pending": "an operator decides: gatectl approvals show {approval_id}",
    "approval_expired": "call the action again",
    "approval_failed": "look at what came of it: gatectl why {trace_id}",
    "approval_signature_required": "decide with gatectl approvals, which signs",
    "already_approved_by_you": "another operator must approve it, too",
    "role_required": "ask an operator who has the role, or change roles in [[operators]]",
    "own_request": "the call is your own: another operator approves it",
    "invalid_approval_signature": "show it again and decide anew; check clock and public_base_url: gatectl doctor",
    "approval_not_found": "unknown, already decided, or expired; see what waits: gatectl approvals list",
    "action_not_found": "see what there is: gatectl actions",
    "schema_not_found": "the action declares no request schema",
    "receipt_not_found": "check the id: gatectl audit events",
    "intent_not_found": "it has its end by now, or never was: gatectl intents",
    "session_not_found": "it has ended, or never was: gatectl sessions",
    "too_many_revoked_sessions": "end all of them: gatectl revoke-all",
    "intent_under_way": "wait until its time limit is over, then look again: gatectl intents",
    "intent_not_verifiable": "find out elsewhere, then: gatectl intents resolve INTENT --outcome …",
    "evidence_not_found": "check the id: gatectl audit events",
    "sealed": "look into the segment that is named, where segments are kept: docs/evidence.md",
    "domain_not_found": "see what was learned: gatectl domains list",
    "path_not_found": "see what was learned: gatectl paths list",
    "principal_not_found": "see who has an entry: gatectl policy show",
    "threshold_not_found": "nothing to do; see: gatectl policy thresholds list",
    "cap_not_found": "nothing to do; see: gatectl policy caps list",
    "webhook_not_found": "see what there is: gatectl webhooks list",
    "standing_not_found": "it has ended, or never was: gatectl approvals standing list",
    "too_many_standing_approvals": "revoke one that is not needed: gatectl approvals standing list",
    "allowlist_entry_not_found": "nothing to do; see: gatectl allowlist list",
    "not_found": "is this the admin socket? gatectl context show",
    "plan_integrity": "nothing ran; let the agent call the action again",
    "domain_already_exists": "nothing to do",
    "path_already_exists": "nothing to do",
    "too_many_rules": "remove some, or learn a pattern",
    "policy_changed_on_disk": "gatectl reload, then again; or undo the edit",
    "schema_violation": "see what the action takes: gatectl actions show ACTION",
    "unknown_action": "see what there is: gatectl actions",
    "invalid_domain": "lower case with a dot, no address; *. only before two labels",
    "invalid_path": "relative to the action's root, without ..",
    "rate_limit_exceeded": "wait, then run the command again",
    "too_many_pending_approvals": "decide some that are pending: gatectl approvals list --status pending",
    "evidence_store_unavailable": "the ledger takes nothing: gatectl doctor; then look whether it was done",
    "evidence_persistence_failed": "it may have happened: gatectl intents; then free space on the ledger's disk",
    "ledger_full": "nothing has run; an operator makes room on the ledger's volume: docs/runbooks/full-disk.md",
    "ledger_unavailable": "the ledger can't be read: gatectl doctor",
    "secrets_unavailable": "nothing has run; an operator mends the secrets file: the gateway's log names the reason",
    "learned_rules_unavailable": "an operator mends the file of learned rules: docs/learned.md",
    "allowlist_sync_failed": "the gateway's log says why: an added domain is not learned, a removed one is no more",
    "reload_failed": "what was in force stays; the reason: gatectl audit events --event-type AdminReload --json",
    "action_execution_failed": "see gatectl calls; an operator sees more: gatectl why {trace_id}",
    "call_in_progress": "the same call still runs; wait, then run it again with the same --idempotency-key",
    "already_executed": "it has run: gatectl receipts show RECEIPT; gatectl calls names it",
    "outcome_unknown": "it may have run; an operator finds out: gatectl intents",
    "idempotency_key_reused": "another request was made under this key: choose a new --idempotency-key",
    "draining": "use another gateway, or wait for the next start",
    "overloaded": "wait, then run the command again",
    "clock_error": "set the clock of the gateway's host",
    "epoch_store_unavailable": "run it again: raising the epoch twice does no harm",
    "unreachable": "is the gateway running, and is the address right? gatectl doctor",
    "timed_out": SILENT,
    "connection_lost": SILENT,
    "protocol_violation": "is this a gateway? gatectl doctor",
    "internal_error": "report it with the trace id",
}
"""Code to what a person does next. Codes that are not here explain themselves in docs/errors.md."""
RUN_AGAIN = "nothing was sent, it may be repeated"
KEYED = "see gatectl calls; the same with --idempotency-key {key} runs at most once and says what happened"
LOOK_FIRST = "it may have happened, look before you run it again"
FALLBACK = "docs/errors.md explains the code"


def complaint(error: GatewayError | Failure) -> dict[str, Any]:
    """The stable JSON form; every member is always there."""
    if isinstance(error, Failure):
        members: dict[str, Any] = {"error": error.code, "message": error.message, "exit_code": int(error.exit_code)}
        members |= {"status": None, "retry_after": None, "trace_id": None, "approval_id": None}
        members |= {"may_have_run": error.may_have_run, "failure": None, "effect": None, "intent_id": None}
        members |= {"idempotency_key": error.idempotency_key}
        return members | {"violations": [], "did_you_mean": [], "next": error.mend or None}
    return {
        "error": error.code,
        "message": error.reason,
        "exit_code": int(exit_of(error)),
        "status": error.status,
        "retry_after": error.retry_after,
        "trace_id": error.trace_id,
        "approval_id": error.approval_id,
        "may_have_run": error.may_have_run,
        "failure": error.failure,
        "effect": error.effect,
        "intent_id": error.intent_id,
        "idempotency_key": error.idempotency_key,
        "violations": list(error.violations),
        "did_you_mean": list(error.suggestions),
        "next": _next(error),
    }


def tell(error: GatewayError | Failure, is_json: bool) -> ScriptExit:
    """Write the complaint to standard error; gives the exit code."""
    if is_json:
        print(json_text(complaint(error)), file=sys.stderr)
    else:
        print(line_of(error), file=sys.stderr)
        for one in _places(error):
            print(f"  {one}", file=sys.stderr)
    return error.exit_code if isinstance(error, Failure) else exit_of(error)


def line_of(error: GatewayError | Failure) -> str:
    """`gatectl: code: why. The next step`, on one line."""
    if isinstance(error, Failure):
        parts, mend = [error.code, safe(error.message)], safe(error.mend)
    else:
        parts, mend = [error.code], _next(error)
        if error.failure:
            parts[0] += f" ({error.failure})"
        if error.reason:
            parts.append(safe(error.reason))
        elif error.failure:
            meaning = MEANINGS[error.failure].removesuffix(".")
            parts.append(meaning[0].lower() + meaning[1:])
        if error.suggestions:
            parts.append(f"did you mean {' or '.join(safe(one) for one in error.suggestions)}?")
        if error.trace_id:
            parts[-1] += f" [{error.trace_id}]"
    if mend.endswith(parts[-1]):
        mend = ""
    return f"gatectl: {': '.join(parts)}" + (f" - {mend}" if mend else "")


def _places(error: GatewayError | Failure) -> list[str]:
    """Every place of a request that is wrong, where the line names only one of several."""
    return [] if isinstance(error, Failure) else [safe(one) for one in error.violations]


def _next(error: GatewayError) -> str:
    text = NEXT.get(error.code, FALLBACK)
    if isinstance(error, ActionFailed) and error.effect is not None:
        text = f"{RUN_AGAIN if error.effect == 'no' else LOOK_FIRST}: {text}"
    if error.code in {"timed_out", "connection_lost"} and isinstance(error, Unreachable):
        if not error.was_sent:
            text = NEXT["unreachable"]
        elif error.idempotency_key is not None:
            return KEYED.format(key=shlex.quote(safe(error.idempotency_key)))
    if error.retry_after is not None and "wait" in text:
        text = text.replace("wait", f"wait {error.retry_after:g} s")
    if "{trace_id}" in text and error.trace_id is None:
        return "gatectl audit events"
    if "{approval_id}" in text and error.approval_id is None:
        return "gatectl approvals list"
    return text.format(trace_id=error.trace_id, approval_id=error.approval_id)
