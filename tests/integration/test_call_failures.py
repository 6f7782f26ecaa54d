"""A failed call tells why it failed and whether it may have run: the requests that its upstream counts prove it."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.gateway import Bearer, Gateway, gateway, wait_for
from tests.support.hostile_upstream import HostileUpstream, hostile_upstream
from tests.support.manifests import PATIENT, example, open_policy, patient, write_manifests
from tests.support.ports import closed_port

SHORT = {"resource_limits": {"timeout_seconds": 3}}
"""For calls that have to come as far as their upstream in this time, on any machine."""
SMALL = {"io": {"max_response_bytes": 65_536}}
SPIN: dict[str, Any] = {"fuel": 0, "memory_mb": 0, "seconds": 0}

FAILURES: list[tuple[str, dict[str, Any], str, str]] = [
    # action, request, X-Failure, X-May-Have-Run
    ("unreachable", {"path": "fine"}, "upstream_unreachable", "no"),
    ("nameless", {"path": "fine"}, "upstream_unreachable", "no"),
    ("untrusted", {"path": "fine"}, "upstream_unreachable", "no"),
    ("http_post", {"path": "reset", "message": "m"}, "upstream_reset", "unknown"),
    ("http_post", {"path": "nothing", "message": "m"}, "upstream_reset", "unknown"),
    ("http_post", {"path": "half-a-head", "message": "m"}, "upstream_reset", "unknown"),
    ("http_post", {"path": "garbage", "message": "m"}, "upstream_reset", "unknown"),
    ("http_post", {"path": "half-a-body", "message": "m"}, "upstream_reset", "yes"),
    ("small_fetch", {"path": "endless-interim"}, "upstream_reset", "unknown"),
    ("short_fetch", {"path": "silent"}, "upstream_timeout", "unknown"),
    ("short_fetch", {"path": "slow-body"}, "upstream_timeout", "yes"),
    ("http_post", {"path": "unavailable", "message": "m"}, "upstream_status", "yes"),
    ("small_fetch", {"path": "endless-body"}, "limit_io", "yes"),
    ("spin", {**SPIN, "fuel": 10**12}, "limit_fuel", "no"),
    ("spin", {**SPIN, "memory_mb": 65_536}, "limit_memory", "no"),
    ("short_spin", {**SPIN, "seconds": 3600}, "limit_time", "no"),
]


def _elsewhere(action_id: str, url: str) -> dict[str, Any]:
    host = url.split("/")[2]
    return example(
        "http_fetch",
        action_id=action_id,
        egress={"allowed_domains": [host]},
        template={"url_template": url + "/{+path}"},
        **PATIENT,
    )


@pytest.fixture(scope="module")
def up() -> Iterator[HostileUpstream]:
    """An upstream that does what the path asks it to, and counts."""
    with hostile_upstream() as server:
        yield server


@pytest.fixture(scope="module")
def gate(up: HostileUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway before it, with actions that fail in every way."""
    folder: Path = tmp_path_factory.mktemp("failing")
    top = patient(folder / "actions")
    write_manifests(
        folder / "actions",
        _elsewhere("unreachable", "http://closed.gateway.test"),
        _elsewhere("nameless", "http://nowhere.invalid"),
        _elsewhere("untrusted", "https://deaf.gateway.test"),
        example("http_fetch", action_id="short_fetch", **SHORT),
        example("http_fetch", action_id="small_fetch", **SMALL, **PATIENT),
        example("spin", action_id="short_spin", resource_limits={"timeout_seconds": 0.5}),
    )
    more = ("unreachable", "nameless", "untrusted", "short_fetch", "small_fetch", "short_spin")
    top += f'policy_dir = "{open_policy(folder / "policy", *more)}"\n'
    with ExitStack() as stack:
        port = stack.enter_context(closed_port())
        names = f'"upstream.gateway.test" = "{up.address}", "closed.gateway.test" = "127.0.0.1:{port}"'
        names += f', "deaf.gateway.test" = "{up.trap_address}"'  # it hangs up instead of agreeing on TLS
        yield stack.enter_context(gateway(folder, f"{top}\n[egress]\nunsafe_resolve = {{{names}}}\n"))


@pytest.fixture
def agent(gate: Gateway) -> Bearer:
    """An agent with a session of its own."""
    return gate.agent()


def told(answer: httpx.Response) -> tuple[str | None, str | None]:
    assert (answer.status_code, answer.json()) == (502, {"error": "action_execution_failed"}), answer.text[:300]
    return answer.headers.get("X-Failure"), answer.headers.get("X-May-Have-Run")


@pytest.mark.parametrize(("action", "request_body", "failure", "may_have_run"), FAILURES)
def test_a_failed_call_says_why_and_whether_it_may_have_run(
    gate: Gateway, agent: Bearer, up: HostileUpstream, action: str, request_body: dict[str, Any], failure: str,
    may_have_run: str,
) -> None:  # fmt: skip
    before = len(up.seen)
    assert told(agent.execute(action, request_body)) == (failure, may_have_run)
    assert (len(up.seen) > before) == (may_have_run != "no")
    event = gate.events(session_id=agent.session_id, event_type="ActionCall")[0]
    assert (event["failure"], event["may_have_run"]) == (failure, may_have_run)


def _killed(gate: Gateway, agent: Bearer, kind: str, action: str, body: dict[str, Any], is_ripe: Any) -> httpx.Response:
    """The answer of a call whose worker is killed while it runs."""
    answers: list[httpx.Response] = []
    thread = threading.Thread(target=lambda: answers.append(agent.execute(action, body)))
    thread.start()
    wait_for(is_ripe, "the call runs")

    def kill() -> bool:  # a call that its worker had not begun goes to the next one
        for process in gate.children(f"worker {kind}"):
            os.kill(process.pid, signal.SIGKILL)
        thread.join(1)
        return not thread.is_alive()

    wait_for(kill, "the call ends with its worker")
    return answers[0]


def test_a_call_whose_worker_is_killed_may_have_run_if_it_could_reach_an_upstream(
    gate: Gateway, agent: Bearer, up: HostileUpstream
) -> None:
    before = len(up.seen)
    answer = _killed(gate, agent, "http", "http_fetch", {"path": "silent"}, lambda: len(up.seen) > before)
    assert told(answer) == ("worker_lost", "unknown")


def test_a_call_that_only_computes_has_not_run_when_its_worker_is_killed(gate: Gateway, agent: Bearer) -> None:
    answer = _killed(gate, agent, "compute", "spin", {**SPIN, "seconds": 3600}, lambda: True)
    assert told(answer) == ("worker_lost", "no")
