"""Discovery: GET /v1/actions, /v1/actions/{id} and its request schema. No digests or schemas in summaries."""

from typing import Annotated, Any

import msgspec

from contract.actions import ActionManifest, ActionsEnvelope, ActionSummary
from frontend.contract.annotations import WrittenAs, codes
from frontend.contract.answers import answer_of
from frontend.errors import GateError
from frontend.http.answers import Answer
from frontend.services import Services

Listed = Annotated[Answer, WrittenAs(list[ActionSummary])] | Annotated[Answer, WrittenAs(ActionsEnvelope)]
_LIST, _ENVELOPE = "/list", "/envelope"
"""Keys of `Registry.encoded` beside action ids, which have no slash."""


@codes()
async def summaries(services: Services) -> Listed:
    """List all registered actions.

    An array, or an object with it where the operator has set `compat.actions_envelope`.
    """
    registry = services.registry
    key = _ENVELOPE if services.settings.compat.actions_envelope else _LIST
    if (body := registry.encoded.get(key)) is None:
        actions = msgspec.convert(registry.summaries(), tuple[ActionSummary, ...])
        body = msgspec.json.encode(ActionsEnvelope(actions=actions) if key == _ENVELOPE else actions)
        registry.encoded[key] = body
    return Answer(200, body)


@codes("action_not_found")
async def manifest(services: Services, action_id: str) -> Annotated[Answer, WrittenAs(ActionManifest)]:
    """Show the full manifest of one action."""
    registry = services.registry
    action = registry.get(action_id)
    if action is None:
        raise GateError("action_not_found")
    if (body := registry.encoded.get(action_id)) is None:
        shown = answer_of(ActionManifest, registry.manifest_view(action))
        body = registry.encoded[action_id] = msgspec.json.encode(shown)
    return Answer(200, body)


@codes("action_not_found", "schema_not_found")
async def request_schema(services: Services, action_id: str) -> dict[str, Any]:
    """Show the JSON Schema (2020-12) of an action's request."""
    action = services.registry.get(action_id)
    if action is None:
        raise GateError("action_not_found")
    if action.request_schema is None:
        raise GateError("schema_not_found")
    return action.request_schema
