"""Actions as LangChain tools, for agents of LangChain and LangGraph. Needs the extra `langchain`.

Guarantees that a tool's answer never raises for what gateway or library refuse: a model reads the reason and what to
do next, and the orchestrator has the whole outcome as the message's `artifact` (Executed, Held, or the GatewayError).
"""

import asyncio
import json
from collections.abc import Callable, Collection
from typing import Any

from langchain_core.tools import BaseTool

from gateway_client.agents import AgentClient
from gateway_client.errors import ApprovalPending, GatewayError, Invalid
from gateway_client.hints import NOT_CONFIRMED
from gateway_client.results import Executed, Held, Manifest
from gateway_client.tool_names import name_of, table_of
from gateway_client.tool_schemas import object_schema

Outcome = Executed | Held | GatewayError
MAX_CONTENT = 65_536
"""Characters of an output that a model reads; the artifact has all of it."""


class ActionTool(BaseTool):
    """One action. No parameter has a name: LangChain would fill `config` and `run_manager` itself, and an action may
    have arguments of these names."""

    call: Callable[[dict[str, Any]], tuple[str, Outcome]]

    def _run(self, /, **arguments: Any) -> tuple[str, Outcome]:
        return self.call(arguments)

    async def _arun(self, /, **arguments: Any) -> tuple[str, Outcome]:
        return await asyncio.to_thread(self.call, arguments)


def tools(client: AgentClient, *, only: Collection[str] | None = None, wait_seconds: float = 0.0) -> list[BaseTool]:
    """A tool for each action whose requests are JSON objects, or for those in `only`.

    A held call is waited for as long as `wait_seconds`, and answers then that it is pending. Raises GatewayError when
    discovery fails, ValueError for a name in `only` that is no action.
    """
    names = [one.action_id for one in client.actions()]
    missing = sorted(set(only or ()) - set(names))
    if missing:
        raise ValueError(f"no such action: {', '.join(missing)}")
    wanted = table_of(name for name in names if only is None or name in only).values()
    manifests = [client.manifest(name) for name in wanted]
    schemas = [(one, object_schema(one.request_schema)) for one in manifests]
    return [_tool(client, one, schema, wait_seconds) for one, schema in schemas if schema is not None]


def _tool(client: AgentClient, manifest: Manifest, schema: dict[str, Any], wait_seconds: float) -> BaseTool:
    def call(arguments: dict[str, Any]) -> tuple[str, Outcome]:
        outcome = _called(client, manifest.action_id, arguments, wait_seconds)
        return _said(outcome), outcome

    effects = ", ".join(manifest.declared_side_effects) or "none"
    return ActionTool(
        call=call,
        name=name_of(manifest.action_id),
        description=f"{manifest.description} Risk: {manifest.risk_level}. Side effects: {effects}.".strip(),
        args_schema={**schema, "properties": schema.get("properties", {})},
        response_format="content_and_artifact",
        metadata={
            "action_id": manifest.action_id,
            "action_version": manifest.version,
            "risk_level": manifest.risk_level,
        },
    )


def _called(client: AgentClient, action_id: str, arguments: dict[str, Any], wait_seconds: float) -> Outcome:
    held: Held | None = None
    try:
        done = client.execute(action_id, arguments)
        if isinstance(done, Executed) or wait_seconds <= 0:
            return done
        held = done
        return client.outcome(held, action_id, wait_seconds)
    except ApprovalPending as error:
        return held or error
    except GatewayError as error:
        return error
    except ValueError as error:  # what the library refuses to send; its texts quote no value
        return Invalid("invalid_request", reason=str(error))


def _said(outcome: Outcome) -> str:
    """The text for the model, as JSON."""
    if isinstance(outcome, Executed):
        warning = {} if outcome.is_fully_successful else {"next": NOT_CONFIRMED}
        text = json.dumps({"output": outcome.output, **warning} if warning else outcome.output, ensure_ascii=False)
        omitted = {"output_omitted": "too large: ask for less", **warning}
        return text if len(text) <= MAX_CONTENT else json.dumps(omitted)
    if isinstance(outcome, Held):
        following = "A person has to approve this call. Do not repeat it; tell the user that it waits."
        return json.dumps({"pending_approval": outcome.approval_id, "next": following})
    said = {
        "error": outcome.code, "reason": outcome.reason, "violations": list(outcome.violations) or None,
        "did_you_mean": list(outcome.suggestions) or None, "next": outcome.hint,
        "retry_after_seconds": outcome.retry_after if outcome.is_retryable else None,
        "failure": outcome.failure, "effect": outcome.effect,
    }  # fmt: skip
    return json.dumps({name: value for name, value in said.items() if value is not None}, ensure_ascii=False)
