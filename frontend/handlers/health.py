"""GET /healthz and /readyz: the same on every socket, never behind authentication, never audited."""

from frontend.house import House
from frontend.http.answers import Answer, json_answer
from frontend.http.requests import Request


async def healthz(_house: House, _request: Request) -> Answer:
    """200 as long as the event loop turns."""
    return json_answer(200, {"status": "ok"})


async def readyz(house: House, _request: Request) -> Answer:
    """200 ready or 503 not_ready, with every dependency by name (interface specification, "Readiness values")."""
    health = await house.health()
    return json_answer(200 if health.is_ready else 503, health.readiness())
