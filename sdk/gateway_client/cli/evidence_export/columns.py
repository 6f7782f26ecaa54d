"""Events as rows: members of members become columns with a dot, kept values columns named `kept./pointer`.

A list is one cell with its JSON. Pure.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from gateway_client.cli.exits import Failure, ScriptExit

FIRST = ("timestamp", "event_id", "event_type", "decision", "action_id", "principal", "session_id", "trace_id")
"""Columns that stand first, in this order; the others follow by name, kept values last."""
RENAMED = {"kept": "commitment", "kept_values": "kept"}
"""Members that have another name as columns: `kept` of an event has the commitments."""
MAX_COLUMNS = 4096
EXACT_IN_DOUBLE = 2**53

Cell = str | int | float | bool | None


def row_of(line: bytes) -> dict[str, Cell]:
    """The cells of one event. Raises ValueError for a line that is no JSON object."""
    event = json.loads(line)
    if not isinstance(event, dict):
        raise ValueError("a line is no JSON object")
    return dict(_cells("", event))


def columns_of(lines: Iterable[bytes]) -> dict[str, str]:
    """Every column and its kind: boolean, integer, number or text. Raises ValueError, Failure too_many_columns."""
    found: dict[str, str | None] = {}
    for line in lines:
        for name, cell in row_of(line).items():
            found[name] = _joined(found.get(name), cell)
        if len(found) > MAX_COLUMNS:
            message = f"the events have more than {MAX_COLUMNS} different members"
            raise Failure(ScriptExit.FAILED, "too_many_columns", message, "--format jsonl, or --action")
    return {name: found[name] or "text" for name in sorted(found, key=_order)}


def text_of(cell: Cell) -> str:
    """A cell as text: itself, or its JSON."""
    return cell if isinstance(cell, str) else "" if cell is None else json.dumps(cell)


def _cells(prefix: str, members: dict[str, Any]) -> Iterator[tuple[str, Cell]]:
    for name, value in members.items():
        column = f"{prefix}.{name}" if prefix else RENAMED.get(name, name)
        if isinstance(value, dict):
            yield from _cells(column, value)
        elif isinstance(value, list):
            yield column, json.dumps(value, ensure_ascii=False)
        else:
            yield column, value


def _joined(kind: str | None, cell: Cell) -> str | None:
    own = _kind(cell)
    if own is None or kind in {None, own}:
        return own or kind
    return "number" if {kind, own} == {"integer", "number"} else "text"


def _kind(cell: Cell) -> str | None:
    if cell is None:
        return None
    if isinstance(cell, bool):
        return "boolean"
    if isinstance(cell, int):
        return "integer" if abs(cell) <= EXACT_IN_DOUBLE else "text"
    return "number" if isinstance(cell, float) else "text"


def _order(name: str) -> tuple[int, str]:
    if name in FIRST:
        return FIRST.index(name), ""
    return len(FIRST) + name.startswith(("kept.", "commitment.")), name
