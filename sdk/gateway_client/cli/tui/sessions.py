"""Agents that have a lease now, and the end of the one under the cursor, once a person has said yes."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Static

from gateway_client.cli.commands.sessions import calls_left, known_by
from gateway_client.cli.display.safe import plain, safe
from gateway_client.cli.display.times import brief, countdown
from gateway_client.cli.tui.feed import News
from gateway_client.cli.tui.lines import ScrolledLines
from gateway_client.cli.tui.pane import WIDE, Pane
from gateway_client.cli.tui.words import ALARM, FAINT, HEADING, row, shared_out
from gateway_client.contract.sessions import Session
from gateway_client.results import SessionPage

_WIDER = 150
"""Columns from which there is room for what is asked for less often."""


class SessionsPane(Pane):
    """Sessions, the newest first. A question is about one session by its id, wherever the list moves."""

    DEFAULT_CSS = """
    SessionsPane { layout: vertical; }
    SessionsPane .heading, SessionsPane #ending { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "ask", show=False),
        Binding("y", "revoke", show=False),
        Binding("n,escape", "leave", show=False),
    ]

    KEYS = "↑↓ choose  x revoke"

    class Ended(Message):
        """Request to revoke this session."""

        def __init__(self, session: Session) -> None:
            super().__init__()
            self.session = session

    def __init__(self, gateway: str, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._gateway = gateway
        self._page: SessionPage | None = None
        self._asked: Session | None = None

    @property
    def keys(self) -> str:
        """The keys that work now; others while a question is open."""
        return "y revoke  n no" if self._asked is not None else super().keys

    def compose(self) -> ComposeResult:
        """A table, and the question below it."""
        yield Static(id="session-columns", classes="heading")
        yield ScrolledLines(has_cursor=True, id="sessions-list")
        yield Static(id="ending")

    def begin(self) -> None:
        """Keys go to the table."""
        self._asked = None
        self.screen.set_focus(self.query_one(ScrolledLines))
        self._draw()

    def on_resize(self) -> None:
        """The headings fit again."""
        self._draw()

    def take(self, news: News) -> None:
        """Show the sessions with a lease. The cursor stays on its session while that lives."""
        if news.sessions is not None:
            lines, before = self.query_one(ScrolledLines), self._pointed
            self._page = news.sessions
            ids = [one.session_id for one in news.sessions.sessions]
            if before is not None and before.session_id in ids:
                lines.cursor = ids.index(before.session_id)
            if self._asked is not None and self._asked.session_id not in ids:
                self._asked = None
        self._draw()

    def action_ask(self) -> None:
        """Whether the one under the cursor is to end."""
        self._asked = self._pointed
        self._draw()

    def action_leave(self) -> None:
        """It is not."""
        self._asked = None
        self._draw()

    def action_revoke(self) -> None:
        """It is."""
        if self._asked is not None:
            self.post_message(self.Ended(self._asked))
            self.action_leave()

    @property
    def _pointed(self) -> Session | None:
        cursor = self.query_one(ScrolledLines).cursor
        return self._page.sessions[cursor] if self._page is not None and cursor < len(self._page.sessions) else None

    def _draw(self) -> None:
        page, is_wide = self._page, self.size.width >= WIDE
        is_wider = self.size.width >= _WIDER
        fixed = [7, None, 11, 11, 4, 40 if is_wide else 13, *([12, None] if is_wider else [])]
        names = ["LEFT", "PRINCIPAL", "KNOWN BY", "CALLS LEFT", "HELD", "SESSION"]
        names += ["SINCE", "OWNER"] if is_wider else []

        def laid_out(width: int) -> list[Text]:
            if page is None or not page.sessions:
                return [Text("nobody has a lease" if page is not None else "", FAINT)]
            return [row(_cells(one, is_wide)[: len(fixed)], shared_out(fixed, width)) for one in page.sessions]

        self.query_one(ScrolledLines).show(laid_out)
        self.query_one("#session-columns", Static).update(row(names, shared_out(fixed, self.size.width), HEADING))
        self.query_one("#ending", Static).update(self._question())

    def _question(self) -> Text:
        if self._asked is not None:
            name = _short(safe(self._asked.session_id))
            return Text(f"revoke {name} of {safe(self._asked.principal)} for {self._gateway}?", ALARM)
        if self._page is not None and self._page.next is not None:
            return Text(f"the newest {len(self._page.sessions)} are listed: gatectl sessions", FAINT)
        return Text()


def _cells(one: Session, is_wide: bool) -> list[str]:
    whole = safe(one.session_id)
    cells = [countdown(one.expires_at), plain(one.principal), known_by(one), calls_left(one)]
    cells += [str(one.pending_approvals or "-"), whole if is_wide else _short(whole)]
    return [*cells, brief(one.issued_at), plain(one.owner or "-")]


def _short(whole: str) -> str:
    kind, _, rest = whole.partition("_")
    return f"{kind}_…{rest[-8:]}"
