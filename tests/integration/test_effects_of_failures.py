"""Failed calls of each kind of effect beside what happened: requests that the upstream counted, calls that the MCP
server ran, files that lie there. Requests of built-in providers stand in test_call_failures.py."""

import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from ipc.mcp_tools import CALL_ID
from tests.support.background import Background
from tests.support.gateway import Gateway, gateway, wait_for
from tests.support.half_done import MODULES
from tests.support.hosts_file import can_change_hosts, gateway_with_hosts
from tests.support.manifests import (
    PATIENT,
    example,
    open_policy,
    patient,
    plain_action,
    put_module,
    trust,
    write_manifests,
)  # fmt: skip
from tests.support.mcp_servers import ADD, Reply, in_json, scripted, tool_action
from tests.support.ports import closed_port
from tests.support.worker_upstream import HOLD_SECONDS, Upstream, ok, upstream

SECRET = "secret-of-the-upstream"
HOST = "upstream.gateway.test"
SENT: list[tuple[str, str, str]] = [
    # action, X-Failure, X-May-Have-Run
    ("traps_before", "provider_failed", "no"), ("traps_after", "provider_failed", "yes"),
    ("burns_before", "limit_fuel", "no"), ("burns_after", "limit_fuel", "yes"),
    ("grows_before", "limit_memory", "no"), ("grows_after", "limit_memory", "yes"),
    ("lasts_before", "limit_time", "no"), ("lasts_after", "limit_time", "yes"),
    ("sends_often", "limit_io", "yes"), ("elsewhere", "upstream_denied", "no"),
    ("reflected", "upstream_denied", "yes"), ("other_answer", "provider_failed", "yes"),
    ("proxied", "upstream_denied", "no"), ("private", "upstream_denied", "no"),
    ("without_secret", "secret_missing", "no"), ("without_token", "secret_missing", "no"),
]  # fmt: skip
WRITTEN: list[tuple[str, dict[str, Any], str, str]] = [
    # action, request, X-Failure, X-May-Have-Run
    ("traps_unwritten", {"path": "a"}, "provider_failed", "no"),
    ("writes_and_traps", {"path": "a"}, "provider_failed", "yes"),
    ("writes_and_burns", {"path": "a"}, "limit_fuel", "yes"),
    ("writes_often", {"path": "a"}, "limit_io", "yes"),
    ("writes_elsewhere", {"path": "b"}, "upstream_denied", "no"),
    ("small_write", {"path": "a", "content": "more than eight bytes"}, "limit_io", "no"),
]


HANGS: Reply = ("hangs", "", b"")


@dataclass
class McpScript:
    """An MCP server that breaks where a test says."""

    replies: dict[str, Reply] = field(default_factory=dict)
    """By method of JSON-RPC."""
    calls: int = 0
    """Calls of its tool."""
    stop: threading.Event = field(default_factory=threading.Event)

    def answer(self, method: str, message: dict[str, Any], _headers: dict[str, str]) -> Reply:
        self.calls += method == "tools/call"
        reply = self.replies.get(method)
        if reply is HANGS:
            return lambda _: _hang(self.stop)
        if reply is not None:
            return reply
        return in_json(message["id"], {"tools": [ADD]} if method == "tools/list" else {"content": []})


def _hang(stop: threading.Event) -> None:
    stop.wait(HOLD_SECONDS)


def reset(connection: socket.socket) -> None:
    connection.close()


def in_http(status: str, body: bytes = b"{}") -> Reply:
    return status, "application/json", body


REFUSAL = in_http(
    "200 OK", json.dumps({"jsonrpc": "2.0", "id": CALL_ID, "error": {"code": -32000, "message": "m"}}).encode()
)
CALLED: list[tuple[str, str, Reply, str, str]] = [
    # action, method that breaks, its reply, X-Failure, X-May-Have-Run
    ("tool", "tools/list", reset, "upstream_reset", "no"),
    ("tool", "tools/list", in_http("503 Away"), "upstream_status", "no"),
    ("tool", "tools/list", in_http("200 OK", b"no JSON"), "upstream_reset", "no"),
    ("tool", "tools/call", reset, "upstream_reset", "unknown"),
    ("tool", "tools/call", in_http("500 Broken"), "upstream_status", "yes"),
    ("tool", "tools/call", in_http("200 OK", b"no JSON"), "upstream_reset", "yes"),
    ("tool", "tools/call", in_json(CALL_ID, {"content": [], "isError": True}), "provider_failed", "yes"),
    ("tool", "tools/call", REFUSAL, "provider_failed", "yes"),
    ("short_tool", "tools/call", HANGS, "upstream_timeout", "unknown"),
    ("tool_of_none", "tools/list", reset, "upstream_unreachable", "no"),
]


@dataclass
class Stage:
    """A gateway, and all that its actions have effects on."""

    gate: Gateway
    up: Upstream
    mcp: McpScript
    file: Path
    """The file that modules write."""


def fetch(action_id: str, host: str = HOST, **changes: Any) -> dict[str, Any]:
    egress = {"allowed_domains": [host]} | changes.pop("egress", {})
    url = {"url_template": f"http://{host}/a"}
    return example("http_fetch", action_id=action_id, egress=egress, template=url, **changes)


