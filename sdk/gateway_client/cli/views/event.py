"""Facts of an audit event that lists show beside its columns."""

import json

from gateway_client.cli.display.safe import short
from gateway_client.results import AuditEvent


def reason_of(event: AuditEvent) -> str | None:
    """Why it came to that, in the gateway's words: not safe for a terminal yet."""
    why = event.deny_reason or event.error_code or event.reason or event.raw.get("verification_outcome")
    rule = event.raw.get("policy_rule")
    if why is None and rule is not None and event.decision != "allow":
        return f"rule {rule}"
    return None if why is None else str(why)


def kept_of(event: AuditEvent, length: int = 60) -> str | None:
    """The kept values in a line, or why they are not all there; None for an event that commits to none."""
    if event.kept_values is None:
        return None
    if event.kept_state != "whole":
        return short(event.kept_state or "missing")
    pairs = (f"{pointer}={_text(value)}" for pointer, value in event.kept_values.items())
    return short(" ".join(pairs), length)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
