"""A held plan as an operator must see it: what will happen first, then who asks and why, then what proves it.

Guarantees that nothing that will happen is left out silently: what is cut says so, and how to see the rest.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gateway_client.cli.display.output import Output
from gateway_client.cli.display.safe import one_line, plain, safe
from gateway_client.cli.display.times import countdown
from gateway_client.cli.views.approval_counts import counted
from gateway_client.cli.views.cap_lines import cap_line
from gateway_client.contract.approvals import ApprovalDetail

MAX_SHOWN = 4000
"""Characters of one text that are shown without --full."""
INDENT = 14
"""Where the texts begin."""


class PlanView:
    """One plan, to be printed. `is_cut` is true once something did not fit."""

    def __init__(self, detail: ApprovalDetail, is_full: bool = False) -> None:
        self._detail = detail
        self._limit = None if is_full else MAX_SHOWN
        self.is_cut = False

    def show(self, out: Output) -> None:
        """Print it."""
        state, named, risk, end = self.head()
        out.parts([state, (named, risk, end)])
        for name, text in self.facts():
            out.labelled(name, self._cut(text), INDENT)
        if self.is_cut:
            more = f"is shown. The whole plan: gatectl approvals show {safe(self._detail.approval_id)} --full"
            out.labelled("NOT ALL", more, INDENT)

    def next(self, out: Output) -> None:
        """Print what to type next."""
        one = safe(self._detail.approval_id)
        out.parts(["approve?", f"gatectl approvals approve {one}"])
        out.parts(["deny?", f'gatectl approvals deny {one} --reason "…"'])

    def head(self) -> tuple[str, str, str, str]:
        """State, action, risk, and when it ends or has ended."""
        detail = self._detail
        is_held = detail.state == "pending"
        state = "HELD" if is_held else safe(detail.state.upper())
        end = f"expires in {countdown(detail.expires_at)}" if is_held else self._ended()
        named = f"{safe(detail.action_id)} {safe(detail.action_version or '')}".rstrip()
        return state, named, safe(detail.risk_level or "risk unknown"), end

    @property
    def _is_over(self) -> bool:
        return self._detail.state not in ("pending", "claimed")

    def _ended(self) -> str:
        detail = self._detail
        if detail.state == "expired":
            return f"without a decision, held until {safe(detail.expires_at or 'an unknown time')} at the latest"
        by = f"by {safe(detail.claimed_by)} " if detail.claimed_by else ""
        return f"{by}at {safe(detail.completed_at or detail.claimed_at or 'an unknown time')}"

    def facts(self) -> Iterator[tuple[str, str]]:
        """Every fact by its name, whole and safe, in the order in which they are read."""
        if self._is_over:
            yield "ENDED", f"{safe(self._detail.state)} {self._ended()}; what follows is the plan as it was held"
            yield from self._outcome()
        if self._detail.summary:
            yield "summary", safe(self._detail.summary)
        if self._detail.description:
            yield "action", safe(self._detail.description)
        yield from self._effects()
        yield from self._new()
        yield from self._asker()
        if not self._is_over:
            yield from self._outcome()
        detail = self._detail
        yield "plan", safe(detail.plan_hash)
        missing = "not kept any more" if self._is_over else "no shown_hash: a decision can't be signed"
        yield "shown", safe(detail.shown_hash or missing)
        yield "request", safe(detail.request_hash or "-")
        yield "module", safe(detail.provider_module_digest or "-")
        yield "policy", safe(detail.policy_version or "-")
        yield "trace", safe(detail.trace_id or "-")
        yield "approval", safe(detail.approval_id)

    def _effects(self) -> Iterator[tuple[str, str]]:
        detail, sends = self._detail, self._detail.approved_request
        if sends is not None:
            yield "will send", f"{safe(sends.get('method'))} {safe(sends.get('url'))}"
        sent = f"{sends.get('method')} {sends.get('url')}" if sends is not None else None
        for target in detail.approved_targets:
            if target != sent:
                yield "will touch", safe(target)
        if sends is None and not detail.approved_targets:
            yield "will run", "the action, without a network or file target"
        headers = (sends or {}).get("headers")
        for header in headers if isinstance(headers, list) else ():
            yield "header", ": ".join(safe(part) for part in header) if isinstance(header, list) else one_line(header)
        tool = (sends or {}).get("tool")
        if isinstance(tool, dict):
            yield "calls tool", f"{safe(tool.get('name'))}, pinned as {safe(tool.get('digest'))}"
        if sends is not None and sends.get("body"):
            yield "body", safe(sends["body"])
        yield from self._input()
        response = (sends or {}).get("response")
        yield from _of_answer(response) if isinstance(response, dict) else ()
        if detail.approved_secrets:
            yield "secrets", plain(detail.approved_secrets)
        for name, hosts in (detail.secret_domains or {}).items():
            way = (detail.secret_ways or {}).get(name)
            yield "sent to", f"{safe(name)}: {plain(hosts)}" + (f", {safe(way)}" if way else "")
        if detail.sinks:
            yield "effects", plain(detail.sinks)
        yield from self._bounds()

    def _input(self) -> Iterator[tuple[str, str]]:
        """The input exactly, and how it reads where that differs."""
        exact = self._detail.request_json
        if exact is None and self._is_over:
            yield "input", "not kept any more"
            return
        if exact is None:
            yield "input", one_line(self._detail.request)
            return
        yield "input", safe(exact)
        if "\\" in exact:
            yield "reads", one_line(self._detail.request)

    def _bounds(self) -> Iterator[tuple[str, str]]:
        """The hosts, files and limits of the call."""
        detail, egress, files = self._detail, self._detail.approved_egress, self._detail.approved_files
        if egress is not None and egress.get("profile") != "none":
            yield "may reach", (f"{plain(egress.get('allowed_domains'))} by {plain(egress.get('allowed_methods'))} "
                                f"({safe(egress.get('profile'))})")  # fmt: skip
            for name in egress.get("private_networks") or ():
                yield "leads into", f"private network {safe(name)}"
        for name, value in (files or {}).items():
            yield "files", f"{safe(name).replace('_', ' ')}: {plain(value)}"
        if detail.resource_limits:
            limits = (f"{safe(name).replace('_', ' ')} {plain(one)}" for name, one in detail.resource_limits.items())
            yield "limits", ", ".join(limits)
        if detail.verifier_kind:
            yield "verified by", safe(detail.verifier_kind)

    def _new(self) -> Iterator[tuple[str, str]]:
        for domain in self._detail.unresolved_domains:
            shown = safe(domain)
            if self._is_over:
                yield "new", f"{shown} was not in this action's allow-list"
                continue
            yield "new", (f"{shown} is not in this action's allow-list: approving with --learn-domain {shown} adds it "
                          "for every later call")  # fmt: skip
        for path in self._detail.unresolved_paths:
            shown = safe(path)
            if self._is_over:
                yield "new", f"{shown} was not among this action's paths"
                continue
            yield "new", (f"{shown} is not among this action's paths: approving with --learn-path {shown} adds it "
                          "for every later call")  # fmt: skip

    def _asker(self) -> Iterator[tuple[str, str]]:
        detail = self._detail
        owner = f" (owner {safe(detail.owner)})" if detail.owner else ""
        snapshot = detail.budget_snapshot or {}
        calls = snapshot.get("calls_remaining")
        budget = f", {calls} calls left before this one" if isinstance(calls, int) else ""
        yield "asked by", f"{safe(detail.principal or 'unknown')}{owner}, session {safe(detail.session_id)}{budget}"
        yield "asked at", safe(detail.created_at or "-")
        if detail.approvals:
            yield "approvals", safe(counted(detail.approvals))
        for cap in detail.caps:
            yield "cap", cap_line(cap)
        if detail.policy_rule:
            yield "because", f"rule {safe(detail.policy_rule)}"

    def _outcome(self) -> Iterator[tuple[str, str]]:
        detail = self._detail
        if detail.receipt_id:
            yield "receipt", safe(detail.receipt_id)
        if detail.deny_reason:
            yield "denied for", safe(detail.deny_reason)
        if detail.error_code:
            yield "failed with", safe(detail.error_code)
        if detail.approval_signature:
            yield "signed", "by the operator who decided (approval_signature: --json)"

    def _cut(self, text: str) -> str:
        if self._limit is None or len(text) <= self._limit:
            return text
        self.is_cut = True
        return f"{text[: self._limit]}… ({len(text) - self._limit} characters more)"


def _of_answer(response: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The parts of the upstream's answer that the agent gets."""
    headers, pick = response.get("headers"), response.get("pick")
    if headers:
        yield "answer", f"header {plain(headers)}"
    for name, pointer in pick.items() if isinstance(pick, dict) else ():
        yield "answer", f"{safe(name)}: {safe(pointer)}"
