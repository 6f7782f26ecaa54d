"""Host calls through the component interface, from real components: what crosses, in both directions."""

import json
from pathlib import Path
from typing import Any

import pytest

from ipc.configuration.secret_ways import AsHeader
from ipc.messages.calling import Result
from ipc.plan import PlanEgress, PlannedRequest, SecretUse
from tests.support.worker_plans import builtin, digest_of, file_plan, http_plan, make_plan, text
from tests.support.worker_runner import Bench
from tests.support.worker_upstream import ok, saying, upstream


def output(result: Result) -> Any:
    assert result.outcome == "success", result
    assert result.output is not None
    return json.loads(result.output)


def files(bench: Bench, root: Path, *steps: dict[str, str]) -> tuple[list[Any], Result]:
    digest = bench.add(builtin("fs_probe"))
    result = bench.run(file_plan(root, provider_module_digest=digest, request=text({"steps": steps})))
    return output(result)["results"], result


def step(operation: str, path: str, **more: str) -> dict[str, str]:
    return {"operation": operation, "path": path} | more


def test_every_file_operation_crosses_the_interface(bench: Bench, tmp_path: Path) -> None:
    results, result = files(
        bench, tmp_path, step("write", "d/a.txt", data="héllo"), step("append", "d/a.txt", data="!"),
        step("read", "d/a.txt"), step("read", "d/a.txt", encoding="base64"), step("stat", "d/a.txt"), step("list", "d"),
        step("write", "d/b", data="AAE=", encoding="base64"), step("delete", "d/a.txt"), step("list", "d"),
    )  # fmt: skip
    entry = {"name": "a.txt", "kind": "file", "size": 7}
    assert results == [
        {"size": 6}, {"size": 7}, {"data": "héllo!"}, {"data": "aMOpbGxvIQ=="}, {"entry": entry}, {"entries": [entry]},
        {"size": 2}, {}, {"entries": [{"name": "b", "kind": "file", "size": 2}]},
    ]  # fmt: skip
    assert (result.io_calls, len(result.observations)) == (9, 9)
    assert all(seen.ok for seen in result.observations)


