"""Events of the audit as they come, as far back as the screen keeps them."""

from itertools import islice

from textual.app import ComposeResult
from textual.message import Message
from textual.widgets import Static

from gateway_client.cli.display.safe import safe, short
from gateway_client.cli.display.times import brief
from gateway_client.cli.tui.feed import MOST_EVENTS, News
from gateway_client.cli.tui.lines import ScrolledLines
from gateway_client.cli.tui.pane import WIDE, Pane
from gateway_client.cli.tui.words import HEADING, row, shared_out
from gateway_client.cli.views.event import reason_of
from gateway_client.results import AuditEvent


class Decisions(Pane):
    """Events as they come, the newest first."""

    DEFAULT_CSS = "Decisions { layout: vertical; } Decisions .heading { height: 1; text-wrap: nowrap; }"
    KEYS = "↑↓ choose  enter the whole call"

    class ShowCall(Message):
        """Request to show the call of one event."""

        def __init__(self, trace_id: str) -> None:
            super().__init__()
            self.trace_id = trace_id

    def __init__(self, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._events: list[AuditEvent] = []

    def compose(self) -> ComposeResult:
        """A table."""
        yield Static(id="event-columns", classes="heading")
        yield ScrolledLines(has_cursor=True, id="events")

    def begin(self) -> None:
        """Keys go to the table."""
        self.screen.set_focus(self.query_one(ScrolledLines))

    def on_resize(self) -> None:
        """The headings fit again."""
        self._draw(0)

    def take(self, news: News) -> None:
        """New ones above; the cursor stays where it is at the top, and on its event elsewhere."""
        if news.events:
            self._events = list(islice((*reversed(news.events), *self._events), MOST_EVENTS))
            self._draw(len(news.events))

    def on_scrolled_lines_chosen(self, event: ScrolledLines.Chosen) -> None:
        """Enter."""
        event.stop()
        trace_id = self._events[self.query_one(ScrolledLines).cursor].trace_id
        if trace_id is not None:
            self.post_message(self.ShowCall(trace_id))

    def _draw(self, new: int) -> None:
        width = self.size.width
        fixed = [12, 7, None, None, None, *([40] if width >= WIDE else [])]
        names = ["TIME", "", "WHAT", "WHO", "WHY", *(["TRACE"] if width >= WIDE else [])]
        lines = self.query_one(ScrolledLines)
        cursor = lines.cursor + new if lines.cursor else 0
        lines.show(
            lambda width: [row(_cells(one, len(fixed)), shared_out(fixed, width)) for one in self._events], cursor
        )
        self.query_one("#event-columns", Static).update(row(names, shared_out(fixed, width), HEADING))


def _cells(event: AuditEvent, count: int) -> list[str]:
    decision = "held" if event.decision == "pending_approval" else short(event.decision or "-", 32)
    why = reason_of(event) or ""
    if not why and event.action_id and event.event_type != "ActionCall":
        why = f"{event.event_type} by {event.approved_by}" if event.approved_by else event.event_type
    what, who = event.action_id or event.event_type, event.principal or "-"
    cells = [brief(event.timestamp), decision, short(what), short(who), short(why), safe(event.trace_id or "-")]
    return cells[:count]
