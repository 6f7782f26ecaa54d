"""One call on one screen: what was decided and why, what the worker made of it, and what proves it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway_client.cli.complaints import NEXT
from gateway_client.cli.display.output import Output
from gateway_client.cli.display.safe import plain, safe, short
from gateway_client.cli.display.times import clock
from gateway_client.cli.views.event import kept_of
from gateway_client.contract.approvals import ApprovalDetail
from gateway_client.contract.receipts import Receipt
from gateway_client.results import AuditEvent

CALL = "ActionCall"
MOST_KEPT = 1000
"""Characters of a line of kept values."""


@dataclass(frozen=True, slots=True)
class Story:
    """All facts of one trace. `events`: oldest first; `approval` is None without one, or when it is no longer kept."""

    trace_id: str
    events: Sequence[AuditEvent]
    receipt: Receipt | None
    approval: ApprovalDetail | None

    def of_calls(self, name: str) -> Any:
        """A member of the newest event of the call that has it."""
        return next((one.raw[name] for one in reversed(self.events) if one.raw.get(name)), None)


def show(out: Output, story: Story) -> None:
    """Print it."""
    named = " ".join(plain(story.of_calls(name)) for name in ("action_id", "action_version") if story.of_calls(name))
    risk, last = story.of_calls("risk_level"), _last_decision(story)
    parts = [named or "no call", *([out.mark(safe(risk))] if risk else []), out.mark(safe(last))]
    out.line(" · ".join(parts))
    out.facts(_facts(story))
    mend = NEXT.get(str(story.of_calls("error_code")))
    if mend is not None and "{" not in mend:
        out.line(f"next  {mend}")


def _last_decision(story: Story) -> str:
    calls = [one for one in story.events if one.event_type == CALL] or list(story.events)
    return calls[-1].decision or calls[-1].event_type if calls else "unknown"


def _facts(story: Story) -> Iterator[tuple[str, object]]:
    for one in story.events:
        yield clock(one.timestamp), _event(one)
    principal, session = story.of_calls("principal"), story.of_calls("session_id")
    yield "asked by", f"{plain(principal)}, session {plain(session)}"
    kept = next((one for one in reversed(story.events) if one.kept_values is not None), None)
    if kept is not None:
        yield "kept", kept_of(kept, MOST_KEPT)
    rule, version = story.of_calls("policy_rule"), story.of_calls("policy_version")
    if rule or version:
        yield "decided by", f"rule {plain(rule)}, policy {plain(version)}"
    if story.of_calls("standing_id"):
        yield "lifted by", f"the standing approval {plain(story.of_calls('standing_id'))}"
    for name, label in (("deny_reason", "denied for"), ("error_code", "failed with"), ("reason", "because")):
        if story.of_calls(name):
            yield label, story.of_calls(name)
    if story.receipt is not None:
        yield from _receipt(story.receipt)
    else:
        yield "receipt", "none: nothing ran, or it is not known what came of it (gatectl intents)"
    if story.approval is not None:
        yield from _approval(story.approval)
    elif story.of_calls("approval_id"):
        yield "approval", f"{plain(story.of_calls('approval_id'))} (not kept any more)"
    yield "trace", story.trace_id


def _event(event: AuditEvent) -> str:
    raw = event.raw
    parts = [event.event_type, event.decision or ""]
    if raw.get("approved_by"):
        parts.append(f"approved by {plain(raw['approved_by'])}")
    if raw.get("verification_outcome"):
        parts.append(str(raw["verification_outcome"]))
    return short("  ".join(part for part in parts if part))


def _receipt(receipt: Receipt) -> Iterator[tuple[str, object]]:
    result: Mapping[str, Any] = receipt.normalized_result
    why = result.get("reason") or result.get("summary")
    yield "worker", f"{plain(result.get('kind'))}{f': {plain(why)}' if why else ''}"
    outcome = receipt.verification_outcome
    doubt = outcome.get("reason")
    yield "verified", f"{plain(outcome.get('status'))}{f': {plain(doubt)}' if doubt else ''}"
    yield "receipt", f"{plain(receipt.receipt_id)}, signature {plain(receipt.signature_status)} (says the gateway)"


def _approval(detail: ApprovalDetail) -> Iterator[tuple[str, object]]:
    by = f" by {plain(detail.claimed_by)}" if detail.claimed_by else ""
    at = detail.completed_at or detail.claimed_at
    if detail.summary is not None:
        yield "summary", plain(detail.summary)
    yield "approval", f"{plain(detail.approval_id)}, {plain(detail.state)}{by}{f' at {plain(at)}' if at else ''}"
