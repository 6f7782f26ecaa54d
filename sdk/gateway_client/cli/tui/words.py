"""Texts of the desk as coloured lines: of safe strings, and without markup."""

from collections.abc import Iterable, Sequence

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from gateway_client.cli.display.output import STYLES, Output
from gateway_client.cli.display.tables import fold, labelled, slices

GAP = 2
_MOST_FREE = 32
HEADING, FAINT, ALARM = "bold", "dim", "bold red"


class CollectedOutput(Output):
    """The lines that a command would have printed."""

    def __init__(self) -> None:
        super().__init__(is_json=False)
        self.is_terminal = self.has_colour = False
        self.lines: list[str] = []

    def line(self, text: str = "") -> None:
        """One line, or several."""
        self.lines += text.split("\n")


def word(text: str) -> Text:
    """A known word in its colour."""
    return Text(text, STYLES.get(text.strip(), ""))


def folded(lines: Iterable[str], width: int) -> list[Text]:
    """Lines that fit; what is broken goes on further in."""
    return [
        Text(piece if at == 0 else f"  {piece}")
        for line in lines
        for at, piece in enumerate(slices(line, width - GAP))
    ]  # fmt: skip


def fact(name: str, text: str, width: int, indent: int) -> list[Text]:
    """A name in bold with what it has, in lines that fit."""
    first, *others = labelled(name, text, width, indent)
    line = Text(first)
    line.stylize(HEADING, 0, 2 + len(name))
    return [line, *(Text(one) for one in others)]


def prose(name: str, text: str, width: int, indent: int) -> list[Text]:
    """The same for words of the gateway's own, folded at their spaces."""
    line, *others = fold(text, max(20, width - indent))
    return [
        Text.assemble(("  " + name.ljust(indent - 2), HEADING), line),
        *(Text(f"{'':{indent}}{one}") for one in others),
    ]


def row(cells: Sequence[str], widths: Sequence[int], style: str = "") -> Text:
    """Cells of a table, each cut or filled to its width."""
    line = Text(style=style)
    for cell, width in zip(cells, widths, strict=True):
        shown = set_cell_size(cell if cell_len(cell) <= width else f"{set_cell_size(cell, width - 1)}…", width)
        line.append(shown, STYLES.get(cell, ""))
        line.append(" " * GAP)
    line.rstrip()
    return line


def shared_out(fixed: Sequence[int | None], width: int) -> list[int]:
    """Widths of columns: those of None share evenly what the fixed ones and the gaps leave, up to _MOST_FREE but for
    the last of them."""
    left = width - sum(one or 0 for one in fixed) - GAP * (len(fixed) - 1)
    widths, free = [], sum(one is None for one in fixed)
    for one in fixed:
        if one is not None:
            widths.append(one)
            continue
        share = max(4, left // free)
        widths.append(share if free == 1 else min(share, _MOST_FREE))
        left, free = left - widths[-1], free - 1
    return widths