def actions_in(folder: Path) -> list[dict[str, Any]]:
    """Every action beside the examples, with its module."""
    made = []
    for name, (module, imports, limits) in MODULES.items():
        more: dict[str, Any] = {"verifier_kind": "unverifiable"} if "http" in imports else {}
        made.append(plain_action(name, put_module(folder, module), imports, **limits, **more))
    trust(folder, *(one["provider_module_digest"] for one in made))
    bearer = {"header": "Authorization", "format": "Bearer {value}"}
    way = {"token_url": "http://login.gateway.test/token", "client_id": "c", "scopes": []}
    return [
        *made,
        fetch("reflected", secrets=[{"name": "reflected", "domains": [HOST], "inject": bearer}]),
        fetch("without_secret", secrets=[{"name": "absent", "domains": [HOST], "inject": bearer}]),
        fetch("without_token", secrets=[{"name": "client", "inject": {"oauth2_client_credentials": way}}]),
        fetch("other_answer", io={"response_schema": {"required": ["never"]}}),
        fetch("proxied", egress={"profile": "proxy_allowlist"}),
        fetch("private", "private.gateway.test"),
        example("file_write", action_id="small_write", fs={"max_file_bytes": 8}, **PATIENT),
        tool_action("tool", "tools.gateway.test"), tool_action("short_tool", "tools.gateway.test", seconds=5),
        tool_action("tool_of_none", "closed.gateway.test"),
    ]  # fmt: skip


def reflects(ups: list[Upstream]) -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        ok(json.dumps({"seen": SECRET if SECRET in ups[0].requests[-1].decode() else "nothing"}).encode())(connection)

    return answer


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder: Path = tmp_path_factory.mktemp("effects")
    top = patient(folder / "actions")
    made = actions_in(folder / "actions")
    write_manifests(folder / "actions", *made)
    top += f'policy_dir = "{open_policy(folder / "policy", *(one["action_id"] for one in made))}"\n'
    secrets = folder / "secrets.json"
    secrets.touch(mode=0o600)
    secrets.write_text(json.dumps({"reflected": SECRET, "client": "client-secret"}))
    (folder / "hosts").write_text("10.9.9.9 private.gateway.test\n")
    ups: list[Upstream] = []
    script = McpScript()
    with ExitStack() as stack:
        up = stack.enter_context(upstream(reflects(ups)))
        ups.append(up)
        proxy = stack.enter_context(upstream(ok(b"", "403 Forbidden")))
        tools = stack.enter_context(scripted(script.answer))
        stack.callback(script.stop.set)
        closed = f"127.0.0.1:{stack.enter_context(closed_port())}"
        places = {HOST: up.address, "tools.gateway.test": tools.address, "login.gateway.test": closed,
                  "closed.gateway.test": closed}  # fmt: skip
        named = ", ".join(f'"{name}" = "{place}"' for name, place in places.items())
        top += f'egress_proxy_url = "http://{proxy.address}"\n'
        config = f'{top}[egress]\nunsafe_resolve = {{{named}}}\n[secrets]\nfile = "{secrets}"\n'
        start = gateway_with_hosts if can_change_hosts() else gateway
        running = stack.enter_context(start(folder, config))
        yield Stage(running, up, script, running.state / "files" / "a")


def told(at: Stage, answer: httpx.Response) -> tuple[str | None, str | None]:
    """Both headers, which the event has, too."""
    assert (answer.status_code, answer.json()) == (502, {"error": "action_execution_failed"}), answer.text[:300]
    heard = answer.headers.get("X-Failure"), answer.headers.get("X-May-Have-Run")
    (event,) = at.gate.events(trace_id=answer.headers["x-trace-id"])
    assert (event["failure"], event["may_have_run"]) == heard
    return heard


@pytest.mark.parametrize(("action", "failure", "may_have_run"), SENT)
def test_a_failed_call_tells_whether_its_upstream_has_counted_it(
    at: Stage, action: str, failure: str, may_have_run: str
) -> None:
    if action == "private" and not can_change_hosts():
        pytest.skip("only root may give a gateway another hosts file")
    before = len(at.up.requests)
    assert told(at, at.gate.agent().execute(action, {"path": "a"})) == (failure, may_have_run)
    assert (len(at.up.requests) > before) == (may_have_run != "no")


@pytest.mark.parametrize(("action", "method", "reply", "failure", "may_have_run"), CALLED)
def test_a_failed_call_of_a_tool_tells_whether_the_tool_was_called(
    at: Stage, action: str, method: str, reply: Reply, failure: str, may_have_run: str
) -> None:
    before = at.mcp.calls
    at.mcp.replies = {method: reply}
    assert told(at, at.gate.agent().execute(action, {"a": 1, "b": 2})) == (failure, may_have_run)
    assert at.mcp.calls - before == (may_have_run != "no")


@pytest.mark.parametrize(("action", "request_body", "failure", "may_have_run"), WRITTEN)
def test_a_failed_call_tells_whether_a_file_was_written(
    at: Stage, action: str, request_body: dict[str, Any], failure: str, may_have_run: str
) -> None:
    at.file.unlink(missing_ok=True)
    assert told(at, at.gate.agent().execute(action, request_body)) == (failure, may_have_run)
    assert at.file.exists() == (may_have_run != "no")


def test_a_call_whose_worker_is_killed_may_have_written(at: Stage) -> None:
    at.file.unlink(missing_ok=True)
    agent = at.gate.agent()
    call = Background(lambda: agent.execute("writes_for_ever", {"path": "a"}))
    wait_for(at.file.exists, "the file is written")
    (worker,) = at.gate.children("worker fs")
    os.kill(worker.pid, signal.SIGKILL)
    answer = call.answer()
    assert answer is not None
    assert told(at, answer) == ("worker_lost", "unknown")
