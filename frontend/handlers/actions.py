"""Discovery: GET /v1/actions, /v1/actions/{id} and its request schema. No digests or schemas in summaries."""

from frontend.errors import GateError
from frontend.house import House
from frontend.http.answers import Answer, json_answer
from frontend.http.requests import Request


async def summaries(house: House, _request: Request) -> Answer:
    """All registered actions; an envelope for clients that expect one (`compat.actions_envelope`)."""
    found = house.registry.summaries()
    return json_answer(200, {"actions": found} if house.settings.compat.actions_envelope else found)


async def manifest(house: House, _request: Request, action_id: str) -> Answer:
    """The full manifest of one action."""
    action = house.registry.get(action_id)
    if action is None:
        raise GateError("action_not_found")
    return json_answer(200, house.registry.manifest_view(action))


async def request_schema(house: House, _request: Request, action_id: str) -> Answer:
    """The JSON Schema of an action's request."""
    action = house.registry.get(action_id)
    if action is None:
        raise GateError("action_not_found")
    if action.request_schema is None:
        raise GateError("schema_not_found")
    return json_answer(200, action.request_schema)