def test_every_file_operation_can_fail_across_the_interface(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc")
    results, _ = files(
        bench, tmp_path, step("read", "missing"), step("write", "link/x"), step("append", "../x"),
        step("list", "nowhere"), step("stat", "missing"), step("delete", "missing"), step("read", "/etc/passwd"),
    )  # fmt: skip
    kinds = [entry["error"]["kind"].replace("_", "-") for entry in results]
    assert kinds == ["not-found", "denied", "invalid-input", "not-found", "not-found", "not-found", "invalid-input"]


def test_a_provider_that_copes_with_a_host_failure_succeeds(bench: Bench, tmp_path: Path) -> None:
    _, result = files(bench, tmp_path, step("read", "missing"), step("write", "a", data="x"))
    assert [seen.ok for seen in result.observations] == [False, True]


def test_the_write_provider_writes_and_is_verified(bench: Bench, tmp_path: Path) -> None:
    bench.add(builtin("file_write"))
    request = text({"path": "notes/hello.txt", "content": "hello"})
    result = bench.run(file_plan(tmp_path, request=request, verifier_kind="fs_hash"))
    assert output(result)["bytes"] == 5
    assert (tmp_path / "notes" / "hello.txt").read_text() == "hello"
    assert result.verification.outcome == "verified"
    assert json.loads(result.verification.evidence[0]) == {
        "kind": "fs_hash", "path": "notes/hello.txt", "sha256": digest_of(b"hello"), "bytes": 5,
    }  # fmt: skip


def test_a_request_and_its_answer_cross_the_interface(bench: Bench) -> None:
    digest = bench.add(builtin("http_probe"))
    with upstream(ok(b"\xff\x00", "404 Not Found", b"X-A: 1\r\nX-A: 2\r\n")) as up:
        steps = [
            {
                "method": "POST",
                "url": "http://upstream.test/p",
                "headers": {"x-b": "3"},
                "body": "hi",
                "timeout_ms": 300_000,
            },
            {"url": "http://other.test/"},
        ]
        plan = http_plan(address=up.address, provider_module_digest=digest, request=text({"steps": steps}))
        first, second = output(bench.run(plan))["results"]
    assert (first["status"], first["body"], first["encoding"]) == (404, "/wA=", "base64")
    assert [header for header in first["headers"] if header["name"] == "x-a"] == [
        {"name": "x-a", "value": "1"}, {"name": "x-a", "value": "2"},
    ]  # fmt: skip
    assert second["error"]["kind"] == "denied"
    assert up.requests[0].startswith(b"POST /p HTTP/1.1\r\n")
    assert b"\r\nx-b: 3\r\n" in up.requests[0]


def http_call(address: str, status: str = "201", **changes: Any) -> dict[str, Any]:
    """Changes that make a plan of the built-in http provider."""
    planned = PlannedRequest("POST", "http://upstream.test/v1", (("content-type", "application/json"),), '{"a":1}')
    call = {"method": planned.method, "url": planned.url, "headers": planned.headers, "body": planned.body}
    return {
        "address": address, "provider_module_digest": digest_of(builtin("http")), "http_request": planned,
        "provider_input": text({"request": {}, "call": call}), "verifier_kind": "http_status",
        "verification_config": text({"expected": [int(status)]}),
    } | changes  # fmt: skip


def test_the_http_provider_sends_the_planned_request_and_is_verified(bench: Bench) -> None:
    bench.add(builtin("http"))
    with upstream(ok(b'{"id":7}', "201 Created", b"Content-Type: application/json\r\n")) as up:
        way = AsHeader("Authorization", "Bearer {value}")
        secrets = (SecretUse("token", way=way, domains=("upstream.test",)),)
        result = bench.run(http_plan(**http_call(up.address, secrets=secrets)), {"token": "s3cret-value"})
    assert output(result) == {"status": 201, "body": {"id": 7}}
    assert result.verification.outcome == "verified"
    assert b"authorization: Bearer s3cret-value" in up.requests[0]
    assert "s3cret-value" not in repr(result)


def test_an_unexpected_status_fails_the_verification_and_not_the_call(bench: Bench) -> None:
    bench.add(builtin("http"))
    with upstream(ok(b"{}", "403 Forbidden")) as up:
        result = bench.run(http_plan(**http_call(up.address)))
    assert result.outcome == "success"
    assert (result.verification.outcome, result.verification.reason) == (
        "verification_failed",
        "the host saw status 403",
    )


def test_an_upstream_that_fails_is_the_providers_error_and_one_that_is_gone_the_hosts(bench: Bench) -> None:
    bench.add(builtin("http"))
    with upstream(ok(b"", "503 Unavailable")) as up:
        assert bench.run(http_plan(**http_call(up.address))).outcome == "provider_error"
    result = bench.run(http_plan(**http_call("127.0.0.1:1")))
    assert result.outcome == "host_io"
    assert result.failure is not None
    assert result.failure.kind == "unavailable"


def test_an_upstream_that_says_nothing_useful_is_host_io(bench: Bench) -> None:
    bench.add(builtin("http"))
    with upstream(saying(b"garbage\r\n\r\n")) as up:
        assert bench.run(http_plan(**http_call(up.address))).outcome == "host_io"


def test_a_module_with_imports_the_plan_does_not_describe_is_denied_them(bench: Bench) -> None:
    bench.add(builtin("file_write"))
    plan = make_plan(
        provider_module_digest=digest_of(builtin("file_write")), profile="fs", required_imports=("fs",), files=None,
        request=text({"path": "a", "content": ""}),
    )  # fmt: skip
    result = bench.run(plan)
    assert result.outcome == "host_io"
    assert result.failure is not None
    assert result.failure.kind == "denied"


def test_an_action_without_egress_is_denied_http(bench: Bench) -> None:
    bench.add(builtin("http"))
    with upstream(ok()) as up:
        result = bench.run(http_plan(**http_call(up.address, egress=PlanEgress())))
        assert (result.outcome, up.requests) == ("host_io", [])


def test_the_guests_log_is_bounded_and_carries_the_trace(bench: Bench, capfd: pytest.CaptureFixture[str]) -> None:
    digest = bench.add(builtin("log_probe"))
    lines = ["plain", 'forged"}\n{"level":"error"', "x" * 5000, *(f"line {n}" for n in range(50))]
    plan = make_plan(provider_module_digest=digest, required_imports=("log",), request=text({"lines": lines}))
    assert output(bench.run(plan)) == {"logged": 53}
    written = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert len(written) == 20
    assert {entry["trace_id"] for entry in written} == {"trc_1"}
    assert written[0]["text"] == "plain"
    assert written[1]["text"] == lines[1]
    assert len(written[2]["text"]) == 1000
    assert written[-1]["is_last"] is True


def test_the_clock_moves_and_costs_no_io(bench: Bench) -> None:
    digest = bench.add(builtin("spin"))
    plan = make_plan(provider_module_digest=digest, required_imports=("clock",), request=text({"seconds": 0.05}))
    result = bench.run(plan)
    assert output(result)["seconds"] == 0.05
    assert result.duration_us >= 50_000
    assert result.io_calls == 0
