"""How a gateway ends and what its log says, as the people who run it see both."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psutil

from frontend.deadlines import ConfigurationDeadlines
from tests.support.gateway import ANSWER_SECONDS, STOP_SECONDS, Gateway, ready_line, wait_for

CANARY = "canary-7f3a9c"


def lines(gate: Gateway) -> list[dict[str, Any]]:
    """Those that are whole: one may be on its way into the file."""
    return [json.loads(line) for line in gate.log.read_text().rpartition("\n")[0].splitlines()]


def test_a_gateway_that_still_waits_for_its_modules_stops_at_once(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("gateway")), "dev", "--listen", "127.0.0.1:0"]
    command += ["--state-dir", str(tmp_path / "state")]
    log = tmp_path / "log"
    with log.open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)

    def template() -> psutil.Process | None:
        for one in psutil.Process(process.pid).children():
            with suppress(psutil.Error):  # of helpers that end meanwhile
                if one.cmdline()[:1] == ["gateway: template"]:
                    return one
        return None

    try:
        wait_for(template, "the process that loads modules").suspend()
        wait_for(lambda: (tmp_path / "state" / "ledger.sqlite3").exists(), "a front that opens")
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_SECONDS) == 0, log.read_text()
        assert time.monotonic() - began < ConfigurationDeadlines().prepare_seconds, "it did not wait for the modules"
    finally:
        process.kill()
        process.wait(STOP_SECONDS)


def test_every_decision_is_one_line_of_the_log_with_its_trace(gate: Gateway) -> None:
    agent, operator = gate.agent(max_calls=5), gate.operator()
    traces = {}
    for name, body in (
        ("text_digest", {"text": CANARY}),
        ("forbidden_export", {"table": "customers"}),
        ("text_digest", {"nothing": CANARY}),
        ("nothing", {"a": CANARY}),
        ("spin", {"fuel": 50_000_000_000, "memory_mb": 0, "seconds": 0}),
        ("payment_transfer", {"to": CANARY, "amount_cents": 1, "currency": "EUR"}),
        ("payment_transfer", {"to": CANARY, "amount_cents": 1, "currency": "EUR"}),
    ):
        answer = agent.execute(name, body)
        traces[answer.headers["x-trace-id"]] = answer
    held = list(traces.values())[-1].json()["approval_id"]
    assert operator.post(f"/v1/approvals/{held}/deny", {"reason": CANARY}).status_code == 200
    said = wait_for(
        lambda: (
            (decisions := [one for one in lines(gate) if one.get("trace_id") in traces and "decision" in one])
            and len(decisions) == len(traces) + 1
            and decisions
        ),
        "a line for each decision",
    )
    assert [(one["decision"], one["action_id"], one.get("code")) for one in said] == [
        ("allow", "text_digest", None),
        ("deny", "forbidden_export", "policy_denied"),
        ("deny", "text_digest", "schema_violation"),
        ("deny", "nothing", "action_not_found"),
        ("error", "spin", "action_execution_failed"),
        ("pending_approval", "payment_transfer", None),
        ("pending_approval", "payment_transfer", None),
        ("deny", "payment_transfer", "approval_denied"),
    ]
    for one in said:
        assert one["principal"] == "dev:anonymous"
        assert isinstance(one["duration_ms"], int)


def test_no_body_token_proof_or_key_stands_in_the_log(gate: Gateway) -> None:
    agent, operator = gate.agent(), gate.operator()
    path = "/v1/actions/text_digest/execute"
    headers = agent.headers("POST", path)
    for body in ({"text": CANARY}, {"text": 5, CANARY: CANARY}, [CANARY]):
        gate.http.post(path, headers=agent.headers("POST", path), json=body)
    for _ in range(2):
        gate.http.post(path, headers=headers, json={"text": CANARY})
    gate.http.post(path, headers=headers | {"Authorization": f"DPoP {agent.token[:-4]}AAAA"}, json={})
    gate.http.post(path, headers=headers | {"DPoP": headers["DPoP"][:-4] + "AAAA"}, json={})
    agent.execute("http_fetch", {"path": f"/status/500?{CANARY}"})
    agent.execute("file_write", {"path": f"../{CANARY}", "content": CANARY})
    operator.get(f"/v1/audit/events?principal={CANARY}&nonsense=1")
    operator.post("/v1/approvals/apr_x/deny", {"reason": CANARY})
    text = gate.log.read_text()
    for secret in (CANARY, agent.token, headers["DPoP"], operator.token, agent.token.rpartition(".")[2]):
        assert secret not in text


def test_a_log_that_nobody_reads_any_more_does_not_end_the_answers(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    command = [str(Path(sys.executable).with_name("gateway")), "dev", "--listen", "127.0.0.1:0"]
    command += ["--state-dir", str(tmp_path / "state")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=writing, stdin=subprocess.DEVNULL, text=True)
    os.close(writing)
    assert process.stdout is not None
    try:
        ready = ready_line(process, Path(os.devnull))
        os.close(reading)
        with httpx.Client(base_url=ready["base_url"], timeout=ANSWER_SECONDS, verify=False) as http:
            gate = Gateway(process, ready, tmp_path / "none", http)
            agent = gate.agent()
            for _ in range(3):
                assert agent.execute("text_digest", {"text": "x"}).status_code == 200
                assert agent.execute("nothing").status_code == 404
            process.send_signal(signal.SIGTERM)
            assert process.wait(STOP_SECONDS) == 0
    finally:
        process.stdout.close()
        process.kill()
        process.wait(STOP_SECONDS)
