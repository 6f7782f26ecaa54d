"""The exporter with its supervisor, and with fronts, which give it calls that have ended.

SECURITY: it talks to a collector outside. It hears names, identifiers, outcomes and times of calls; no secret, token,
proof or value of a request is among them. It says how many spans the collector took, and nothing else.
"""

from typing import ClassVar, Final

import msgspec

from ipc.configuration.telemetry import OtlpSettings
from ipc.messages.message import Message
from ipc.walls.given import Given

POLICY, NOTARY_OPEN, WORKER, NOTARY_CLOSE = "policy", "notary open", "worker", "notary close"
"""The steps of a call that runs."""
NOTARY_HOLD, NOTARY_REFUSE, NOTARY_CLAIM = "notary hold", "notary refuse", "notary claim"
"""Writes of the notary about a call that is held, a call that is refused, and the approval of a held one."""
MOST_HOST_CALLS: Final = 32
"""The most spans of host calls in one call."""


class StartExporter(Message, frozen=True):
    """First message to an exporter."""

    otlp: OtlpSettings
    walls: Given
    version: str
    guarded: tuple[str, ...]
    """Paths that it never opens as folders: `Settings.guarded`."""


class ExporterReady(Message, frozen=True):
    """Its walls stand."""


class AttachGiver(Message, frozen=True):
    """The channel of a front comes along."""

    FDS: ClassVar[int] = 1
    front_id: str


class AttachEvents(Message, frozen=True):
    """The channel of the notary comes along, from which events are read; the one before is gone."""

    FDS: ClassVar[int] = 1


class AttachExporter(Message, frozen=True):
    """A fresh exporter; its channel comes along. The one before is gone, and answers nothing more."""

    FDS: ClassVar[int] = 1
    pid: int


class ReplaceExporter(Message, frozen=True):
    """The exporter `pid` missed a deadline or broke the protocol: kill it, attach another."""

    pid: int
    reason: str


class TimedStep(msgspec.Struct, frozen=True, array_like=True):
    """A step of a call: microseconds from the begin of the call to its own, and to its end."""

    step: str
    """One of the constants above."""
    begins: int
    ends: int


class HostCallSpan(msgspec.Struct, frozen=True, array_like=True):
    """A request to the upstream, or an operation on a file: times as those of TimedStep, its method or operation, and
    its status or kind of error."""

    kind: str
    """`http` or `fs`."""
    operation: str
    begins: int
    ends: int
    status: int = 0
    error: str = ""


class ExportedCall(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """One call that has ended, from admission to the answer's evidence."""

    trace_id: str
    """As the gateway names it: `trc_` and a UUID."""
    ended_at: int
    """Nanoseconds since 1970."""
    took: int
    """Microseconds."""
    principal: str
    session_id: str
    action_id: str
    decision: str
    code: str = ""
    """The error code; empty without one."""
    steps: tuple[TimedStep, ...] = ()
    action_version: str = ""
    risk_level: str = ""
    rule: str = ""
    policy_version: str = ""
    receipt_id: str = ""
    verification: str = ""
    approval_id: str = ""
    """The hold of this call, if its decision is pending_approval; else that of the held call which this one ends."""
    traceparent: str = ""
    """As the caller sent it, checked; empty without one."""

    host_calls: tuple[HostCallSpan, ...] = ()
    """The first MOST_HOST_CALLS of its worker's."""
    is_mcp: bool = False
    """Its upstream is an MCP server."""

    @property
    def spans(self) -> int:
        """The number of its spans."""
        return 1 + len(self.steps) + len(self.host_calls)


class ExportCalls(Message, frozen=True):
    """Calls to export. Answered by CallsExported."""

    number: int
    calls: tuple[ExportedCall, ...]


class CallsExported(Message, frozen=True):
    """How many spans the collector did not take; `problem` says why, without address and secret."""

    number: int
    dropped: int
    problem: str = ""


SupervisorToExporter = StartExporter | AttachGiver | AttachEvents
ExporterToSupervisor = ExporterReady
FrontToExporter = ExportCalls
ExporterToFront = CallsExported
