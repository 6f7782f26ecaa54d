"""Calls of tools with servers that mean harm or speak the protocol wrongly: each ends in time, none is a success."""

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest

from ipc.configuration.secret_ways import AsHeader
from ipc.messages.calling import Result
from ipc.plan import CallLimits, SecretUse
from tests.support.mcp_servers import ADD, EVENTS, Reply, event, in_json, parsed, result, scripted, tool_plan
from tests.support.worker_plans import builtin
from tests.support.worker_runner import Bench
from tests.support.worker_upstream import Upstream
from workers.host.event_stream import MAX_EVENTS
from workers.host.tool_calls import MAX_PAGES

Message = dict[str, Any]
GOOD = {"content": [{"type": "text", "text": "5"}], "isError": False}
REJECTED: Reply = ("400 Bad Request", "text/plain", b"no session")
NOTE = event(b'{"jsonrpc":"2.0","method":"notifications/progress","params":{}}')


def called(bench: Bench, answers: Callable[[str, Message, dict[str, str]], Reply], **changes: Any) -> Result:
    return asked(bench, answers, **changes)[0]


def asked(
    bench: Bench, answers: Callable[[str, Message, dict[str, str]], Reply], values: dict[str, str] | None = None,
    **changes: Any,
) -> tuple[Result, Upstream]:  # fmt: skip
    bench.add(builtin("mcp"))
    with scripted(answers) as up:
        return bench.run(tool_plan(up.address, **changes), values), up


def calling(reply: Reply) -> Callable[[str, Message, dict[str, str]], Reply]:
    """A server of the current revision that lists the tool, and answers its call so."""

    def answers(method: str, message: Message, _: dict[str, str]) -> Reply:
        return in_json(message["id"], {"tools": [ADD]}) if method == "tools/list" else reply

    return answers


def open_stream(body: bytes, *, is_chunked: bool = True) -> Callable[[socket.socket], None]:
    """An event stream that begins so and does not end before its reader goes."""

    def write(connection: socket.socket) -> None:
        coding = b"Transfer-Encoding: chunked\r\n" if is_chunked else b""
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + coding + b"\r\n")
        connection.sendall(b"%x\r\n%s\r\n" % (len(body), body) if is_chunked else body)
        while connection.recv(65536):
            pass

    return write


@pytest.mark.parametrize("is_chunked", [True, False])
def test_a_stream_that_does_not_end_is_left_once_the_answer_has_come(bench: Bench, is_chunked: bool) -> None:
    body = b": hello\n\n" + NOTE + event(b'{"jsonrpc":"2.0","id":7,"method":"ping"}') + event(result(1, GOOD))
    limits = CallLimits(timeout_seconds=60.0)
    done = called(bench, calling(open_stream(body, is_chunked=is_chunked)), limits=limits)
    assert done.outcome == "success", done


@pytest.mark.parametrize("last", [b"", b": end\n\n"], ids=["the last", "not the last"])
@pytest.mark.parametrize("line_end", [b"\r\n", b"\r", b"\n"])
def test_events_are_read_with_each_end_of_a_line(bench: Bench, line_end: bytes, last: bytes) -> None:
    data = result(1, GOOD).replace(b', "result"', b',\n "result"').split(b"\n")
    body = b"\n".join(b"data:" + line for line in data) + b"\n\n"
    reply = ("200 OK", EVENTS + "; charset=utf-8", (body + last).replace(b"\n", line_end))
    assert called(bench, calling(reply)).outcome == "success"


def test_a_byte_order_mark_before_the_first_event_is_skipped(bench: Bench) -> None:
    body = b"\xef\xbb\xbf" + b"data: " + result(1, GOOD) + b"\n\n"
    assert called(bench, calling(("200 OK", EVENTS, body))).outcome == "success"


def test_the_first_answer_counts(bench: Bench) -> None:
    other = {"content": [], "isError": True}
    done = called(bench, calling(("200 OK", EVENTS, event(result(1, GOOD)) + event(result(1, other)))))
    assert json.loads(done.output or "") == {"content": GOOD["content"]}


