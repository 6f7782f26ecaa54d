"""The desk itself: what stands above and below the panes, which of them is shown, and what they ask the gateway.

Guarantees that it quits at once, whatever it waits for, and that every pane says when the gateway is away, until it
answers again.
"""

from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import ContentSwitcher, Static

from gateway_client.cli.arguments import ids
from gateway_client.cli.commands.why import story_of
from gateway_client.cli.complaints import line_of
from gateway_client.cli.deciding import described
from gateway_client.cli.display.output import DOT
from gateway_client.cli.display.safe import safe
from gateway_client.cli.display.times import now
from gateway_client.cli.exits import Failure, ScriptExit
from gateway_client.cli.tui.decided import DecisionOver
from gateway_client.cli.tui.deciding_screen import DecidingScreen, DecidingStep
from gateway_client.cli.tui.decisions import Decisions
from gateway_client.cli.tui.feed import Feed, News, errand
from gateway_client.cli.tui.holds import HoldsPane
from gateway_client.cli.tui.pane import Pane
from gateway_client.cli.tui.search import Search
from gateway_client.cli.tui.sessions import SessionsPane
from gateway_client.cli.tui.standing import StatusPane
from gateway_client.cli.tui.words import ALARM, FAINT, HEADING, CollectedOutput, word
from gateway_client.cli.views.why import Story, show
from gateway_client.contract.approvals import ApprovalDetail
from gateway_client.contract.sessions import RevokedSession
from gateway_client.errors import GatewayError
from gateway_client.operators import OperatorClient
from gateway_client.results import Status

PANES = (("holds", "Held"), ("decisions", "Decisions"), ("standing", "Gateway"), ("search", "Search"),
         ("sessions", "Sessions"))  # fmt: skip


