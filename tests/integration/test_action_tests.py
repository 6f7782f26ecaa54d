"""`gateway test actions`: a real gateway, worker and upstream for the tests beside manifests."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.gateway import wait_for
from tests.support.manifests import write_manifests
from tests.support.mcp_servers import ADD, tool_action
from tests.support.processes import GATEWAY, is_running, titles_below

MANIFEST = """\
action_id: billing_refund
version: 1.0.0
description: Refunds a part of an invoice.
provider_module_digest: builtin:http
required_imports: [http]
risk_level: high
declared_side_effects: [http_write]
resource_limits: {fuel: 300000000, timeout_seconds: 60, max_io_calls: 1}
io:
  request_schema:
    type: object
    additionalProperties: false
    required: [id, amount_cents]
    properties:
      id: {type: string, pattern: "^inv_[0-9]+$"}
      amount_cents: {type: integer, minimum: 1}
egress: {profile: direct_allowlist, allowed_domains: [billing.corp.example], allowed_methods: [POST]}
template:
  method: POST
  url_template: "https://billing.corp.example/invoices/{id}/refunds"
  headers: {Content-Type: application/json}
  body_template: {amount: "{amount_cents}"}
secrets:
  - {name: billing_token, inject: {header: Authorization, format: "Bearer {value}"}}
verifier_kind: http_status
verification_config: {expected: [201]}
"""
GOOD = """\
- name: refunds a part
  principal: billing-agent
  request: {id: inv_7, amount_cents: 2500}
  expect:
    decision: hold
    rule: hold_high_risk
    sends:
      method: POST
      url: "https://billing.corp.example/invoices/inv_7/refunds"
      headers: {Content-Type: application/json, Authorization: Bearer <secret billing_token>}
      body: {amount: 2500}
  upstream: {status: 201, headers: {Location: /r/1}, body: {id: r_1}}
  result: {status: 201, body: {id: r_1}}
  outcome: verified
- name: refuses an amount below one
  principal: another-agent
  request: {id: inv_7, amount_cents: 0}
  expect: {error: schema_violation}
- name: is not verified by another status
  principal: another-agent
  request: {id: inv_7, amount_cents: 1}
  expect: {decision: hold}
  upstream: {status: 409, body: {error: closed}}
  outcome: verification_failed
- name: fails alone
  principal: billing-agent
  request: {id: inv_7, amount_cents: 1}
  expect: {decision: hold}
  upstream: {error: refused}
  outcome: provider_failed_before_verification
"""
WRONG = """\
- name: tells of two differences
  principal: billing-agent
  request: {id: inv_7, amount_cents: 2500}
  expect: {decision: allow, sends: {body: {amount: 1}}}
- name: has another result
  principal: billing-agent
  request: {id: inv_7, amount_cents: 2500}
  expect: {decision: hold}
  upstream: {status: 201, body: {id: r_1}}
  result: {status: 200, body: {id: r_1}}
"""
FAILED = "provider_failed_before_verification"
TOOL_CALL = {"principal": "a", "request": {"a": 1, "b": 2}, "expect": {"decision": "hold"}}
SUM = {"content": [{"type": "text", "text": "3"}]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The manifest in a file whose name is not that of its action."""
    actions = tmp_path / "actions"
    actions.mkdir()
    (actions / "refund.yaml").write_text(MANIFEST)
    return actions


