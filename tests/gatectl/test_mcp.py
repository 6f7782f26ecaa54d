"""`gatectl mcp` as a host runs it: the official client of the package `mcp`, over standard input and output."""

import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import anyio
import pytest
from mcp.client import ClientExtension, ResultClaim
from mcp.client.extension import ClaimContext
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, Request, RequestParams, Result

from tests.support.gatectl import SCRIPT, SECONDS, Gatectl
from tests.support.gateway import Gateway
from tests.support.mcp_host import Host, hosted
from tests.support.ports import closed_port

TASKS = "io.modelcontextprotocol/tasks"
_amounts = itertools.count(1)


def payment() -> dict[str, Any]:
    return {"to": "acct-9", "amount_cents": next(_amounts), "currency": "EUR"}


class Task(Result):
    """A task in the place of a result."""

    result_type: Literal["task"]
    task_id: str
    status: str
    ttl_ms: int | None
    poll_interval_ms: int | None = None


class _Params(RequestParams):
    task_id: str


class _Get(Request[_Params, Literal["tasks/get"]]):
    method: Literal["tasks/get"] = "tasks/get"
    params: _Params


class _Cancel(Request[_Params, Literal["tasks/cancel"]]):
    method: Literal["tasks/cancel"] = "tasks/cancel"
    params: _Params


class Detailed(Result):
    """The answer of tasks/get."""

    task_id: str
    status: str
    result: dict[str, Any] | None = None


class Tasks(ClientExtension):
    """The client's half of the extension, as far as these tests need it."""

    identifier = TASKS

    def claims(self) -> Sequence[ResultClaim[Any]]:
        async def resolve(task: Task, context: ClaimContext) -> CallToolResult:
            raise AssertionError("these tests ask themselves")

        return [ResultClaim(result_type="task", model=Task, resolve=resolve)]


def begun(host: Host, arguments: dict[str, Any]) -> Task:
    async def call() -> Any:
        return await host.client.session.call_tool("payment_transfer", arguments, allow_claimed=True)

    task = host.portal.call(call)
    assert isinstance(task, Task)
    return task


def got(host: Host, task_id: str) -> Detailed:
    async def ask() -> Detailed:
        return await host.client.session.send_request(_Get(params=_Params(task_id=task_id)), Detailed)

    return host.portal.call(ask)


def ended(host: Host, task_id: str) -> Detailed:
    """The task once it is over."""

    async def poll() -> Detailed:
        with anyio.fail_after(SECONDS):
            while True:
                task = await host.client.session.send_request(_Get(params=_Params(task_id=task_id)), Detailed)
                if task.status != "working":
                    return task
                await anyio.sleep(0.05)

    return host.portal.call(poll)


@pytest.fixture(scope="module")
def modern(gatectl: Gatectl) -> Iterator[Host]:
    with hosted(gatectl, extensions=[Tasks()]) as host:
        yield host


@pytest.fixture(scope="module")
def legacy(gatectl: Gatectl) -> Iterator[Host]:
    """A host of a revision with a handshake, which waits for operators."""
    with hosted(gatectl, "--wait", "120", mode="legacy") as host:
        yield host


@pytest.fixture(params=["modern", "legacy"])
def host(request: pytest.FixtureRequest) -> Host:
    requested: Host = request.getfixturevalue(request.param)
    return requested


def test_every_action_is_a_tool_with_its_schema_and_its_risk(host: Host) -> None:
    tools = {tool.name: tool for tool in host.portal.call(host.client.list_tools).tools}
    assert set(tools) == {
        "gateway_approval_status", "gateway_recent_calls", "gateway_receipt", "file_write", "forbidden_export",
        "http_fetch", "http_post", "payment_transfer", "spin", "text_digest",
    }  # fmt: skip
    assert tools["text_digest"].input_schema["required"] == ["text"]
    assert "Risk: critical. Side effects: http_write." in str(tools["payment_transfer"].description)
    hints = {name: tool.annotations for name, tool in tools.items() if tool.annotations is not None}
    assert (hints["http_fetch"].read_only_hint, hints["http_fetch"].open_world_hint) == (True, True)
    assert (hints["payment_transfer"].read_only_hint, hints["payment_transfer"].destructive_hint) == (False, True)
    assert (hints["text_digest"].idempotent_hint, hints["text_digest"].open_world_hint) == (True, False)


