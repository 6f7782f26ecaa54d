"""The metrics of a running gateway: what its operators scrape is OpenMetrics, as documented, and moves."""

import re
from pathlib import Path

import httpx
import psutil
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.support.background import Background, in_flight
from tests.support.gateway import Bearer, Gateway, wait_for
from tests.support.manifests import ENDLESS, PATIENT, example
from tests.support.own_gateway import own_gateway

TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
ROW = re.compile(r"^\| `(gate_\w+)` \| (\w+) \|([^|]*)\|", re.MULTILINE)
OTHER_ANSWER = example(
    "text_digest", action_id="other_answer", **PATIENT,
    io={"response_schema": {"required": ["never"], "additionalProperties": True}},
)  # fmt: skip
PAYMENT = {"to": "acct-7", "amount_cents": 1, "currency": "EUR"}
SESSION_RATE = 10
"""Less than any machine answers in a second."""


gate = own_gateway(
    f"[limits]\nsession_requests_per_second = {SESSION_RATE}\n[workers]\ncompute = {{min_spare = 1, max = 1}}\n",
    OTHER_ANSWER, spin=ENDLESS,
)  # fmt: skip
"""A gateway with few workers and a small session rate."""


class Scrape:
    """One answer, read by a parser that is not ours."""

    def __init__(self, answer: httpx.Response) -> None:
        assert (answer.status_code, answer.headers["content-type"]) == (200, TYPE)
        assert answer.text.endswith("\n# EOF\n")
        self.families = list(text_string_to_metric_families(answer.text))  # type: ignore[no-untyped-call]
        self._values = {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in self.families
            for sample in family.samples
        }

    def __call__(self, name: str, **labels: str) -> float:
        """One sample; 0 when it is not there yet, as in a query for its rate."""
        return float(self._values.get((name, tuple(sorted(labels.items()))), 0))

    def labels(self, name: str) -> set[tuple[str, ...]]:
        """Label values of every series of this name, in the order of the labels' names."""
        return {tuple(value for _, value in labels) for sample, labels in self._values if sample == name}


def scrape(gate: Gateway) -> Scrape:
    return Scrape(gate.operator().get("/metrics"))


def test_what_is_served_is_what_is_documented(gate: Gateway, agent: Bearer) -> None:
    agent.execute("text_digest", {"text": "x"})
    documented = {
        name: (kind, set(re.findall(r"`(\w+)`", cell))) for name, kind, cell in ROW.findall(DOCUMENT.read_text())
    }
    served = {}
    for family in scrape(gate).families:
        name = f"{family.name}_total" if family.type == "counter" else family.name
        assert name not in served, "each family once"
        served[name] = family.type
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == documented[name][1], sample
    assert served == {name: kind for name, (kind, _) in documented.items()}


def test_a_decision_that_is_answered_from_memory_is_counted_as_that(gate: Gateway) -> None:
    agent, remembered = gate.agent(), "gate_policy_remembered_total"
    seen: list[Scrape] = []

    def is_remembered() -> bool:
        """A decision is, for a second after the policy's last sign of life."""
        before = scrape(gate)
        is_allowed = agent.execute("text_digest", {"text": "x"}).status_code == 200
        seen[:] = before, scrape(gate)
        return is_allowed and seen[1](remembered) > before(remembered)

    wait_for(is_remembered, "a decision from memory")
    before, after = seen
    for name, labels in (
        (remembered, {}),
        ("gate_policy_decisions_total", {"decision": "allow", "rule": "allow"}),
        ("gate_policy_request_duration_seconds_count", {"operation": "decide"}),
    ):
        assert after(name, **labels) - before(name, **labels) == 1, name


def test_every_process_is_there_and_uses_what_it_uses(gate: Gateway, agent: Bearer) -> None:
    before = scrape(gate)
    assert agent.execute("spin", {"fuel": 500_000_000}).status_code == 200
    after = scrape(gate)
    kinds = {"supervisor", "front", "notary", "policy", "template", "worker compute", "worker http", "worker fs"}
    for name in ("cpu_seconds_total", "resident_memory_bytes", "open_fds", "start_time_seconds"):
        assert after.labels(f"gate_process_{name}") == {(kind, "1") for kind in kinds}, name
    worker = {"kind": "worker compute", "number": "1"}
    spent = after("gate_process_cpu_seconds_total", **worker) - before("gate_process_cpu_seconds_total", **worker)
    assert 0.02 <= spent < 60
    front = gate.child("front")
    known = after("gate_process_resident_memory_bytes", kind="front", number="1")
    assert 0.8 < known / front.memory_info().rss < 1.25
    assert abs(after("gate_process_start_time_seconds", kind="front", number="1") - front.create_time()) < 2


