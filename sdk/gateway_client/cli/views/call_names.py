"""The name of a call in lists: its action, and the summary of its kept values where the gateway sends one."""

from gateway_client.cli.display.output import DOT
from gateway_client.cli.display.safe import plain
from gateway_client.cli.views.approval_counts import counted
from gateway_client.results import Approval


def named(action_id: str | None, summary: str | None) -> str:
    """`refund_create · 120.00 EUR for inv_7`, safe for a terminal."""
    return DOT.join(plain(part) for part in (action_id, summary) if part is not None) or plain(None)


def waiting(one: Approval) -> str:
    """`refund_create · 120.00 EUR for inv_7 · 1 of 2 approvals: ada`, for lists of calls that wait."""
    called = named(one.action_id, one.summary)
    return DOT.join((called, plain(counted(one.approvals)))) if one.approvals else called
