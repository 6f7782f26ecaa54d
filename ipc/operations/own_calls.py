"""The operation that lists the calls of one principal and key."""

import msgspec

from contract.calls import CallState
from ipc.operations.operation import FrontOperation


class OwnCall(msgspec.Struct, frozen=True):
    """One call; see contract/calls.py."""

    trace_id: str
    state: CallState
    at: str
    action_id: str | None = None
    request_hash: str | None = None
    error: str | None = None
    receipt_id: str | None = None
    approval_id: str | None = None
    summary: str | None = None


class OwnCalls(msgspec.Struct, frozen=True):
    """`next`: the trace id with which the next page begins; None at the end."""

    calls: list[OwnCall]
    next: str | None = None


class ListOwnCalls(FrontOperation[OwnCalls], frozen=True):
    """List the calls of a principal that were proven with one key, the newest first."""

    principal: str
    key_thumbprint: str
    limit: int
    after: str | None = None
    """A trace id: only calls before this one."""
    asker: str = ""