def test_a_worker_that_is_killed_in_its_call_is_counted_and_its_successor_takes_its_number(
    gate: Gateway, agent: Bearer
) -> None:
    before = scrape(gate)
    call = Background(lambda: agent.execute("spin", {"seconds": 250}))
    wait_for(lambda: in_flight(gate) == 1, "a call in flight")
    wait_for(lambda: scrape(gate)("gate_workers", profile="compute", state="busy") == 1, "a worker at work")
    worker = gate.child("worker compute")
    worker.kill()
    assert call.status() == 502
    assert agent.execute("text_digest", {"text": "x"}).status_code == 200
    after = scrape(gate)
    ended = {"profile": "compute", "reason": "SIGKILL"}
    assert after("gate_workers_ended_total", **ended) - before("gate_workers_ended_total", **ended) == 1
    lost = {"action_id": "spin", "outcome": "worker_lost"}
    assert after("gate_provider_executions_total", **lost) - before("gate_provider_executions_total", **lost) == 1
    started = {"kind": "worker compute", "number": "1"}
    assert after("gate_process_start_time_seconds", **started) > before("gate_process_start_time_seconds", **started)
    wait_for(lambda: not psutil.pid_exists(worker.pid), "its end")


def test_a_session_over_its_rate_is_429_with_retry_after_and_counted(gate: Gateway) -> None:
    agent, other = gate.agent(), gate.agent()
    before = scrape(gate)
    answers = [agent.get("/v1/approvals/apr_none/poll")]
    while answers[-1].status_code != 429 and len(answers) < 10_000:
        answers.append(agent.get("/v1/approvals/apr_none/poll"))
    refused = [answer for answer in answers if answer.status_code == 429]
    assert {answer.status_code for answer in answers} == {404, 429}
    assert {(answer.headers["retry-after"], answer.json()["error"]) for answer in refused} == {
        ("1", "rate_limit_exceeded")
    }
    after = scrape(gate)
    limited = {"class": "session"}
    assert after("gate_rate_limited_total", **limited) - before("gate_rate_limited_total", **limited) == len(refused)
    assert other.execute("text_digest", {"text": "x"}).status_code == 200
    wait_for(lambda: agent.get("/v1/approvals/apr_none/poll").status_code == 404, "another token")


def test_a_reload_ends_the_series_of_actions_that_are_gone(gate: Gateway, agent: Bearer) -> None:
    agent.execute("other_answer", {"text": "x"})
    labelled = {"action_id": "other_answer"}
    assert scrape(gate)("gate_response_schema_violations_total", **labelled) >= 1
    manifest = next(gate.state.parent.glob("**/actions/other_answer.yaml"))
    text = manifest.read_text()
    manifest.unlink()
    assert gate.operator().post("/v1/admin/reload").status_code == 200
    scraped = scrape(gate)
    assert not [
        sample
        for family in scraped.families
        for sample in family.samples
        if sample.labels.get("action_id") == "other_answer"
    ]
    assert scraped("gate_policy_request_duration_seconds_count", operation="load") >= 2
    manifest.write_text(text)
    assert gate.operator().post("/v1/admin/reload").status_code == 200
    assert agent.execute("other_answer", {"text": "x"}).status_code == 502
    assert scrape(gate)("gate_response_schema_violations_total", **labelled) == 1


def test_no_name_of_an_agent_a_session_or_a_path_is_in_the_text(gate: Gateway) -> None:
    agent = gate.agent()
    agent.execute("text_digest", {"text": "x"})
    agent.execute("never_registered", {})
    gate.http.get("/some/path/of/theirs")
    text = gate.operator().get("/metrics").text
    for secret in (agent.session_id, "dev:anonymous", "never_registered", "of/theirs", agent.token, str(gate.state)):
        assert secret not in text
