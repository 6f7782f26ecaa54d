"""POST /v1/actions/{action_id}/execute: the pipeline's door."""

from frontend.errors import GateError
from frontend.execution import Executed
from frontend.house import House
from frontend.http.answers import Answer, json_answer
from frontend.http.requests import Request


async def execute(house: House, request: Request, action_id: str) -> Answer:
    """200 with the execution result, 202 with the pending approval, 502 when the provider failed."""
    outcome = await house.pipeline.call(request, action_id)
    if not isinstance(outcome, Executed):
        return json_answer(202, outcome.body(), (("X-Trace-Id", outcome.trace_id),))
    if not outcome.succeeded:
        raise GateError("action_execution_failed", cause=outcome.conclusion.detail["outcome"])
    return json_answer(200, outcome.body(), (("X-Trace-Id", outcome.plan.trace_id),))
