"""The pending holds, and the plan of the hold under the cursor."""

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Static

from gateway_client.cli.display.output import DOT
from gateway_client.cli.display.safe import plain, safe
from gateway_client.cli.display.times import brief, countdown
from gateway_client.cli.tui.feed import News
from gateway_client.cli.tui.lines import ScrolledLines
from gateway_client.cli.tui.pane import WIDE, Pane
from gateway_client.cli.tui.words import FAINT, HEADING, fact, folded, row, shared_out, word
from gateway_client.cli.views.call_names import waiting
from gateway_client.cli.views.plan import INDENT, PlanView
from gateway_client.contract.approvals import ApprovalDetail
from gateway_client.results import Approval


class HoldsPane(Pane):
    """The pending holds, and the plan of the hold under the cursor."""

    DEFAULT_CSS = """
    HoldsPane { layout: vertical; }
    HoldsPane #holds { height: 5; }
    HoldsPane .heading, HoldsPane #named { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    HoldsPane #named { background: $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "open('a')", show=False),
        Binding("d", "open('d')", show=False),
    ]
    KEYS = "↑↓ choose  enter open  a approve  d deny"

    class Pointed(Message):
        """Request to show the plan of another hold."""

    class Opened(Message):
        """Request to decide or read a hold: `key` is the pressed key."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._holds: Sequence[Approval] = ()
        self._total: int | None = None
        self._is_known = False
        self.pointed: str | None = None

    def compose(self) -> ComposeResult:
        """The list above the plan."""
        yield Static(id="columns", classes="heading")
        yield ScrolledLines(has_cursor=True, id="holds")
        yield Static(id="named")
        yield ScrolledLines(id="plan")

    def begin(self) -> None:
        """Keys go to the list."""
        self.screen.set_focus(self.query_one("#holds", ScrolledLines))

    def on_resize(self) -> None:
        """A third of the height is the list's, as far as it needs it."""
        self._draw()

    def take(self, news: News) -> None:
        """Show the pending holds. The cursor stays on its hold while that is pending."""
        if news.holds is None:
            if news.status is not None:
                self._draw()
            return
        at = next((at for at, one in enumerate(news.holds) if one.approval_id == self.pointed), None)
        lines = self.query_one("#holds", ScrolledLines)
        lines.cursor = min(lines.cursor, max(0, len(news.holds) - 1)) if at is None else at
        self._holds, self._total, self._is_known = news.holds, news.total, True
        self._draw()
        self._point()

    def show_plan(self, approval_id: str, shown: ApprovalDetail | str) -> None:
        """Show the plan, or the reason why it can't be shown. Ignored unless the cursor is on this hold."""
        if approval_id != self.pointed:
            return
        if isinstance(shown, str):
            text = shown
            self.query_one("#plan", ScrolledLines).show(lambda width: folded([text], width))
            return
        facts = list(PlanView(shown, is_full=True).facts())
        self.query_one("#plan", ScrolledLines).show(
            lambda width: [line for one in facts for line in fact(*one, width, INDENT)]
        )

    def on_scrolled_lines_moved(self, event: ScrolledLines.Moved) -> None:
        """The cursor may be on another hold."""
        event.stop()
        self._point()

    def on_scrolled_lines_chosen(self, event: ScrolledLines.Chosen) -> None:
        """Enter."""
        event.stop()
        if self.pointed is not None:
            self.post_message(self.Opened("enter"))

    def action_open(self, key: str) -> None:
        """This one, to be decided."""
        if self.pointed is not None:
            self.post_message(self.Opened(key))

    def _point(self) -> None:
        cursor = self.query_one("#holds", ScrolledLines).cursor
        one = self._holds[cursor] if cursor < len(self._holds) else None
        name = None if one is None else one.approval_id
        if name == self.pointed:
            return
        self.pointed = name
        plan = self.query_one("#plan", ScrolledLines)
        plan.restart()
        plan.show(lambda _: ())
        self._draw_name()
        self.post_message(self.Pointed())

    def _draw(self) -> None:
        lines = self.query_one("#holds", ScrolledLines)
        lines.styles.height = max(1, min(len(self._holds), max(4, self.size.height // 3)))
        is_wide = self.size.width >= WIDE
        fixed = [7, 8, None, None, 40 if is_wide else 13, *([12] if is_wide else [])]
        names = ["LEFT", "RISK", "ACTION", "ASKED BY", "APPROVAL", *(["SINCE"] if is_wide else [])]

        def cells(one: Approval) -> list[str]:
            called = waiting(one)
            shown = [countdown(one.expires_at), plain(one.risk_level), called, plain(one.principal)]
            whole = safe(one.approval_id)
            if is_wide:
                return [*shown, whole, brief(one.created_at or "")]
            kind, _, rest = whole.partition("_")
            return [*shown, f"{kind}_…{rest[-8:]}"]

        def laid_out(width: int) -> list[Text]:
            if not self._holds:
                return [Text("nothing waits" if self._is_known else "", FAINT)]
            return [row(cells(one), shared_out(fixed, width)) for one in self._holds]

        lines.show(laid_out)
        heading = row(names, shared_out(fixed, self.size.width), HEADING)
        self.query_one("#columns", Static).update(heading)
        self._draw_name()

    def _draw_name(self) -> None:
        cursor = self.query_one("#holds", ScrolledLines).cursor
        text = Text()
        if cursor < len(self._holds):
            one = self._holds[cursor]
            called = waiting(one)
            parts = [called, plain(one.risk_level), f"expires in {countdown(one.expires_at)}"]
            text.append_text(word("HELD")).append("  ").append_text(Text(DOT).join(word(part) for part in parts))
        if self._total is not None and self._total > len(self._holds):
            text.append(f"  {len(self._holds)} of {self._total} that wait are listed")
        self.query_one("#named", Static).update(text)
