"""gatectl says that a call ran, or may have, where it can't tell the outcome."""

import json
import signal
import subprocess
from threading import Event
from typing import Any

import pytest
from gateway_client import Held

from tests.support.gatectl import SCRIPT, SECONDS, Gatectl, pointed_at
from tests.support.scripted_gateway import scripted_gateway
from tests.support.shown_approval import APPROVE, DETAIL, EXECUTED, SHOW
from tests.support.upstream import Upstream

POST = ("execute", "http_post", "message=a", "path=")


def _without_room(gatectl: Gatectl, shell: str, *arguments: str) -> tuple[int, str]:
    """gatectl whose standard output takes nothing: its exit code and standard error."""
    done = subprocess.run(
        ["bash", "-c", f'set -o pipefail; "$@" {shell}', "bash", SCRIPT, *arguments], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=SECONDS, env=gatectl.environ,
    )  # fmt: skip
    return done.returncode, done.stderr


@pytest.mark.parametrize("shell", [">/dev/full", "1> >(exec true)"])
def test_a_call_that_ran_is_told_where_its_answer_can_not_be_written(
    gatectl: Gatectl, up: Upstream, shell: str
) -> None:
    path = f"unwritten/{len(shell)}"
    code, err = _without_room(gatectl, f"{shell}; exit $?", *POST[:-1], f"path={path}", "--json")
    said = json.loads(err)
    assert (code, said["error"], said["may_have_run"]) == (1, "failed", True)
    assert said["message"].startswith("the call ran, and its answer could not be written: ")
    assert said["next"].startswith("gatectl receipts show rcpt_")
    assert sum(one.path == f"/{path}" for one in up.seen) == 1


def test_an_approved_call_that_ran_is_told_where_its_answer_can_not_be_written(gatectl: Gatectl, held: Held) -> None:
    code, err = _without_room(gatectl, ">/dev/full", "approvals", "approve", held.approval_id, "--yes", "--json")
    last = json.loads(err.splitlines()[-1])
    assert (code, last["error"], last["may_have_run"]) == (1, "failed", True)
    assert gatectl.done("approvals", "show", held.approval_id, "--json").json["state"] == "approved"


@pytest.mark.parametrize("key", [(), ("--idempotency-key", "in 7")])
def test_an_interrupted_call_may_have_run_and_names_its_key(gatectl: Gatectl, key: tuple[str, ...]) -> None:
    asked, is_over = Event(), Event()

    def answer(_: dict[str, str]) -> tuple[int, Any]:
        asked.set()
        is_over.wait(SECONDS)
        return 503, {"error": "draining"}

    command = ("execute", "http_post", "path=hang", "message=a", "--json", *key)
    with (
        scripted_gateway({"POST /v1/leases": answer}) as server,
        pointed_at(gatectl, server.url).started(*command) as process,
    ):
        assert asked.wait(SECONDS)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SECONDS)
        is_over.set()
    said = json.loads(err)
    assert (process.returncode, said["error"], said["may_have_run"]) == (130, "interrupted", True)
    assert said["idempotency_key"] == (key[1] if key else None)
    assert "gatectl calls" in said["next"]


@pytest.mark.parametrize("strange", [
    {"verification_outcome": "verification_failed"}, {"learn_error": "learned_rules_unavailable"},
    {"approval": {"approval_id": "apr_1", "approval_hash": "sha256:99"}},
])  # fmt: skip
def test_an_approved_call_that_did_not_come_to_all_that_was_asked_for_has_run(
    gatectl: Gatectl, strange: dict[str, Any]
) -> None:
    with scripted_gateway({SHOW: (200, DETAIL), APPROVE: (200, EXECUTED | strange)}) as server:
        ran = pointed_at(gatectl, server.url).here("approvals", "approve", "apr_1", "--yes", "--json")
    assert json.loads(ran.err.splitlines()[-1])["may_have_run"] is True
