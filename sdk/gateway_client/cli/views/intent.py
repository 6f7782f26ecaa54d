"""An unresolved intent as an operator must see it: what may have happened, what is known, then what to do next."""

from collections.abc import Iterator

from gateway_client.cli.display.output import Output
from gateway_client.cli.display.safe import plain, safe, short
from gateway_client.cli.display.times import span
from gateway_client.contract.intents import SeenFile
from gateway_client.results import IntentDetail

STATES = {
    "matches": "holds what the call was to write",
    "differs": "holds something else than the call was to write",
    "absent": "is not there",
    "unreadable": "can't be read",
}
"""The states of a file that a verifier looked at, in words."""
_INDENT = 14
_MAX_SHOWN = 4000


def show(out: Output, intent: IntentDetail) -> None:
    """Print it."""
    age = f"dispatched {span(intent.age_seconds)} ago"
    risk = out.mark(safe(intent.risk_level or "risk unknown"))
    version = f" {safe(intent.action_version)}" if intent.action_version else ""
    out.line(f"UNRESOLVED  {safe(intent.action_id)}{version} · {risk} · {age}")
    for name, text in _facts(intent):
        out.line(f"  {name.ljust(_INDENT - 2)}{short(text, _MAX_SHOWN)}")
    for line in _commands(intent):
        out.line(line)


def sentence(seen: SeenFile) -> str:
    """The file as the verifier saw it, and the limits of that evidence."""
    state = STATES.get(seen.state, safe(seen.state))
    doubt = "; who wrote it, and when, can't be seen" if seen.state in ("matches", "differs") else ""
    return short(f"{seen.path} {state}{doubt}", _MAX_SHOWN)


def _commands(intent: IntentDetail) -> Iterator[str]:
    """The next commands to type."""
    one = safe(intent.intent_id)
    if intent.is_under_way:
        yield f"wait: its worker may still tell of its end; then look again: gatectl intents show {one}"
        return
    if intent.verifier.can_look_again:
        yield f"look again   gatectl intents resolve {one} --verify"
    yield f'found out?   gatectl intents resolve {one} --outcome happened|did_not_happen|unknown --note "…"'


def _facts(intent: IntentDetail) -> Iterator[tuple[str, str]]:
    effects = f": {plain(intent.sinks)}" if intent.sinks else ""
    yield "may have", f"done all that it was allowed to, a part of it, or nothing{effects}"
    owner = f" (owner {safe(intent.owner)})" if intent.owner else ""
    yield "asked by", f"{safe(intent.principal)}{owner}, session {safe(intent.session_id or 'unknown')}"
    limit = "" if intent.timeout_seconds is None else f", time limit {intent.timeout_seconds:g} s"
    yield "dispatched", f"{safe(intent.dispatched_at)}{limit}"
    if intent.approval_id:
        yield "approved", f"{safe(intent.approval_id)} by {safe(intent.approved_by or 'unknown')}"
    if intent.policy_rule:
        yield "because", f"rule {safe(intent.policy_rule)}"
    yield from _verifier(intent)
    yield "plan", f"{safe(intent.plan_hash)}  request {safe(intent.request_hash or '-')}"
    yield "module", safe(intent.provider_module)
    yield "trace", f"{safe(intent.trace_id)}  grant {safe(intent.grant_id)}  intent {safe(intent.intent_id)}"


def _verifier(intent: IntentDetail) -> Iterator[tuple[str, str]]:
    verifier = intent.verifier
    if (file := verifier.expected) is not None:
        yield "to write", f"{safe(file.path)}, {file.bytes} bytes, {safe(file.sha256)}"
    kind = safe(verifier.verifier_kind or "unknown")
    yield "verifier", f"{kind}, which can't look again: {safe(verifier.reason)}" if verifier.reason else kind
    if (look := verifier.last_look) is not None:
        yield "last look", f"{safe(look.timestamp)} by {safe(look.principal)}: {sentence(look.seen)}"
