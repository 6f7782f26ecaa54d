"""The one widget of the desk: lines that are laid out for its width, with a cursor where one can be chosen.

SECURITY: it draws rich Text that was made of safe strings, piece by piece; no markup is parsed anywhere.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

Layout = Callable[[int], Sequence[Text]]
"""The lines for so many columns."""


class ScrolledLines(ScrollView, can_focus=True):
    """`layout` is asked again whenever the width changes. `is_seen`: the last line has been on the screen."""

    DEFAULT_CSS = """
    ScrolledLines { overflow-x: hidden; overflow-y: auto; scrollbar-size: 0 0; height: 1fr; background: $background; }
    ScrolledLines:focus { background-tint: 0%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup,b", "page(-1)", show=False),
        Binding("pagedown,space", "page(1)", show=False),
        Binding("home,g", "move(-1000000)", show=False),
        Binding("end,G", "move(1000000)", show=False),
        Binding("enter", "choose", show=False),
    ]

    class Moved(Message):
        """The cursor, or what is on the screen, is another now."""

    class Chosen(Message):
        """Enter was pressed."""

    def __init__(self, *, has_cursor: bool = False, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._has_cursor = has_cursor
        self._layout: Layout = lambda _: ()
        self._lines: Sequence[Text] = ()
        self.cursor = 0
        self.is_seen = False

    def show(self, layout: Layout, cursor: int | None = None) -> None:
        """Show these from now on. Without `cursor` it stays where it is, and so does what is on the screen."""
        self._layout = layout
        if cursor is not None:
            self.cursor = cursor
        self._lay_out()

    def restart(self) -> None:
        """From the first line on, of which none has been seen."""
        self.is_seen = False
        self.cursor = 0
        self.scroll_to(0, 0, animate=False, immediate=True)

    @property
    def count(self) -> int:
        """Lines in all."""
        return len(self._lines)

    @property
    def last_shown(self) -> int:
        """How many lines there are down to the last one on the screen."""
        return min(self.count, self.scroll_offset.y + self.size.height)

    def render_line(self, y: int) -> Strip:
        """One row of the screen."""
        at, width = y + self.scroll_offset.y, self.size.width
        style = self.rich_style
        if at >= self.count:
            return Strip.blank(width, style)
        if self._has_cursor and at == self.cursor:
            style += Style(reverse=True)
        segments = Segment.apply_style(self._lines[at].render(self.app.console), style)
        return Strip(segments).adjust_cell_length(width, style)

    def on_resize(self, _event: Resize) -> None:
        """Lay the lines out for the new width."""
        self._lay_out()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Report the lines that are now visible."""
        super().watch_scroll_y(old_value, new_value)
        self._note_seen()

    def action_move(self, by: int) -> None:
        """A line up or down."""
        if self._has_cursor:
            self._put(self.cursor + by)
        else:
            self.scroll_to(y=self.scroll_offset.y + by, animate=False, immediate=True)

    def action_page(self, by: int) -> None:
        """A screen up or down."""
        self.action_move(by * max(1, self.size.height - 1))

    def action_choose(self) -> None:
        """This one."""
        if self.count:
            self.post_message(self.Chosen())

    def _put(self, cursor: int) -> None:
        self.cursor = max(0, min(cursor, self.count - 1))
        top, height = self.scroll_offset.y, max(1, self.size.height)
        if not top <= self.cursor < top + height:
            top = self.cursor if self.cursor < top else self.cursor - height + 1
            self.scroll_to(y=top, animate=False, immediate=True)
        self.refresh()
        self.post_message(self.Moved())

    def _lay_out(self) -> None:
        width = self.size.width
        if not width:  # not on a screen yet
            return
        self._lines = self._layout(width)
        self.virtual_size = Size(width, self.count)
        self.refresh()
        if self._has_cursor:
            self._put(self.cursor)
        self._note_seen()

    def _note_seen(self) -> None:
        if self.count and self.last_shown >= self.count:
            self.is_seen = True
        self.post_message(self.Moved())
