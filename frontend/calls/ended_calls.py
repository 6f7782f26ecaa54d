"""Tells the exporter of calls that have ended: those of the sample, without a value of any request.

Costs nothing where no collector is configured. SECURITY: names and identifiers alone; an action id that names no
action is a text of the caller's own making and is left out, and of `traceparent` only the form that W3C Trace Context
defines is taken.
"""

import re
import time
from typing import Final

import msgspec
from msgspec import UNSET

from frontend.calls.call_trace import CallTrace
from frontend.calls.executed import AwaitedApproval, CallOutcome, ExecutedCall
from frontend.calls.record import CallRecord
from frontend.exporter.client import ExporterClient
from frontend.http.requests import Request
from ipc.configuration.telemetry import OtlpSettings
from ipc.messages.exporting import ExportedCall

_TRACEPARENT: Final = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-[!-~]*)?"
)  # fmt: skip
_TRACEPARENT_LENGTH: Final = 55
"""Characters of its version 00; a later version may append to them."""
MAX_TEXT: Final = 256
"""Characters of a text of policy, manifest or configuration."""
_RANDOM_DIGITS: Final = 12
"""The last hexadecimal digits of a trace id, which are random."""


class EndedCalls(msgspec.Struct, frozen=True):
    """Gives calls to the exporter; `otlp` are the settings of its collector."""

    otlp: OtlpSettings
    exporter: ExporterClient

    def begin(self, record: CallRecord, request: Request | None) -> None:
        """Trace a call of the sample from now on, linked to the trace that its request names."""
        if self.otlp.endpoint is not None and self._is_sampled(record.trace_id):
            record.trace = CallTrace("" if request is None else traceparent_of(request))

    def end(
        self, record: CallRecord, decision: str, code: str | None = None, outcome: CallOutcome | None = None,
        approval_id: str = "",
    ) -> None:  # fmt: skip
        """A call has ended: with evidence or with an error. A caller who has proven nothing is
        no principal, and left out. `approval_id`: of the held call that ends so."""
        trace, principal = record.trace, record.principal
        if trace is None or principal is None:
            return
        ended, ended_at, facts = time.monotonic(), time.time_ns(), record.facts()

        def known(name: str) -> str:
            return (facts.get(name) or "")[:MAX_TEXT]

        closed = outcome.closed if isinstance(outcome, ExecutedCall) else None
        self.exporter.give(
            ExportedCall(
                record.trace_id, ended_at, int((ended - record.started) * 1e6), principal, known("session_id"),
                known("action_id"), decision, code or "", trace.steps(record.started), known("action_version"),
                known("risk_level"), known("policy_rule"), known("policy_version"),
                receipt_id="" if closed is None else closed.receipt_id,
                verification="" if closed is None else closed.verification_outcome,
                approval_id=outcome.approval.approval_id if isinstance(outcome, AwaitedApproval) else approval_id,
                traceparent=trace.traceparent, host_calls=trace.host_calls(record.started),
                is_mcp=_calls_a_tool(record),
            )
        )  # fmt: skip

    def _is_sampled(self, trace_id: str) -> bool:
        share = self.otlp.sample
        return share >= 1 or int(trace_id[-_RANDOM_DIGITS:], 16) < share * 16**_RANDOM_DIGITS


def _calls_a_tool(record: CallRecord) -> bool:
    request = None if record.plan is None else record.plan.http_request
    return request is not None and request.tool is not UNSET


def traceparent_of(request: Request) -> str:
    """The one `traceparent` of a request, without what a later version appends; empty without one of that form."""
    found = [value for name, value in request.headers if name == "traceparent"]
    if len(found) != 1 or not _TRACEPARENT.fullmatch(found[0]):
        return ""
    if found[0].startswith("00") and len(found[0]) != _TRACEPARENT_LENGTH:
        return ""
    return found[0][:_TRACEPARENT_LENGTH]
