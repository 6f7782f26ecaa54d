"""Runs tests on a gateway: each call's preview is compared first; then the call runs, against the played upstream."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from frontend.action_tests.client import GatewayAnswer, ProvenClient
from frontend.action_tests.comparing import as_written, differences, named_differences
from frontend.action_tests.form import ActionTest, PlayedUpstream
from frontend.action_tests.upstream import UpstreamServer


class TestReport(msgspec.Struct, frozen=True):
    """One test that was run. It succeeded if nothing differs."""

    __test__ = False

    test: ActionTest
    found: str
    """The decision or the error code, and the outcome of a call that ran."""
    differences: tuple[str, ...]


class CallEnd(msgspec.Struct, frozen=True):
    """The end of a call that ran: its output, or the code of its failure."""

    outcome: str
    output: dict[str, Any] | None = None
    code: str = ""


class TestRunner(msgspec.Struct, frozen=True):
    """Runs the tests of one principal."""

    __test__ = False

    operator: ProvenClient
    agent: ProvenClient
    upstream: UpstreamServer
    scopes: tuple[str, ...]
    hosts: tuple[str, ...]
    """Those that the upstream plays."""

    def run(self, action_id: str, test: ActionTest) -> TestReport:
        """Preview, compare, run, compare. Raises OSError when the gateway is gone."""
        asked = {"principal": test.principal, "request": test.request, "scopes": list(self.scopes)}
        answer = self.operator.send("POST", f"/v1/admin/actions/{quote(action_id)}/preview", asked)
        found = answer.body["decision"] if answer.status == 200 else answer.body["error"]
        differ = list(_of_preview(test, answer))
        differ += self._unplayed(test, answer.body)
        if differ or not test.is_run:
            return TestReport(test, found, tuple(differ))
        with self.upstream.playing(test.upstream or PlayedUpstream()):
            end = self._call(action_id, test)
        return TestReport(test, f"{found}, {end.outcome or end.code}", tuple(_of_call(test, end)))

    def _unplayed(self, test: ActionTest, preview: dict[str, Any]) -> Iterator[str]:
        """SECURITY: the played upstream answers for these hosts alone; a call elsewhere would reach a real one."""
        url = (preview.get("sends") or {}).get("url")
        host = None if url is None else urlsplit(url).hostname
        if test.is_run and host is not None and host not in self.hosts:
            yield f"/expect/sends/url: {host} is not played: expect this url, or leave out upstream, result and outcome"

    def _call(self, action_id: str, test: ActionTest) -> CallEnd:
        answer = self.agent.send("POST", f"/v1/actions/{quote(action_id)}/execute", test.request)
        if answer.status == 202:
            answer = self.operator.send("POST", f"/v1/approvals/{answer.body['approval_id']}/approve", {})
        if answer.status == 200:
            return CallEnd(answer.body["verification_outcome"], answer.body["output"])
        return CallEnd(self._outcome_of(answer), code=answer.body["error"])

    def _outcome_of(self, answer: GatewayAnswer) -> str:
        """The outcome in the receipt of a failed call; empty where it left none."""
        receipt_id = answer.headers.get("x-receipt-id")
        if receipt_id is None:
            return ""
        receipt = self.operator.send("GET", f"/v1/receipts/{receipt_id}")
        return str(receipt.body["verification_outcome"]["status"]) if receipt.status == 200 else ""


def _of_preview(test: ActionTest, answer: GatewayAnswer) -> Iterator[str]:
    expect, body = test.expect, answer.body
    if answer.status != 200:
        refused = {"error": body["error"]} | ({"reason": body["reason"]} if "reason" in body else {})
        if expect.error != body["error"]:
            yield from differences({"error": expect.error} if expect.error else expect.decision, refused, "/expect")
        return
    if expect.error:
        yield from differences({"error": expect.error}, {"decision": body["decision"]}, "/expect")
        return
    wanted = {"decision": expect.decision, "rule": expect.rule, "deny_reason": expect.deny_reason}
    yield from named_differences({name: value for name, value in wanted.items() if value}, body, "/expect")
    sends = body["sends"]
    if sends is not None and "body" in expect.sends:
        sends = {**sends, "body": as_written(expect.sends["body"], sends["body"])}
    yield from named_differences(expect.sends, sends, "/expect/sends")


def _of_call(test: ActionTest, end: CallEnd) -> Iterator[str]:
    if test.outcome:
        yield from differences(test.outcome, end.outcome or end.code, "/outcome")
    elif end.code:
        yield f"the call failed: {end.code} {end.outcome}".rstrip()
    if test.result is not None:
        yield from named_differences(test.result, end.output, "/result")