class DeskApp(App[int]):
    """`gateway`: its name as gatectl says it before a change. `interval`: seconds between two rounds."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { layout: vertical; }
    #top, #tabs, #said, #keys { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    #top, #keys { background: $panel; }
    ContentSwitcher { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(at), f"pane('{name}')", show=False) for at, (name, _) in enumerate(PANES, 1)),
        Binding("r", "hurry", show=False),
        Binding("slash", "pane('search')", show=False),
        Binding("q", "quit", show=False),
        Binding("ctrl+q", "quit", show=False, priority=True),
        Binding("ctrl+c", "interrupt", show=False, priority=True),
    ]

    def __init__(self, operator: OperatorClient, gateway: str, interval: float) -> None:
        super().__init__()
        self._operator, self._gateway = operator, gateway
        self._feed = Feed(operator, interval, lambda news: self.call_later(self._take, news))
        self._status: Status | None = None
        self._problem: GatewayError | None = None
        self._since = self._at = ""
        self._waiting: int | None = None
        self._said = Text()
        self._asked: str | None = None
        self.failure: BaseException | None = None

    def compose(self) -> ComposeResult:
        """Top, tabs, the pane, what was said last, keys."""
        yield Static(id="top")
        yield Static(id="tabs")
        with ContentSwitcher(initial="holds"):
            yield HoldsPane(id="holds")
            yield Decisions(id="decisions")
            yield StatusPane(id="standing")
            yield Search(id="search")
            yield SessionsPane(self._gateway, id="sessions")
        yield Static(id="said")
        yield Static(id="keys")

    def on_mount(self) -> None:
        """Begin."""
        self.action_pane("holds")
        self.set_interval(1.0, self._draw)
        self._feed.start()

    def on_resize(self) -> None:
        """It fits again."""
        self._draw()

    def on_descendant_focus(self) -> None:
        """Other keys, perhaps."""
        self._draw()

    @property
    def pane(self) -> Pane:
        """The one that is shown."""
        switcher = self.screen_stack[0].query_one(ContentSwitcher)
        return switcher.get_child_by_id(str(switcher.current), Pane)

    def action_pane(self, name: str) -> None:
        """Show this one."""
        if len(self.screen_stack) > 1:
            return
        self.query_one(ContentSwitcher).current = name
        self._feed.wants_pools, self._feed.wants_sessions = name == "standing", name == "sessions"
        self._feed.hurry()
        self.pane.begin()
        self._draw()

    def action_hurry(self) -> None:
        """Ask now."""
        self._feed.hurry()

    async def action_quit(self) -> None:
        """Leave; what was decided goes on."""
        self._feed.stop()
        self.exit(int(ScriptExit.DONE))

    def action_interrupt(self) -> None:
        """Ctrl-C."""
        self._feed.stop()
        self.exit(int(ScriptExit.INTERRUPTED))

    def on_holds_pane_pointed(self, _event: HoldsPane.Pointed) -> None:
        """Fetch its plan, one at a time."""
        if self._asked is None:
            self._fetch_plan()

    def on_holds_pane_opened(self, event: HoldsPane.Opened) -> None:
        """On a screen of its own, with the question that was asked for."""
        begin = {"a": DecidingStep.APPROVING, "d": DecidingStep.REASONING}.get(event.key, DecidingStep.FETCHING)
        pointed = self.query_one(HoldsPane).pointed
        if pointed is not None and len(self.screen_stack) == 1:
            self.push_screen(DecidingScreen(self._operator, pointed, begin, self._gateway, self._is_dev))

    def on_decisions_show_call(self, event: Decisions.ShowCall) -> None:
        """Show the whole call."""
        self.action_pane("search")
        self.query_one(Search).look_for(event.trace_id)

    def on_search_wanted(self, event: Search.Wanted) -> None:
        """Look for it."""
        operator, name = self._operator, event.name
        errand(
            lambda: story_of(operator, ids.anything(operator, name)),
            lambda told: self.call_later(self._show_call, told),
        )

    def on_sessions_pane_ended(self, event: SessionsPane.Ended) -> None:
        """End it."""
        operator, name = self._operator, event.session.session_id
        what = f"revoke {safe(name)} of {safe(event.session.principal)}"
        errand(lambda: operator.revoke_session(name), lambda found: self.call_later(self._ended, what, found))

    def on_decision_over(self, event: DecisionOver) -> None:
        """Say it below every pane, until there is another one."""
        decided = event.decided
        self._said = Text(f"{now()} {decided.line}", "" if decided.is_well else ALARM)
        self._feed.hurry()
        self._draw()

    def _fatal_error(self) -> None:
        """SECURITY: Textual's own prints every local variable, keys among them; gatectl raises what went wrong."""
        self.failure = self._exception
        self._close_messages_no_wait()

    @property
    def _is_dev(self) -> bool:
        """True if the gateway says that it is in dev mode; without an answer it counts as production."""
        return self._status is not None and "dev_mode" in self._status.weakened

    def _take(self, news: News) -> None:
        if (news.problem is None) != (self._problem is None):
            self._since = now()
        self._problem = news.problem
        self._at = now() if news.problem is None else self._at
        self._status = news.status or self._status
        if news.holds is not None:
            self._waiting = len(news.holds) if news.total is None else news.total
        for name, _ in PANES:
            self.screen_stack[0].query_one(f"#{name}", Pane).take(news)
        self._draw()

    def _fetch_plan(self) -> None:
        wanted, operator = self.screen_stack[0].query_one(HoldsPane).pointed, self._operator
        self._asked = wanted
        if wanted is not None:
            errand(
                lambda: described(operator, operator.approval(wanted)),
                lambda found: self.call_later(self._show_plan, wanted, found),
            )

    def _show_plan(self, approval_id: str, answer: ApprovalDetail | GatewayError | Failure) -> None:
        holds = self.screen_stack[0].query_one(HoldsPane)
        holds.show_plan(approval_id, answer if isinstance(answer, ApprovalDetail) else line_of(answer))
        self._asked = None
        if holds.pointed not in (None, approval_id):
            self._fetch_plan()

    def _show_call(self, answer: Story | GatewayError | Failure) -> None:
        search = self.screen_stack[0].query_one(Search)
        if not isinstance(answer, Story):
            search.show([line_of(answer)])
            return
        out = CollectedOutput()
        show(out, answer)
        search.show(out.lines, answer.events)

    def _ended(self, what: str, answer: RevokedSession | GatewayError | Failure) -> None:
        if isinstance(answer, RevokedSession):
            self._said = Text(f"{now()} {what}: done")
        else:
            self._said = Text(f"{now()} {what}: {line_of(answer).removeprefix('gatectl: ')}", ALARM)
        self._feed.hurry()
        self._draw()

    def _draw(self) -> None:
        screen = self.screen_stack[0]
        screen.query_one("#top", Static).update(self._top())
        screen.query_one("#tabs", Static).update(self._tabs())
        screen.query_one("#said", Static).update(self._message())
        screen.query_one("#keys", Static).update(Text(self.pane.keys))

    def _top(self) -> Text:
        parts = [Text("gatectl desk", HEADING)]
        if self._problem is not None:
            parts.append(Text("NO ANSWER", ALARM))
        elif self._status is not None:
            parts += [word(safe(self._status.status)), Text(f"{self._status.in_flight_executions} in flight")]
        return Text(DOT).join([*parts, Text(self._gateway)])

    def _tabs(self) -> Text:
        text = Text()
        for at, (name, title) in enumerate(PANES, 1):
            count = f" ({self._waiting})" if name == "holds" and self._waiting is not None else ""
            text.append(f" {at} {title}{count} ", "reverse" if self.pane.id == name else "")
            text.append(" ")
        return text

    def _message(self) -> Text:
        if self._problem is not None:
            reason = line_of(self._problem).removeprefix("gatectl: ").partition(" - ")[0]
            return Text(f"no answer since {self._since}, asking again: {reason}", ALARM)
        if self._said:
            return self._said
        return Text("asking the gateway…" if self._status is None else f"as of {self._at}", FAINT)
