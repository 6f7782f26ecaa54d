"""Actions as tools of LangChain, before a client that records what it is asked to call."""

import asyncio
import json
import re
from types import SimpleNamespace
from typing import Any, cast

import pytest
from gateway_client import AgentClient, Executed, Invalid, NotFound
from gateway_client.calling.core import encode_json
from gateway_client.hints import NOT_CONFIRMED
from gateway_client.langchain import MAX_CONTENT, tools
from gateway_client.wire.decoding import decode

from tests.support.played_gateway import EXECUTED

NAMES = ("config", "run_manager", "self", "callbacks", "args", "kwargs", "tool_call_id", "runtime", "state")
"""Names of LangChain's own."""


class PlayedClient:
    """One action with these arguments, which is gone when it is called."""

    def __init__(self, action_id: str = "deploy") -> None:
        self.action_id = action_id
        self.called: list[tuple[str, dict[str, Any]]] = []

    def actions(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(action_id=self.action_id)]

    def manifest(self, action_id: str) -> SimpleNamespace:
        schema = {"type": "object", "properties": {name: {"type": "string"} for name in NAMES}}
        return SimpleNamespace(
            action_id=action_id, version="1", description="Deploys.", risk_level="low", declared_side_effects=(),
            request_schema=schema,
        )  # fmt: skip

    def execute(self, action_id: str, arguments: dict[str, Any]) -> None:
        encode_json(arguments)
        self.called.append((action_id, arguments))
        raise NotFound("action_not_found", status=404)


@pytest.mark.parametrize("is_awaited", [False, True])
def test_a_call_has_the_arguments_that_the_model_gave_whatever_their_names(is_awaited: bool) -> None:
    client = PlayedClient()
    (tool,) = tools(cast("AgentClient", client))
    given = {name: f"the {name}" for name in NAMES}
    call = {"type": "tool_call", "id": "1", "name": "deploy", "args": given}
    message = asyncio.run(tool.ainvoke(call)) if is_awaited else tool.invoke(call)
    assert client.called == [("deploy", given)]
    assert isinstance(message.artifact, NotFound)


@pytest.mark.parametrize("action_id", ["files.read", "x" * 65])
def test_a_tool_has_a_name_that_models_take_and_calls_its_action(action_id: str) -> None:
    client = PlayedClient(action_id)
    (tool,) = tools(cast("AgentClient", client), only={action_id})
    assert re.fullmatch("[A-Za-z0-9_-]{1,64}", tool.name)
    assert tool.metadata == {"action_id": action_id, "action_version": "1", "risk_level": "low"}
    tool.invoke({"type": "tool_call", "id": "1", "name": tool.name, "args": {}})
    assert client.called == [(action_id, {})]


@pytest.mark.parametrize("value", [float("nan"), "\ud800"])
def test_a_model_reads_that_its_arguments_can_not_be_sent(value: object) -> None:
    (tool,) = tools(cast("AgentClient", PlayedClient()))
    message = tool.invoke({"type": "tool_call", "id": "1", "name": "deploy", "args": {"config": value}})
    assert isinstance(message.artifact, Invalid)
    assert "can't be sent as JSON" in message.content


@pytest.mark.parametrize(
    ("status", "output", "told"),
    [
        ("verified", {"n": 1}, {"n": 1}),
        ("unverified", {"n": 1}, {"output": {"n": 1}, "next": NOT_CONFIRMED}),
        ("unverified", {"n": "x" * MAX_CONTENT}, {"output_omitted": "too large: ask for less", "next": NOT_CONFIRMED}),
    ],
)
def test_a_model_reads_that_the_effect_of_its_call_is_not_confirmed(status: str, output: object, told: object) -> None:
    client = PlayedClient()
    done = decode(Executed, EXECUTED | {"verification_outcome": status, "output": output}, "result")
    client.execute = lambda *_: done  # type: ignore[assignment, method-assign]
    (tool,) = tools(cast("AgentClient", client))
    message = tool.invoke({"type": "tool_call", "id": "1", "name": "deploy", "args": {}})
    assert json.loads(message.content) == told