def test_a_call_that_is_allowed_answers_its_output_and_its_evidence(host: Host, gate: Gateway) -> None:
    told = host.told("text_digest", {"text": "hello"})
    assert (told["decision"], told["output"]["bytes"]) == ("executed", 5)
    (event,) = gate.events(trace_id=told["trace_id"])
    assert event["receipt_id"] == told["receipt_id"]


def test_a_session_has_one_lease_and_two_sessions_have_two(modern: Host, legacy: Host, gate: Gateway) -> None:
    calls = [(host, host.told("text_digest", {"text": "x"})) for host in (modern, modern, legacy, legacy)]
    sessions = [gate.events(trace_id=told["trace_id"])[0]["session_id"] for _, told in calls]
    assert sessions[0] == sessions[1] != sessions[2] == sessions[3]


def test_an_unknown_tool_is_an_error_of_the_protocol_that_names_what_is_close(host: Host) -> None:
    with pytest.raises(MCPError, match=r"Unknown tool: 'text_digets'\. Did you mean text_digest") as raised:
        host.call("text_digets")
    assert raised.value.error.code == -32602


def test_invalid_arguments_are_described_so_that_a_model_can_correct_them(host: Host) -> None:
    told = host.told("text_digest", {"text": 5})
    assert (told["error"], told["status"], told["is_retryable"]) == ("schema_violation", 422, False)
    assert "/text: must be a string" in told["reason"]
    assert "fits the action's schema" in told["next"]


def test_a_denied_call_says_why_and_that_repeating_it_does_not_help(host: Host) -> None:
    told = host.told("forbidden_export", {"table": "customers"})
    assert (told["decision"], told["error"]) == ("denied", "policy_denied")
    assert (told["is_retryable"], told["may_have_run"]) == (False, False)
    assert "exports of tables" in told["reason"]
    assert told["trace_id"].startswith("trc_")


def test_a_failed_action_names_its_receipt_and_says_that_it_may_have_done_something(host: Host) -> None:
    told = host.told("http_fetch", {"path": "/status/503"})
    assert (told["error"], told["is_retryable"], told["may_have_run"]) == ("action_execution_failed", False, True)
    assert (told["failure"], told["effect"]) == ("upstream_status", "yes")
    assert told["receipt_id"].startswith("rcpt_")


def held_by(host: Host, decide: Callable[[str], None]) -> CallToolResult:
    """The answer of a call that is held, and decided about as soon as the host hears that it waits."""
    heard: list[str] = []

    async def call() -> CallToolResult:
        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            if not heard:
                heard.append(str(message))
                await anyio.to_thread.run_sync(decide, str(message).rpartition(" ")[2])

        return await host.client.call_tool("payment_transfer", payment(), progress_callback=on_progress)

    result = host.portal.call(call)
    assert "payment_transfer waits for an operator" in heard[0]
    return result


def test_a_held_call_is_waited_for_with_progress_and_ends_as_an_operator_decides(legacy: Host, gate: Gateway) -> None:
    operator = gate.operator()
    paid = held_by(legacy, lambda approval_id: _done(operator.post(f"/v1/approvals/{approval_id}/approve")))
    assert not paid.is_error
    assert paid.structured_content["decision"] == "executed"
    assert paid.structured_content["approval_id"].startswith("apr_")
    denied = held_by(
        legacy, lambda approval_id: _done(operator.post(f"/v1/approvals/{approval_id}/deny", {"reason": "too much"}))
    )
    assert denied.is_error
    told = denied.structured_content
    assert (told["error"], told["reason"], told["may_have_run"]) == ("approval_denied", "too much", False)


def _done(answer: Any) -> None:
    assert answer.status_code == 200, answer.text


