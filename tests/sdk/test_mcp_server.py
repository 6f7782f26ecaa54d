"""The MCP server beside a gateway that answers as no real one does on demand: many actions, large outputs, no lease."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from gateway_client import AsyncAgentClient, ProofKey
from gateway_client.errors import GatewayError, NotFound
from gateway_client.mcp_server import answers
from gateway_client.mcp_server.catalog import Catalog
from gateway_client.mcp_server.serving import McpOptions, server_for
from gateway_client.mcp_server.tools import annotations_of, tool_of
from gateway_client.results import Executed, Held, Manifest
from gateway_client.tool_names import MAX_NAME, OWN_TOOLS, name_of, table_of
from gateway_client.wire.decoding import decode
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp.shared.tool_name_validation import validate_tool_name

from tests.support.played_gateway import EXECUTED
from tests.support.scripted_gateway import ScriptedGateway, scripted_gateway

LEASE = {
    "lease_jwt": "e.e.e", "session_id": "ses_1", "lease_jti": "lea_1", "expires_at": "2100-01-01T00:00:00.000Z",
}  # fmt: skip
IDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,255}", fullmatch=True)


def summary(action_id: str, **fields: Any) -> dict[str, Any]:
    return {"action_id": action_id, "version": "1.0.0", "risk_level": "low", "description": "", **fields}


def manifest(**fields: Any) -> Manifest:
    return decode(Manifest, {"action_id": "a", "version": "1.0.0", "risk_level": "low"} | fields, "manifest")


@asynccontextmanager
async def serving(
    script: ScriptedGateway, mode: str = "auto", key: ProofKey | None = None, **options: Any
) -> AsyncIterator[Client]:
    """A client of a server of its own, in this process."""
    async with AsyncAgentClient(script.url, key) as agent, anyio.create_task_group() as tasks:
        server = server_for(agent, tasks, McpOptions(**{"refresh_seconds": 0, **options}))
        async with Client(server, mode=mode) as client:
            yield client
        tasks.cancel_scope.cancel()


@given(IDS)
def test_a_name_is_valid_everywhere_and_leads_back_to_its_action(action_id: str) -> None:
    name = name_of(action_id)
    assert validate_tool_name(name).is_valid
    assert len(name) <= MAX_NAME
    assert "." not in name
    assert table_of([action_id]) == {name: action_id}


def test_no_action_takes_the_name_of_another_or_of_a_tool_of_the_server() -> None:
    assert not {name_of(one) for one in OWN_TOOLS} & set(OWN_TOOLS)
    assert name_of("mail.send") != name_of("mail_send") == "mail_send"
    assert table_of(["mail.send", name_of("mail.send"), "x"]) == {"x": "x"}


@pytest.mark.parametrize(
    ("effects", "risk", "expected"),
    [
        ([], "critical", (True, False, True, False)),
        (["http_read"], "medium", (True, False, True, True)),
        (["fs_write"], "low", (False, False, False, False)),
        (["fs_read", "fs_write"], "medium", (False, True, False, False)),
        (["mail"], "high", (False, True, False, False)),
    ],
)
def test_annotations_follow_declared_effects_and_risk(
    effects: list[str], risk: str, expected: tuple[bool, ...]
) -> None:
    hints = annotations_of(manifest(risk_level=risk, declared_side_effects=effects))
    flags = (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint)
    assert flags == expected


def test_a_response_schema_with_references_holds_for_the_output_alone() -> None:
    schema = {"$defs": {"n": {"type": "integer"}}, "properties": {"n": {"$ref": "#/$defs/n"}}}
    tool = tool_of(manifest(request_schema={"required": ["x"]}, response_schema=schema))
    assert tool is not None
    assert tool.input_schema == {"type": "object", "required": ["x"]}
    validator = Draft202012Validator(tool.output_schema or {})
    assert validator.is_valid({"decision": "executed", "output": {"n": 1}})
    assert not validator.is_valid({"decision": "executed", "output": {"n": "1"}})
    assert validator.is_valid({"decision": "pending_approval", "approval_id": "apr_1", "summary": "5 EUR"})
    assert tool_of(manifest(request_schema={"type": "array"})) is None


def test_a_held_call_is_told_by_its_summary_where_it_has_one() -> None:
    body = {"decision": "pending_approval", "approval_id": "apr_1", "request_hash": "sha256:1", "trace_id": "trc_1"}
    for summary in ({"summary": "5 EUR for in_7"}, {}):
        told = answers.pending(decode(Held, body | summary, "hold"), "pay", 0.0).structured_content or {}
        assert {name: told[name] for name in told if name == "summary"} == summary


def test_a_providers_text_is_bounded_and_can_hide_nothing() -> None:
    told = {"verification_outcome": "verified", "trace_id": "t", "action_id": "a", "grant_id": "g", "receipt_id": "r"}
    done = decode(Executed, told | {"output": {"x": "a\u202eb\U000e0041"}}, "result")
    result = answers.executed(done)
    (text,) = result.content
    assert text.type == "text"
    assert text.text.isascii()
    assert json.loads(text.text) == result.structured_content
    more = {"output": {"x": "y" * answers.MAX_OUTPUT}, "verification_outcome": "verification_failed"}
    large = decode(Executed, {**told, **more}, "result")
    shown = answers.executed(large).structured_content
    assert "output" not in shown
    assert "ask for less" in shown["output_omitted"]
    assert "not confirmed" in shown["next"]


def test_a_refusal_says_what_would_be_allowed_by_the_rule_that_denied_it() -> None:
    told = answers.failed(GatewayError("policy_denied", status=403, rule="acl")).structured_content
    assert told["rule"] == "acl"
    assert "An operator can grant it" in told["next"]
    told = answers.failed(NotFound("action_not_found", status=404, suggestions=("mail.send",))).structured_content
    assert told["did_you_mean"] == [name_of("mail.send")]


async def test_many_actions_come_in_pages_that_miss_none() -> None:
    ids = [f"action-{number:03}" for number in range(12)]
    script: dict[str, Any] = {f"GET /v1/actions/{one}": (200, summary(one)) for one in ids if one != "action-007"}
    with scripted_gateway(script | {"GET /v1/actions": (200, [summary(one) for one in ids])}) as gate:
        async with AsyncAgentClient(gate.url) as agent:
            catalog = Catalog(agent, page_size=5)
            pages = [await catalog.page(None)]
            while pages[-1].next_cursor is not None:
                pages.append(await catalog.page(pages[-1].next_cursor))
            names = [tool.name for page in pages for tool in page.tools]
            assert len(pages) == 3
            assert names == [*OWN_TOOLS, *(one for one in ids if one != "action-007")]  # that one went meanwhile
            with pytest.raises(MCPError, match="Invalid cursor"):
                await catalog.page("x" * 300)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_is_notified_when_actions_come_or_go(mode: str) -> None:
    first, second = [summary("a")], [summary("a"), summary("b")]
    script = {"GET /v1/actions": [(200, first), (200, first), (503, {"error": "overloaded"}), (200, second)]}
    with scripted_gateway(script) as gate, anyio.fail_after(120):
        heard = anyio.Event()

        async def on_message(message: Any) -> None:
            if getattr(message, "method", "") == "notifications/tools/list_changed":
                heard.set()

        async with AsyncAgentClient(gate.url) as agent, anyio.create_task_group() as tasks:
            server = server_for(agent, tasks, McpOptions(refresh_seconds=0.01))
            async with Client(server, mode=mode, message_handler=on_message) as client:
                if mode == "legacy":
                    await client.list_tools()
                    await heard.wait()
                else:
                    async with client.listen(tools_list_changed=True) as events:
                        await client.list_tools()
                        await anext(aiter(events))
            tasks.cancel_scope.cancel()


@pytest.mark.parametrize("changed", [{"description": "new"}, {"request_schema": {"type": "object", "required": ["x"]}}])
async def test_a_change_of_a_tool_is_notified_once_despite_other_list_requests(changed: dict[str, Any]) -> None:
    script: dict[str, Any] = {
        "GET /v1/actions": (200, [summary("a"), summary("b")]), "GET /v1/actions/b": (200, summary("b")),
        "GET /v1/actions/a": [(200, summary("a")), (200, summary("a")), (200, summary("a", **changed))],
    }  # fmt: skip
    with scripted_gateway(script) as gate:
        async with AsyncAgentClient(gate.url) as agent:
            catalog = Catalog(agent, page_size=1)
            await catalog.page(None)
            assert not await catalog.has_changed()  # b was not read yet, and is no news
            with pytest.raises(MCPError):
                await catalog.action_of("unknown")
            assert await catalog.has_changed()
            assert not await catalog.has_changed()


async def test_a_list_that_the_client_reads_during_a_look_is_no_change(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = [summary("a")], [summary("a"), summary("b")]
    script: dict[str, Any] = {
        "GET /v1/actions": [(200, first), (200, first), (200, second)],
        "GET /v1/actions/a": (200, summary("a")), "GET /v1/actions/b": (200, summary("b")),
    }  # fmt: skip
    with scripted_gateway(script) as gate:
        async with AsyncAgentClient(gate.url) as agent:
            catalog, manifest_of = Catalog(agent), agent.manifest

            async def after_the_client(action_id: str) -> Manifest:
                monkeypatch.setattr(agent, "manifest", manifest_of)
                await catalog.page(None)
                return await manifest_of(action_id)

            await catalog.page(None)
            monkeypatch.setattr(agent, "manifest", after_the_client)
            assert [await catalog.has_changed() for _ in range(2)] == [False, False]


async def test_a_removed_action_is_notified_after_a_call_has_missed_it() -> None:
    script: dict[str, Any] = {
        "GET /v1/actions": [(200, [summary("a"), summary("b")]), (200, [summary("a")])],
        "GET /v1/actions/a": (200, summary("a")), "GET /v1/actions/b": (200, summary("b")),
    }  # fmt: skip
    with scripted_gateway(script) as gate:
        async with AsyncAgentClient(gate.url) as agent:
            catalog = Catalog(agent)
            await catalog.page(None)
            with pytest.raises(MCPError, match="Unknown tool"):
                await catalog.action_of("c")
            assert await catalog.has_changed()


async def test_without_a_lease_a_call_says_who_can_mend_that() -> None:
    script = {"GET /v1/actions": (200, [summary("a")]), "POST /v1/leases": (403, {"error": "identity_forbidden"})}
    with scripted_gateway(script) as gate:
        async with serving(gate) as client:
            told = (await client.call_tool("a", {})).structured_content
            assert (told["error"], told["is_retryable"]) == ("identity_forbidden", False)
            assert "An operator has to map this user" in told["next"]


async def test_a_busy_gateway_says_after_how_long_it_is_worth_another_try() -> None:
    script = {
        "GET /v1/actions": (200, [summary("a")]), "POST /v1/leases": (200, LEASE),
        "POST /v1/actions/a/execute": (429, {"error": "too_many_pending_approvals"}),
    }  # fmt: skip
    with scripted_gateway(script, Retry_After="7") as gate:
        async with serving(gate) as client:
            told = (await client.call_tool("a", {})).structured_content
            assert (told["is_retryable"], told["retry_after_seconds"], told["may_have_run"]) == (True, 7.0, False)


@pytest.mark.parametrize("key", [None, ProofKey.generate()], ids=["of this session", "of a file"])
async def test_a_list_of_calls_says_since_when_it_lists_unless_the_key_is_older(key: ProofKey | None) -> None:
    script = {
        "GET /v1/actions": (200, []), "POST /v1/leases": (200, LEASE),
        "GET /v1/calls": (200, {"calls": [], "next": None}),
    }  # fmt: skip
    with scripted_gateway(script) as gate:
        async with serving(gate, key=key) as client:
            told = (await client.call_tool("gateway_recent_calls", {})).structured_content
            assert ("listed_since" in told, "next" in told) == (key is None, key is None)


async def test_calls_in_flight_are_bounded() -> None:
    script = {"GET /v1/actions": (200, [summary("a")]), "POST /v1/actions/a/execute": (200, EXECUTED)}
    with scripted_gateway(script | {"POST /v1/leases": (200, LEASE)}) as gate:
        async with serving(gate, max_in_flight=0) as client:
            told = (await client.call_tool("a", {})).structured_content
            assert (told["error"], told["is_retryable"]) == ("too_many_calls", True)
            assert "POST /v1/actions/a/execute" not in gate.requests
