"""Facts of an audit event that lists show beside its columns."""

from gateway_client.results import AuditEvent


def reason_of(event: AuditEvent) -> str | None:
    """Why it came to that, in the gateway's words: not safe for a terminal yet."""
    why = event.deny_reason or event.error_code or event.reason or event.raw.get("verification_outcome")
    rule = event.raw.get("policy_rule")
    if why is None and rule is not None and event.decision != "allow":
        return f"rule {rule}"
    return None if why is None else str(why)