NO_ANSWERS: dict[str, Reply] = {
    "the answer to another request": in_json(2, GOOD),
    "an id that is a text": ("200 OK", "application/json", result(1, GOOD).replace(b'"id": 1', b'"id": "1"')),
    "an id that is true": ("200 OK", "application/json", result(1, GOOD).replace(b'"id": 1', b'"id": true')),
    "a list of answers": ("200 OK", "application/json", b"[" + result(1, GOOD) + b"]"),
    "result and error": ("200 OK", "application/json", result(1, GOOD)[:-1] + b', "error": {}}'),
    "no JSON": ("200 OK", "application/json", b"<html>"),
    "JSON that is nested without end": ("200 OK", "application/json", b"[" * 100_000),
    "accepted without an answer": ("202 Accepted", "text/plain", b""),
    "a stream that ends before the answer": ("200 OK", EVENTS, NOTE),
    "an event that is cut": ("200 OK", EVENTS, event(result(1, GOOD))[:-2]),
    "a result with the status of a failure": ("500 Internal Server Error", "application/json", result(1, GOOD)),
    "a result in a redirect": ("302 Found", "application/json", result(1, GOOD)),
    "a redirect": ("307 Temporary Redirect", "text/plain", b""),
    "a session that is lost": ("404 Not Found", "text/plain", b""),
    "more messages than are read": ("200 OK", EVENTS, NOTE * MAX_EVENTS + event(result(1, GOOD)) + NOTE),
    "more bytes than are read": ("200 OK", EVENTS, b": " + b"x" * 2_000_000),
}


@pytest.mark.parametrize("case", NO_ANSWERS)
def test_an_answer_that_is_none_is_the_hosts_failure(bench: Bench, case: str) -> None:
    done = called(bench, calling(NO_ANSWERS[case]))
    assert (done.outcome, done.output) == ("host_io", None), done


FAILURES: dict[str, tuple[Any, str]] = {
    "isError": ({**GOOD, "isError": True}, "the tool failed: 5"),
    "isError that is no truth value": ({**GOOD, "isError": "false"}, "the tool failed: 5"),
    "more input": ({"resultType": "input_required", "inputRequests": {}}, "asks for more input"),
    "no content": ({"structuredContent": {"a": 1}}, "without content"),
    "content that is no list": ({"content": "5"}, "no list"),
    "a number that can't be signed": ({**GOOD, "structuredContent": {"a": 2**60}}, "no JSON that can be signed"),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_result_that_tells_of_no_success_is_a_failed_provider(bench: Bench, case: str) -> None:
    value, words = FAILURES[case]
    done = called(bench, calling(in_json(1, value)))
    assert (done.outcome, done.verification.outcome) == ("provider_error", "provider_failed_before_verification")
    assert done.failure is not None
    assert words in done.failure.message


def test_an_error_of_the_protocol_is_a_failed_provider(bench: Bench) -> None:
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "no such path"}}
    done = called(bench, calling(("400 Bad Request", "application/json", json.dumps(error).encode())))
    assert done.outcome == "provider_error"
    assert done.failure is not None
    assert (done.failure.message, done.failure.details) == (
        "the MCP server refused the call: no such path",
        '{"code":-32602}',
    )


def test_a_stream_without_an_answer_ends_with_the_calls_time(bench: Bench) -> None:
    limits = CallLimits(timeout_seconds=1.0)
    done = called(bench, calling(open_stream(NOTE)), limits=limits)
    assert done.outcome in ("host_io", "timeout"), done
    assert done.output is None


def test_an_answer_that_repeats_a_secret_reaches_no_provider(bench: Bench) -> None:
    use = SecretUse("token", way=AsHeader("Authorization"), domains=("upstream.test",))
    echo = {**GOOD, "content": [{"type": "text", "text": "your token is s3cret-value"}]}
    done, _ = asked(bench, calling(in_json(1, echo)), {"token": "s3cret-value"}, secrets=(use,))
    assert done.outcome == "host_io"
    assert "s3cret-value" not in repr(done)


LISTINGS: dict[str, tuple[list[Any], str]] = {
    "the tool stands twice": ([ADD, {**ADD, "description": "Other."}], "tool_changed"),
    "a tool without a digest": ([{**ADD, "inputSchema": {"maximum": 2**60}}], "tool_changed"),
    "another name alone": ([{**ADD, "name": "Add"}], "tool_changed"),
    "tools that are none": ([None, 1, "add", ["add"]], "tool_changed"),
}


@pytest.mark.parametrize("case", LISTINGS)
def test_a_tool_that_is_not_listed_as_pinned_is_not_called(bench: Bench, case: str) -> None:
    tools, outcome = LISTINGS[case]
    asked_for: list[str] = []

    def answers(method: str, message: Message, _: dict[str, str]) -> Reply:
        asked_for.append(method)
        return in_json(message["id"], {"tools": tools})

    assert called(bench, answers).outcome == outcome
    assert asked_for == ["tools/list"]