def test_a_call_that_is_cancelled_leaves_its_hold_whose_outcome_can_be_asked_for(legacy: Host, gate: Gateway) -> None:
    heard: list[str] = []

    async def cancelled() -> None:
        with anyio.CancelScope() as scope:

            async def on_progress(progress: float, total: float | None, message: str | None) -> None:
                heard.append(str(message))
                scope.cancel()

            await legacy.client.call_tool("payment_transfer", payment(), progress_callback=on_progress)
        assert scope.cancelled_caught

    legacy.portal.call(cancelled)
    approval_id = heard[0].rpartition(" ")[2]
    told = legacy.told("gateway_approval_status", {"approval_id": approval_id})
    assert (told["decision"], told["state"], told["approval_id"]) == ("pending_approval", "pending", approval_id)
    assert "Do not repeat the call" in told["next"]
    assert told["expires_at"].endswith("Z")
    _done(gate.operator().post(f"/v1/approvals/{approval_id}/approve"))
    told = legacy.told("gateway_approval_status", {"approval_id": approval_id, "wait_seconds": 10**400})
    assert (told["decision"], told["approval_id"]) == ("executed", approval_id)


def test_a_session_learns_nothing_about_another_sessions_hold(modern: Host, legacy: Host) -> None:
    task = begun(modern, payment())
    told = legacy.told("gateway_approval_status", {"approval_id": task.task_id})
    assert told["error"] == "approval_not_found"
    assert legacy.told("gateway_approval_status", {"approval_id": 5})["error"] == "invalid_arguments"


def test_a_hold_is_a_task_for_a_client_that_takes_one(modern: Host, gate: Gateway) -> None:
    operator = gate.operator()
    approved, denied, given_up = (begun(modern, payment()) for _ in range(3))
    assert (approved.status, approved.poll_interval_ms) == ("working", 2000)
    assert got(modern, approved.task_id).status == "working"
    _done(operator.post(f"/v1/approvals/{approved.task_id}/approve"))
    _done(operator.post(f"/v1/approvals/{denied.task_id}/deny", {"reason": "no"}))

    async def cancel() -> Result:
        return await modern.client.session.send_request(_Cancel(params=_Params(task_id=given_up.task_id)), Result)

    modern.portal.call(cancel)
    assert got(modern, given_up.task_id).status == "cancelled"
    done = ended(modern, approved.task_id)
    assert done.status == "completed"
    assert done.result is not None
    assert done.result["structuredContent"]["decision"] == "executed"
    refused = ended(modern, denied.task_id)
    assert (refused.status, (refused.result or {})["isError"]) == ("completed", True)
    with pytest.raises(MCPError, match="Task not found"):
        got(modern, "apr_unknown")


def test_a_task_belongs_to_its_session_and_needs_the_extension(modern: Host, legacy: Host) -> None:
    task = begun(modern, payment())
    with pytest.raises(MCPError, match="Method not found"):
        got(legacy, task.task_id)


def test_standard_output_has_the_protocol_alone_and_a_gateway_that_is_gone_is_an_answer(empty: Gatectl) -> None:
    frames: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
        {"id": 3, "method": "tools/call", "params": {"name": "text_digest", "arguments": {}}},
    ]  # fmt: skip
    with closed_port() as port:
        address = f"http://127.0.0.1:{port}"
        with subprocess.Popen(
            [SCRIPT, "mcp", "--address", address], env=empty.environ, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            assert process.stdin is not None
            assert process.stdout is not None
            for frame in frames:
                process.stdin.write(json.dumps({"jsonrpc": "2.0", **frame}) + "\n")
            process.stdin.flush()
            answers = [json.loads(process.stdout.readline()) for frame in frames if "id" in frame]
            rest, log = process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    assert rest == ""
    by_id = {one["id"]: one for one in answers}
    assert by_id[1]["result"]["protocolVersion"] == "2025-06-18"
    assert "unreachable" in by_id[2]["error"]["message"]
    told = by_id[3]["result"]["structuredContent"]
    assert by_id[3]["result"]["isError"] is True
    assert (told["error"], told["is_retryable"], told["may_have_run"]) == ("unreachable", True, False)
    assert log == f"gatectl mcp: serving the actions of {address}\n"


def test_without_a_gateway_or_without_the_package_one_sentence_says_what_to_do(empty: Gatectl) -> None:
    assert "no gateway is named" in empty.process("mcp").err
    code = """import sys
sys.modules["mcp"] = None
from gateway_client.cli.main import run
sys.exit(run(["mcp", "--address", "http://h"]))"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS, env=empty.environ
    )
    assert done.returncode == 2
    assert done.stderr == (
        "gatectl: no_mcp: the Python package mcp is not installed - "
        "pip install './sdk[mcp]' in a clone of the gateway's repository\n"
    )
