"""The id of a call's intent in its planned request, where the manifest asks for it (manifest `idempotency`)."""

from msgspec.structs import replace

from ipc.plan import Plan


def with_intent_id(plan: Plan, intent_id: str) -> Plan:
    """The plan as it is sent: the intent is made after the plan, whose hash does not cover its id."""
    planned = plan.http_request
    if planned is None or not isinstance(planned.idempotency_header, str):
        return plan
    headers = tuple(
        (name, intent_id if name == planned.idempotency_header else value) for name, value in planned.headers
    )
    return replace(plan, http_request=replace(planned, headers=headers))
