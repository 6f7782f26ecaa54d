"""What goes to standard output: tables on a terminal, aligned text in a pipe, JSON where it was asked for.

Guarantees that colour and escape sequences reach terminals only, and those only without NO_COLOR; and that every text
has gone through gateway_client/cli/safe.py.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from gateway_client.cli.safe import json_text, plain, safe, short

STYLES = {
    "ok": "green", "ready": "green", "verified": "green", "allow": "green", "approved": "green", "intact": "green",
    "proven": "green", "consistent": "green", "first": "yellow", "alarm": "bold red",
    "warn": "yellow", "degraded": "yellow", "draining": "yellow", "pending": "yellow", "pending_approval": "yellow",
    "claimed": "yellow", "high": "yellow", "medium": "cyan",
    "fail": "bold red", "critical": "bold red", "deny": "red", "denied": "red", "error": "bold red", "failed": "red",
    "not_ready": "bold red", "broken": "bold red", "signature_invalid": "bold red", "HELD": "bold yellow",
    "verification_failed": "bold red",
}  # fmt: skip
"""Words that are coloured when a cell, or a marked text, is exactly that."""

PROSE = 42
"""Cells beyond this are folded in a table on a terminal; an identifier is shorter."""

MAX_CELL, MAX_FACT = 600, 4000


class Output:
    """One command's standard output. `is_json`: everything is JSON, and nothing else is printed."""

    def __init__(self, is_json: bool) -> None:
        self.is_json = is_json
        self.is_terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        self.has_colour = self.is_terminal and not os.environ.get("NO_COLOR")

    def document(self, value: object) -> None:
        """One JSON document; the whole output of a command."""
        self._write(json_text(value, indent=2 if self.is_terminal else None))

    def record(self, value: object) -> None:
        """One of many JSON documents, on a line of its own, out at once."""
        self._write(json_text(value))

    def line(self, text: str = "") -> None:
        """One line; whoever calls has made it safe."""
        self._write(text)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]], empty: str) -> None:
        """Rows below their headings; `empty` is what to say when there are none."""
        cells = [[short(plain(cell), MAX_CELL) for cell in row] for row in rows]
        if not cells:
            self.line(empty)
        elif self.is_terminal:
            self._rich_table(columns, cells)
        else:
            self._aligned([list(columns), *cells])

    def facts(self, pairs: Iterable[tuple[str, Any]]) -> None:
        """Names and values, two columns without headings."""
        shown = [(name, short(plain(value), MAX_FACT)) for name, value in pairs]
        width = max((len(name) for name, _ in shown), default=0)
        for name, value in shown:
            self.line(f"{name.ljust(width)}  {self.mark(value)}")

    def mark(self, word: str) -> str:
        """`word` in its colour, on terminals that have colours."""
        style = STYLES.get(word)
        if not self.has_colour or style is None:
            return word
        codes = {"bold": "1", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
        return f"\x1b[{';'.join(codes[part] for part in style.split())}m{word}\x1b[0m"

    def _rich_table(self, columns: Sequence[str], cells: list[list[str]]) -> None:
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        widths = [max(len(row[at]) for row in [list(columns), *cells]) for at in range(len(columns))]
        table = Table(
            box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold" if self.has_colour else ""
        )
        for name, width in zip(columns, widths, strict=True):
            # Identifiers are copied: they stay in one piece. Prose is folded.
            table.add_column(name, overflow="fold", no_wrap=width <= PROSE, min_width=min(width, PROSE))
        for row in cells:
            table.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in row))  # Text: no markup is read
        console = Console(no_color=not self.has_colour, highlight=False, emoji=False, markup=False)
        console.width = max(console.width, sum(min(width, PROSE) + 3 for width in widths))
        console.print(table)

    def _aligned(self, rows: list[list[str]]) -> None:
        widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
        for row in rows:
            self.line("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())

    @staticmethod
    def _write(text: str) -> None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def note(text: str) -> None:
    """A remark for people, on standard error."""
    print(safe(text), file=sys.stderr, flush=True)


class Progress:
    """One line on standard error that is written over; nothing where that is no terminal."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._was_shown = False

    def show(self, text: str) -> None:
        """Replace the line."""
        if self._is_terminal:
            sys.stderr.write(f"\r\x1b[K{safe(text)}")
            sys.stderr.flush()
            self._was_shown = True

    def end(self) -> None:
        """Take the line away."""
        if self._was_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._was_shown = False