def test_the_tool_is_looked_for_on_each_page_up_to_a_bound(bench: Bench) -> None:
    def paged(last: int) -> Callable[[str, Message, dict[str, str]], Reply]:
        def answers(method: str, message: Message, _: dict[str, str]) -> Reply:
            if method == "tools/call":
                return in_json(1, GOOD)
            page = int(message["params"].get("cursor", "1"))
            tools = [ADD] if page == last else []
            return in_json(message["id"], {"tools": tools, "nextCursor": str(page + 1)})

        return answers

    limits = CallLimits(max_io_calls=1000, timeout_seconds=600.0)
    assert called(bench, paged(3), limits=limits).outcome == "success"
    endless = called(bench, paged(0), limits=limits)
    assert (endless.outcome, endless.io_calls) == ("host_io", MAX_PAGES + 1)


def in_session(
    version: str, session: str = "s1", broken: dict[str, Reply] | None = None
) -> Callable[[str, Message, dict[str, str]], Reply]:
    """A server with sessions; `broken` replaces answers by the last word of a method."""

    def answers(method: str, message: Message, headers: dict[str, str]) -> Reply:
        if headers.get("mcp-protocol-version") == "2026-07-28":
            return REJECTED
        known: dict[str, Reply] = {
            "initialize": opening(session, message.get("id", 0), version),
            "initialized": ("202 Accepted", "text/plain", b""),
            "list": in_json(message.get("id", 0), {"tools": [ADD]}),
            "call": in_json(1, GOOD),
            "DELETE": ("405 Method Not Allowed", "text/plain", b""),
        }
        return (known | (broken or {}))[method.rpartition("/")[2]]

    return answers


def opening(session: str, number: int, version: str) -> Callable[[socket.socket], None]:
    body = result(number, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "x"}})
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    whole = head.encode() + b"Connection: close\r\nMcp-Session-Id: " + session.encode() + b"\r\n\r\n" + body
    return lambda connection: connection.sendall(whole)


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26"])
def test_earlier_revisions_are_spoken_as_the_server_chooses(bench: Bench, version: str) -> None:
    done, up = asked(bench, in_session(version))
    assert done.outcome == "success", done
    methods = [parsed(request)[2].get("method", "DELETE") for request in up.requests]
    assert methods == ["tools/list", "initialize", "notifications/initialized", "tools/list", "tools/call", "DELETE"]
    assert {parsed(request)[1]["mcp-protocol-version"] for request in up.requests[2:]} == {version}


@pytest.mark.parametrize("version", ["2024-11-05", "2099-01-01", "", "2026-07-28"])
def test_a_revision_that_is_not_known_is_not_spoken(bench: Bench, version: str) -> None:
    done, up = asked(bench, in_session(version))
    assert done.outcome == "host_io"
    assert not any(b"tools/call" in request for request in up.requests)


def test_a_session_id_that_can_not_be_sent_is_refused(bench: Bench) -> None:
    done = called(bench, in_session("2025-11-25", session="two words"))
    assert done.outcome == "host_io"
    assert done.failure is not None
    assert "session" in done.failure.message


@pytest.mark.parametrize("reply", ["initialize", "initialized", "list", "call"])
def test_a_handshake_that_breaks_ends_the_call_and_its_session(bench: Bench, reply: str) -> None:
    done, up = asked(bench, in_session("2025-11-25", broken={reply: ("500 Oh", "text/plain", b"")}))
    assert done.outcome == "host_io", done
    assert (parsed(up.requests[-1])[0] == "DELETE") == (reply != "initialize")


def test_a_server_that_does_not_let_a_session_end_delays_no_result_beyond_the_calls_time(bench: Bench) -> None:
    def never(connection: socket.socket) -> None:
        connection.recv(1)

    done = called(bench, in_session("2025-11-25", broken={"DELETE": never}))
    assert done.outcome == "success", done


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden", "503 Service Unavailable"])
def test_a_server_that_refuses_the_caller_is_asked_once(bench: Bench, status: str) -> None:
    done, up = asked(bench, lambda *_: (status, "text/plain", b""))
    assert (done.outcome, len(up.requests)) == ("host_io", 1)
    assert done.failure is not None
    assert status[:3] in done.failure.message
