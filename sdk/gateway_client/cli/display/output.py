"""Standard output: tables on a terminal, aligned text in a pipe, JSON where it was asked for.

Guarantees that colour and escape sequences reach terminals only, and those only without NO_COLOR; and that every text
has gone through gateway_client/cli/display/safe.py.
"""

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from gateway_client.cli.display.safe import json_text, plain, safe, short

STYLES = {
    "ok": "green", "ready": "green", "verified": "green", "allow": "green", "approved": "green", "intact": "green",
    "proven": "green", "consistent": "green", "first": "yellow", "alarm": "bold red",
    "warn": "yellow", "degraded": "yellow", "draining": "yellow", "pending": "yellow", "pending_approval": "yellow",
    "claimed": "yellow", "high": "yellow", "medium": "cyan",
    "fail": "bold red", "critical": "bold red", "deny": "red", "denied": "red", "error": "bold red", "failed": "red",
    "not_ready": "bold red", "broken": "bold red", "signature_invalid": "bold red", "HELD": "bold yellow",
    "held": "yellow", "verification_failed": "bold red",
}  # fmt: skip
"""Words that are coloured when a cell, or a marked text, is exactly that."""

DOT = " · "
MAX_CELL, MAX_FACT = 600, 4000
_OWN_INDENT = 4


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
        """One line; the caller has made it safe."""
        self._write(text)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]], empty: str) -> None:
        """Rows below their headings; `empty` is printed instead of an empty table."""
        cells = [[short(plain(cell), MAX_CELL) for cell in row] for row in rows]
        if not cells:
            self.line(empty)
        elif self.is_terminal:
            self._laid_out(columns, cells)
        else:
            self._aligned([list(columns), *cells])

    def facts(self, pairs: Iterable[tuple[str, Any]]) -> None:
        """Names and values, two columns without headings."""
        shown = [(name, short(plain(value), MAX_FACT)) for name, value in pairs]
        width = max((len(name) for name, _ in shown), default=0)
        for name, value in shown:
            first, *others = self._folded(value, width + 2)
            if self.is_terminal and max(map(len, (first, *others))) + width + 2 > self._width():
                # A word that is copied whole gets lines of its own.
                self.line(name)
                self.text(value, _OWN_INDENT)
                continue
            self.line(f"{name.ljust(width)}  {self.mark(first)}")
            for line in others:
                self.line(f"{'':{width}}  {line}")

    def text(self, text: str, indent: int = 0) -> None:
        """A text, indented, in as many lines as the terminal needs. The caller has made it safe."""
        if not self.is_terminal:
            self.line(f"{'':{indent}}{text}")
            return
        from gateway_client.cli.display.tables import slices

        for line in slices(text, self._width() - indent):
            self.line(f"{'':{indent}}{line}".rstrip())

    def labelled(self, name: str, text: str, indent: int) -> None:
        """One fact of a plan (gateway_client/cli/display/tables.py `labelled`); one line where that is no terminal."""
        if not self.is_terminal:
            self.line(f"  {name.ljust(indent - 2)}{text}")
            return
        from gateway_client.cli.display.tables import labelled

        for line in labelled(name, text, self._width(), indent):
            self.line(line)

    def parts(self, parts: Iterable[str | tuple[str, ...]]) -> None:
        """A line of several parts, the known words among them in their colour; on a terminal in as many lines as it
        takes. A tuple is one part of several words. The caller has made them safe."""
        of_words = [(part,) if isinstance(part, str) else part for part in parts]
        marked = {DOT.join(words): DOT.join(self._padded_mark(one) for one in words) for words in of_words}
        lines = [[DOT.join(words) for words in of_words]]
        if self.is_terminal:
            from gateway_client.cli.display.tables import flowing

            lines = flowing(lines[0], self._width())
        for at, line in enumerate(lines):
            self.line(f"{'  ' if at else ''}{'  '.join(marked.get(one, one) for one in line)}".rstrip())

    def _folded(self, value: str, indent: int) -> list[str]:
        """In lines that fit behind so many columns, on a terminal."""
        if not self.is_terminal:
            return [value]
        from gateway_client.cli.display.tables import fold

        return fold(value, max(20, self._width() - indent))

    def mark(self, word: str) -> str:
        """`word` in its colour, on terminals that have colours."""
        style = STYLES.get(word)
        if not self.has_colour or style is None:
            return word
        codes = {"bold": "1", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
        return f"\x1b[{';'.join(codes[part] for part in style.split())}m{word}\x1b[0m"

    def _padded_mark(self, word: str) -> str:
        bare = word.rstrip()
        return self.mark(bare) + word[len(bare) :]

    def _laid_out(self, columns: Sequence[str], cells: list[list[str]]) -> None:
        """For a terminal: a table where one fits, records below each other elsewhere."""
        from gateway_client.cli.display import tables

        width = self._width()
        rows = tables.table(columns, cells, width)
        if rows is None:
            for first, *others in tables.stacked(columns, cells, width):
                self.line(self._bold(first))
                for line in others:
                    self.line(line)
            return
        for at, pieces in enumerate(rows):
            shown = [self._bold(piece) if at == 0 else self.mark(piece) for piece, _ in pieces]
            pads = [tables.padding(piece, cells_wide) for piece, cells_wide in pieces]
            self.line((" " * tables.GAP).join(part + pad for part, pad in zip(shown, pads, strict=True)).rstrip())

    def _bold(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if self.has_colour and text else text

    @staticmethod
    def _width() -> int:
        return max(20, shutil.get_terminal_size().columns)

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


class ProgressLine:
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
