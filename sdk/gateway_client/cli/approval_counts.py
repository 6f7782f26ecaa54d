"""How far a call that needs several approvals has come, for people."""

from collections.abc import Mapping
from typing import Any


def counted(approvals: Mapping[str, Any]) -> str:
    """How many of several approvals are given, and by whom."""
    by = [str(one.get("approved_by")) for one in approvals.get("by", ())]
    return f"{approvals.get('given')} of {approvals.get('needed')} approvals{': ' if by else ''}{', '.join(by)}"
