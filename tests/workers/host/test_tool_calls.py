"""Calls of tools with servers of the official package: revisions, answers as JSON and as events, the pinned digest."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from ipc.configuration.secret_ways import AsHeader
from ipc.mcp_tools import tool_digest
from ipc.plan import CallLimits, SecretUse
from tests.support.mcp_servers import Served, listed, official_server, served, tool_plan
from tests.support.worker_plans import builtin
from tests.support.worker_runner import Bench
from workers.host.tool_calls import STATELESS, WITH_SESSION


def is_modern(headers: dict[str, str]) -> bool:
    return headers.get("mcp-protocol-version") == STATELESS


@pytest.fixture
def tools() -> dict[str, Any]:
    return listed(official_server())


@pytest.fixture(params=[False, True], ids=["events", "json"])
def modern(request: pytest.FixtureRequest) -> Iterator[Served]:
    with served(official_server(), json_response=request.param) as there:
        yield there


@pytest.fixture(params=[False, True], ids=["events", "json"])
def earlier(request: pytest.FixtureRequest) -> Iterator[Served]:
    """A server that knows sessions alone."""
    with served(official_server(), json_response=request.param, refuses=is_modern) as there:
        yield there


def call(bench: Bench, there: Served, tools: dict[str, Any], name: str, arguments: Any, **changes: Any) -> Any:
    bench.add(builtin("mcp"))
    return bench.run(tool_plan(there.address, name, tool_digest(tools[name]), arguments, **changes))


def test_a_tool_is_called_without_a_session_where_the_server_knows_the_current_revision(
    bench: Bench, modern: Served, tools: dict[str, Any]
) -> None:
    result = call(bench, modern, tools, "greet", {"name": "Ada"})
    assert result.outcome == "success", result
    assert msgspec.json.decode(result.output)["content"][0]["text"] == "Hello, Ada."
    assert [method for method, _ in modern.requests] == ["POST", "POST"]
    assert {headers["mcp-protocol-version"] for _, headers in modern.requests} == {STATELESS}


def test_a_tool_is_called_in_a_session_where_the_server_knows_an_earlier_revision_alone(
    bench: Bench, earlier: Served, tools: dict[str, Any]
) -> None:
    result = call(bench, earlier, tools, "add", {"a": 2, "b": 3})
    assert result.outcome == "success", result
    assert msgspec.json.decode(result.output)["structured"] == {"result": 5}
    assert [method for method, _ in earlier.requests] == ["POST"] * 5 + ["DELETE"]
    in_session = [headers for _, headers in earlier.requests[2:]]
    assert len({headers["mcp-session-id"] for headers in in_session}) == 1
    assert {headers["mcp-protocol-version"] for headers in in_session} == {WITH_SESSION[0]}
    assert [seen.target.split()[0] for seen in result.observations] == ["POST"] * 5 + ["DELETE"]


def test_a_tool_that_fails_is_a_failed_provider_and_never_verified(
    bench: Bench, modern: Served, tools: dict[str, Any]
) -> None:
    result = call(bench, modern, tools, "fail", {"reason": "no such invoice"}, verifier_kind="http_status")
    assert (result.outcome, result.output) == ("provider_error", None)
    assert "no such invoice" in result.failure.message
    assert result.verification.outcome == "provider_failed_before_verification"


def test_a_tool_that_has_changed_is_not_called(bench: Bench, modern: Served, tools: dict[str, Any]) -> None:
    tools["add"]["description"] = "Add two numbers, as it was when the tool was pinned."
    result = call(bench, modern, tools, "add", {"a": 2, "b": 3})
    assert (result.outcome, result.failure.kind) == ("tool_changed", "denied")
    assert {headers["mcp-method"] for _, headers in modern.requests} == {"tools/list"}


def test_a_tool_that_is_gone_is_not_called(bench: Bench, earlier: Served, tools: dict[str, Any]) -> None:
    tools["subtract"] = {**tools["add"], "name": "subtract"}
    result = call(bench, earlier, tools, "subtract", {"a": 2, "b": 3})
    assert result.outcome == "tool_changed"
    assert "does not list it" in result.failure.message


@pytest.mark.parametrize("region", ["eu-west", "Köln", " eu", "=?base64?eA==?="])
def test_an_argument_that_the_schema_marks_is_mirrored_in_a_header(
    bench: Bench, modern: Served, tools: dict[str, Any], region: str
) -> None:
    result = call(bench, modern, tools, "place", {"region": region})
    assert result.outcome == "success", result
    assert "mcp-param-region" in modern.requests[-1][1]


def test_secrets_go_with_each_request_of_the_conversation(bench: Bench, earlier: Served, tools: dict[str, Any]) -> None:
    bench.add(builtin("mcp"))
    way = AsHeader("Authorization", "Bearer {value}")
    use = SecretUse("token", way=way, domains=("upstream.test",))
    plan = tool_plan(earlier.address, "add", tool_digest(tools["add"]), secrets=(use,))
    assert bench.run(plan, {"token": "s3cret-value"}).outcome == "success"
    assert {headers["authorization"] for _, headers in earlier.requests} == {"Bearer s3cret-value"}


def test_the_requests_of_a_conversation_count_as_io_calls(bench: Bench, earlier: Served, tools: dict[str, Any]) -> None:
    limits = CallLimits(max_io_calls=4, timeout_seconds=600.0)
    result = call(bench, earlier, tools, "add", {"a": 2, "b": 3}, limits=limits)
    assert (result.outcome, result.io_calls) == ("io_calls", 4)
    assert len(earlier.requests) == 4
