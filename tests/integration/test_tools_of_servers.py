"""Tools of an MCP server as actions of a whole gateway: a call, a failure, and a tool that has changed."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from mcp.server.mcpserver import MCPServer

from tests.support.gateway import Gateway, config_for, gateway
from tests.support.manifests import open_policy, patient, write_manifests
from tests.support.mcp_servers import Served, listed, official_server, served, tool_action

HOST = "upstream.gateway.test"


@dataclass
class Stage:
    """A gateway, and the server whose tools its actions are."""

    gate: Gateway
    server: MCPServer
    there: Served


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder: Path = tmp_path_factory.mktemp("tools")
    top = patient(folder / "actions")
    server = official_server()
    tools = listed(server)
    changed = {**tools["add"], "description": "Add two numbers, as it was once."}
    write_manifests(
        folder / "actions", tool_action("tool_greet", HOST, tools["greet"]),
        tool_action("tool_fail", HOST, tools["fail"]), tool_action("tool_changed", HOST, changed),
        tool_action("tool_held", HOST, tools["add"], risk_level="high"),
    )  # fmt: skip
    policy = open_policy(folder / "policy", "tool_greet", "tool_fail", "tool_changed", "tool_held")
    with served(server) as there:
        config = config_for(there.address, f'{top}policy_dir = "{policy}"\n')
        with gateway(folder, config) as running:
            yield Stage(running, server, there)


def test_a_tool_of_a_server_is_an_action_and_leaves_a_receipt(at: Stage) -> None:
    agent = at.gate.agent()
    answer = agent.execute("tool_greet", {"name": "Ada"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["output"]["content"] == [{"type": "text", "text": "Hello, Ada."}]
    assert answer.json()["verification_outcome"] == "unverifiable_declared"


def test_a_tool_that_fails_is_502_with_a_receipt_and_is_not_verified(at: Stage) -> None:
    agent = at.gate.agent()
    answer = agent.execute("tool_fail", {"reason": "no such invoice"})
    assert (answer.status_code, answer.json()) == (502, {"error": "action_execution_failed"})
    assert answer.headers["X-Receipt-Id"]
    (event,) = at.gate.events(session_id=agent.session_id, event_type="ActionCall")
    assert event["verification_outcome"] == "provider_failed_before_verification"
    assert "no such invoice" in event["reason"]


def test_a_tool_that_has_changed_is_403_and_is_never_called(at: Stage) -> None:
    agent = at.gate.agent()
    before = len(at.there.requests)
    answer = agent.execute("tool_changed", {"a": 1, "b": 2})
    assert (answer.status_code, answer.json()) == (403, {"error": "action_digest_mismatch"})
    assert {headers["mcp-method"] for _, headers in at.there.requests[before:]} == {"tools/list"}
    (event,) = at.gate.events(session_id=agent.session_id, event_type="ActionCall")
    assert (event["decision"], event["error_code"]) == ("error", "action_digest_mismatch")
    assert "has changed" in event["reason"]


def test_a_person_is_shown_the_tool_and_the_message_that_it_gets(at: Stage) -> None:
    agent = at.gate.agent()
    held = agent.execute("tool_held", {"a": 2, "b": 3}).json()["approval_id"]
    shown = at.gate.operator().get(f"/v1/approvals/{held}").json()["approved_request"]
    assert shown["tool"]["name"] == "add"
    assert json.loads(shown["body"])["params"] == {"name": "add", "arguments": {"a": 2, "b": 3}}
    answer = at.gate.operator().post(f"/v1/approvals/{held}/approve")
    assert answer.status_code == 200, answer.text
    assert answer.json()["output"]["structured"] == {"result": 5}
