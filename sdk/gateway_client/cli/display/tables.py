"""Tables and facts laid out for the width of a terminal, so that the terminal itself never breaks a line.

A table that fits stands as one; from STACKED columns on, prose is folded for it, and identifiers are shortened to what
still names them (gateway_client/cli/arguments/ids.py). Anything else is stacked: a record below the other, nothing cut.
Cells are safe by now. No line of a table is longer than the width but for one word that is copied whole: an identifier,
a path. Lines of a plan, a tail and a watch are never longer, and joined they are the text: no space of it is swallowed.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len

STACKED = 100
"""Narrower terminals get no folded table."""
GAP = 2
_STACKED_INDENT = 6
_LEAST_PROSE = 16
_ID = re.compile(r"\b([a-z]+_)[0-9a-f]{8}-[0-9a-f-]{14}-[0-9a-f]{4}([0-9a-f]{8})\b")

Line = list[tuple[str, int]]
"""Pieces of a line, each with the width that it is to fill."""


def table(columns: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> list[Line] | None:
    """Lines with the headings first; None when it has to be stacked."""
    for rows in (cells, [[_shortened(cell) for cell in row] for row in cells]):
        widths = _widths(columns, rows, width)
        if widths is not None:
            return [line for row in (columns, *rows) for line in _row(row, widths)]
        if width < STACKED:
            return None
    return None


def stacked(columns: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> Iterator[list[str]]:
    """The lines of each record: its first cell, then the others with their names; what says nothing is left out."""
    for row in cells:
        named = [f"{name.lower()} {cell}".strip() for name, cell in zip(columns[1:], row[1:], strict=True)
                 if cell != "-"]  # fmt: skip
        lines, line = [row[0]], ""
        for part in named:
            joined = f"{line}  {part}" if line else f"  {part}"
            if line and cell_len(joined) > width:
                lines.append(line)
                joined = f"  {part}"
            if cell_len(joined) > width:
                *folded, joined = fold(part, width - 4)
                lines += [f"{'    ' if at else '  '}{one}" for at, one in enumerate(folded)]
                joined = f"{'    ' if folded else '  '}{joined}"
            line = joined
        yield [*lines, line] if line else lines


def fold(text: str, width: int) -> list[str]:
    """`text` at its spaces, in lines of at most `width` cells; a longer word has a line of its own."""
    lines = [""]
    for word in text.split(" "):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if cell_len(joined) > width and lines[-1]:
            lines.append(word)
        else:
            lines[-1] = joined
    return lines


def slices(text: str, width: int) -> list[str]:
    """`text` in lines of at most `width` cells, broken behind a space where one is near. Joined they are the text."""
    lines: list[str] = []
    while text:
        end = min(len(text), width)
        while cell_len(text[:end]) > width and end > 1:
            end -= 1
        while end < len(text) and cell_len(text[: end + 1]) <= width:  # marks take no cell
            end += 1
        space = text.rfind(" ", 0, end) + 1
        if end < len(text) and space > end // 3:
            end = space
        lines.append(text[:end])
        text = text[end:]
    return lines or [""]


def labelled(name: str, text: str, width: int, indent: int) -> list[str]:
    """A name and what it has, the text from column `indent` on; below STACKED columns the text has lines of its own
    where it does not fit beside the name. The name stands in column 2, where no text of others does."""
    room = width - indent
    if cell_len(text) > room and width < STACKED:
        return [f"  {name}", *(f"{'':{_STACKED_INDENT}}{one}" for one in slices(text, width - _STACKED_INDENT))]
    first, *others = slices(text, room)
    return [f"  {name.ljust(indent - 2)}{first}", *(f"{'':{indent}}{one}" for one in others)]


def flowing(parts: Iterable[str], width: int) -> list[list[str]]:
    """`parts` in lines, GAP cells between them; lines after the first are indented by GAP."""
    lines: list[list[str]] = [[]]
    used = -GAP
    for part in parts:
        if used + GAP + cell_len(part) <= width:
            lines[-1].append(part)
            used += GAP + cell_len(part)
            continue
        for piece in slices(part, width - GAP):
            lines.append([piece])
            used = GAP + cell_len(piece)
    return [line for line in lines if line]


def padding(text: str, width: int) -> str:
    """The spaces behind it, up to so many cells."""
    return " " * max(0, width - cell_len(text))


def _widths(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[int] | None:
    """The width of each column; None when the terminal is too narrow. Prose gives way first, evenly."""
    widths = [max(cell_len(row[at]) for row in (columns, *rows)) for at in range(len(columns))]
    excess = sum(widths) + GAP * (len(widths) - 1) - width
    if excess <= 0:
        return widths
    if width < STACKED:
        return None
    least = [
        max(min(widths[at], _LEAST_PROSE), *(cell_len(word) for row in (columns, *rows) for word in row[at].split(" ")))
        for at in range(len(columns))
    ]
    while excess > 0:
        at = max(range(len(widths)), key=lambda one: widths[one] - least[one])
        if widths[at] <= least[at]:
            return None
        widths[at] -= 1
        excess -= 1
    return widths


def _row(row: Sequence[str], widths: Sequence[int]) -> Iterator[Line]:
    folded = [fold(cell, width) for cell, width in zip(row, widths, strict=True)]
    for at in range(max(len(lines) for lines in folded)):
        pieces = [lines[at] if at < len(lines) else "" for lines in folded]
        yield [(piece, width) for piece, width in zip(pieces, widths, strict=True)]


def _shortened(cell: str) -> str:
    """Identifiers by their kind and end, which is what differs between two of the same minute."""
    return _ID.sub(r"\1…\2", cell)
