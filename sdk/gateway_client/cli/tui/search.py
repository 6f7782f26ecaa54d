"""One call, by any of its identifiers: its story, and every member of its events."""

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message

from gateway_client.cli.display.safe import plain, safe
from gateway_client.cli.tui.lines import ScrolledLines
from gateway_client.cli.tui.pane import Pane
from gateway_client.cli.tui.typed import Typed
from gateway_client.cli.tui.words import fact, folded
from gateway_client.results import AuditEvent

_MEMBER_INDENT = 26


class Search(Pane):
    """One call by its trace, its receipt or its approval, as gatectl why has it, and its events as they stand."""

    DEFAULT_CSS = "Search { layout: vertical; } Search #found { margin-top: 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]
    KEYS = "↑↓ scroll  / search"

    class Wanted(Message):
        """A request to show this call."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    @property
    def keys(self) -> str:
        """The keys that work now; others while the search line has the focus."""
        return "enter search  esc leave the line  ctrl+q quit" if self.query_one(Typed).has_focus else super().keys

    def compose(self) -> ComposeResult:
        """A line to type in, and what was found."""
        yield Typed(placeholder="trace, receipt or approval, or the end of one", max_length=300)
        yield ScrolledLines(id="found")

    def begin(self) -> None:
        """Keys are typed."""
        self.screen.set_focus(self.query_one(Typed))

    def on_input_submitted(self, event: Typed.Submitted) -> None:
        """Look for it."""
        event.stop()
        name = event.value.strip()
        if name:
            self.look_for(name)

    def look_for(self, name: str) -> None:
        """As if it had been typed."""
        self.query_one(Typed).value = safe(name)
        self.show(["asking the gateway…"])
        self.screen.set_focus(self.query_one(ScrolledLines))
        self.post_message(self.Wanted(name))

    def action_leave(self) -> None:
        """To the result."""
        self.screen.set_focus(self.query_one(ScrolledLines))

    def show(self, lines: Sequence[str], events: Sequence[AuditEvent] = ()) -> None:
        """Show the result, or why the search failed, and every member of the call's events."""
        members = [[(safe(name), plain(value)) for name, value in one.raw.items()] for one in events]

        def laid_out(width: int) -> list[Text]:
            shown = folded(lines, width)
            for event in members:
                shown.append(Text())
                shown += [line for name, value in event for line in fact(name, value, width, _MEMBER_INDENT)]
            return shown

        widget = self.query_one(ScrolledLines)
        widget.restart()
        widget.show(laid_out)
