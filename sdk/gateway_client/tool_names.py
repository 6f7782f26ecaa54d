"""Names of tools for ids of actions, one to one. Pure.

An action's id may have 256 characters with dots; hosts of models take 64 of `[A-Za-z0-9_-]`. An id that fits is its
own name; any other is shortened and ends with the beginning of its SHA-256, so that the same id has the same name in
every session. Back again goes through the table: a name is an action's only if it was made from one.
"""

import hashlib
import re
from collections.abc import Iterable

STATUS_TOOL = "gateway_approval_status"
CALLS_TOOL = "gateway_recent_calls"
RECEIPT_TOOL = "gateway_receipt"
OWN_TOOLS = (STATUS_TOOL, CALLS_TOOL, RECEIPT_TOOL)
"""The tools that are no actions."""
MAX_NAME = 64
_FITS = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_OTHER = re.compile(r"[^A-Za-z0-9_-]", re.ASCII)


def name_of(action_id: str) -> str:
    """The name of the tool for an action."""
    if _FITS.fullmatch(action_id) and action_id not in OWN_TOOLS:
        return action_id
    digest = hashlib.sha256(action_id.encode()).hexdigest()[:10]
    return f"{_OTHER.sub('_', action_id)[: MAX_NAME - 11]}_{digest}"


def table_of(action_ids: Iterable[str]) -> dict[str, str]:
    """Name to id, in the order of the ids. Ids with the same name, which only intent can cause, are left out."""
    table: dict[str, str] = {}
    doubles: set[str] = set()
    for action_id in action_ids:
        name = name_of(action_id)
        if table.setdefault(name, action_id) != action_id:
            doubles.add(name)
    return {name: action_id for name, action_id in table.items() if name not in doubles}
