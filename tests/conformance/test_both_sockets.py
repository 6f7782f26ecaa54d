"""Health on both sockets, and the form of every body."""

import httpx

from tests.conformance.deployment import Deployment
from tests.conformance.marks import BOTH_MODES, row, rows
from tests.support.gateway import wait_for

pytestmark = BOTH_MODES


@rows("both-sockets", {"healthz": "/healthz", "readyz": "/readyz"})
def test_both_sockets_answer_alike(gate: Deployment, case: str) -> None:
    with gate.over("client_socket") as client, gate.over("admin_socket") as admin:
        responses = wait_for(lambda: good([client.get(case), admin.get(case)]), "200 on both")
    answers = [(one.status_code, one.json(), one.headers["content-type"]) for one in responses]
    assert answers[0] == answers[1]


def good(responses: list[httpx.Response]) -> list[httpx.Response]:
    """These, once all are 200: while the machine stands still a gateway is not ready."""
    return responses if all(one.status_code == 200 for one in responses) else []


@row("both-sockets/json", "error-format/json")
def test_every_body_is_json_errors_included(gate: Deployment) -> None:
    agent, operator = gate.agent(), gate.operator()
    answers = [
        gate.client.get("/healthz"), gate.client.get("/v1/actions"), gate.client.get("/nowhere"),
        gate.client.put("/healthz"), agent.execute("text_digest", {"text": "x"}), agent.execute("nothing"),
        agent.execute("held_digest", {"text": "x"}), agent.execute("little_fuel", {"text": "x"}),
        gate.client.post("/v1/leases", content=b"{"), gate.admin.get("/v1/admin/status"),
        gate.client.post("/v1/leases", content=b"a=1", headers={"Content-Type": "application/x-www-form-urlencoded"}),
        agent.execute("text_digest", {"text": 1}), agent.get("/v1/receipts/rcpt_none"),
        operator.get("/v1/approvals/apr_none"), operator.get("/v1/approvals?limit=0"),
    ]  # fmt: skip
    assert {one.status_code for one in answers} == {200, 202, 400, 401, 404, 405, 415, 422, 502}
    for answer in answers:
        assert answer.headers["content-type"] == "application/json"
        assert isinstance(answer.json(), dict | list)
        assert answer.status_code < 400 or isinstance(answer.json()["error"], str)
