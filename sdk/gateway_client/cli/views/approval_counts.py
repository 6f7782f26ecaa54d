"""How far a call that needs several approvals has come, for people."""

from collections.abc import Mapping
from typing import Any


def counted(approvals: Mapping[str, Any]) -> str:
    """How many of several approvals are given, of which groups they must be, and by whom."""
    by = [str(one.get("approved_by")) for one in approvals.get("by", ())]
    said = f"{approvals.get('given')} of {approvals.get('needed')} approvals{_of_groups(approvals)}"
    return f"{said}: {', '.join(by)}" if by else said


def asked_for(quorum: Mapping[str, Any]) -> str:
    """The approvals that a call would need."""
    return f"{quorum.get('count')} approvals{_of_groups(quorum)}"


def _of_groups(approvals: Mapping[str, Any]) -> str:
    groups = approvals.get("groups")
    if not isinstance(groups, Mapping) or not groups:
        return ""
    return f" ({', '.join(f'{number} of {name}' for name, number in groups.items())})"