def run(folder: Path, *more: str) -> "subprocess.CompletedProcess[str]":
    """The command, in a temporary folder of its own that must be empty afterwards."""
    temporary = folder.parent / "tmp"
    temporary.mkdir(exist_ok=True)
    ended = subprocess.run(
        [GATEWAY, "test", "actions", str(folder), *more],
        env={**os.environ, "TMPDIR": str(temporary)}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert list(temporary.iterdir()) == []
    return ended


def test_calls_are_previewed_and_run_against_the_upstream_that_each_test_plays(folder: Path) -> None:
    (folder / "refund.test.yaml").write_text(GOOD)
    ended = run(folder)
    assert (ended.returncode, ended.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in ended.stdout.splitlines()]
    assert lines == [
        "TEST EXPECTED GOT",
        "ok refund: refunds a part hold, verified hold, verified",
        "ok refund: refuses an amount below one schema_violation schema_violation",
        "ok refund: is not verified by another status hold, verification_failed hold, verification_failed",
        f"ok refund: fails alone hold, {FAILED} hold, {FAILED}",
        "4 tests, 0 failed",
    ]


def test_each_difference_is_told_with_its_place_as_tap_too(folder: Path) -> None:
    (folder / "refund.test.yaml").write_text(WRONG)
    ended = run(folder, "--tap")
    assert (ended.returncode, ended.stderr) == (1, "")
    told = ended.stdout.splitlines()
    assert told[:3] == ["TAP version 14", "1..2", "not ok 1 - refund: tells of two differences"]
    for one in (
        r'    - "/expect/decision: expected \"allow\", got \"hold\""',
        '    - "/expect/sends/body/amount: expected 1, got 2500"',
        "not ok 2 - refund: has another result",
        '    - "/result/status: expected 200, got 201"',
    ):
        assert one in told


def test_a_policy_of_the_command_line_decides(folder: Path) -> None:
    policy = folder.parent / "policy"
    policy.mkdir()
    shipped = Path(__file__).resolve().parents[2] / "contrib" / "examples" / "policy"
    for source in (*shipped.glob("*.rego"), *shipped.glob("*.json")):
        (policy / source.name).write_bytes(source.read_bytes())
    (folder / "refund.test.yaml").write_text(
        "- name: a stranger may not refund\n  principal: stranger\n  request: {id: inv_7, amount_cents: 1}\n"
        "  expect: {decision: deny, rule: acl}\n"
    )
    ended = run(folder, "--policy", str(policy))
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout


def test_a_folder_with_mistakes_is_refused_with_all_of_them_and_runs_nothing(folder: Path) -> None:
    (folder / "refund.test.yaml").write_text("- name: one\n  principal: a\n  expect: {decision: held}\n  outcom: x\n")
    (folder / "gone.test.yaml").write_text(GOOD)
    ended = run(folder)
    assert (ended.returncode, ended.stdout) == (78, "")
    told = ended.stderr.splitlines()
    assert [line.partition("  ")[0].removeprefix(f"{folder}/") for line in told] == [
        "gone.test.yaml", "refund.test.yaml:3", "refund.test.yaml:4",
    ]  # fmt: skip
    assert "Did you mean outcome?" in told[2]
    assert run(folder.parent / "nowhere").returncode == 78


def test_calls_with_a_token_run_against_a_played_server_of_tokens(folder: Path) -> None:
    way = "oauth2_client_credentials: {token_url: https://login.example/token?v=1, client_id: gateway}"
    text = MANIFEST.replace('header: Authorization, format: "Bearer {value}"', way)
    (folder / "refund.yaml").write_text(text)
    shown = "Authorization: Bearer <token by secret billing_token>"
    (folder / "refund.test.yaml").write_text(
        GOOD.replace("Authorization: Bearer <secret billing_token>", shown)
        + "- name: is refused by its upstream\n  principal: a\n  request: {id: inv_7, amount_cents: 1}\n"
        "  expect: {decision: hold}\n  upstream: {status: 401}\n  outcome: verification_failed\n"
    )
    ended = run(folder)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "5 tests, 0 failed" in ended.stdout


def test_calls_of_tools_run_against_a_played_mcp_server_that_lists_the_pinned_tool(folder: Path) -> None:
    (folder / "refund.yaml").unlink()
    write_manifests(folder, tool_action("add", "tools.corp.example", risk_level="high"))
    good: list[dict[str, Any]] = [
        {"name": "adds", "upstream": {"tool": ADD, "body": SUM}, "result": SUM, "outcome": "unverifiable_declared"},
        {"name": "fails", "upstream": {"tool": ADD, "body": SUM | {"isError": True}}, "outcome": FAILED},
        {"name": "is away", "upstream": {"tool": ADD, "status": 503}, "outcome": FAILED},
        {"name": "is refused", "upstream": {"error": "refused"}, "outcome": FAILED},
    ]
    tests = folder / "add.test.yaml"
    tests.write_text(json.dumps([TOOL_CALL | one for one in good], indent=1))
    ended = run(folder)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "4 tests, 0 failed" in ended.stdout
    changed = [
        {"name": "changed", "upstream": {"tool": ADD | {"description": "Subtract."}}},
        {"name": "none", "result": {}},
    ]
    tests.write_text(json.dumps([TOOL_CALL | one for one in changed], indent=1))
    told = run(folder).stderr.splitlines()
    assert [line.count("upstream.tool must be the tool that the manifest pins") for line in told] == [1, 1]


def test_a_command_that_is_killed_takes_its_gateway_along(folder: Path) -> None:
    (folder / "refund.test.yaml").write_text(
        "- name: waits for an upstream that does not answer\n  principal: a\n  request: {id: inv_7, amount_cents: 1}\n"
        "  expect: {decision: hold}\n  upstream: {error: timeout}\n  outcome: verified\n"
    )
    temporary = folder.parent / "tmp"
    temporary.mkdir()
    command = subprocess.Popen([GATEWAY, "test", "actions", str(folder)], env={**os.environ, "TMPDIR": str(temporary)})
    try:
        wait_for(lambda: any("http" in name for name in titles_below(command.pid).values()), "a worker")
        gateway = titles_below(command.pid)
    finally:
        command.kill()
        command.wait(60)
    wait_for(lambda: not any(map(is_running, gateway)), "the end of every process")
