"""One held call on the whole screen: its plan as in gatectl approvals show, the question, and the outcome.

Guarantees that nothing is approved whose plan has not been on the screen to its last line, and that what is decided is
the detail that is shown here: it is fetched when the screen opens, and never again.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Static

from gateway_client.cli import deciding
from gateway_client.cli.complaints import line_of
from gateway_client.cli.display.output import DOT
from gateway_client.cli.display.safe import safe
from gateway_client.cli.exits import Failure
from gateway_client.cli.tui.decided import Decided, DecisionOver
from gateway_client.cli.tui.feed import errand
from gateway_client.cli.tui.lines import ScrolledLines
from gateway_client.cli.tui.typed import Typed
from gateway_client.cli.tui.words import ALARM, FAINT, HEADING, fact, folded, word
from gateway_client.cli.views.plan import INDENT, PlanView
from gateway_client.contract.approvals import ApprovalDetail
from gateway_client.errors import GatewayError
from gateway_client.operators import OperatorClient
from gateway_client.results import Denial, Executed

MOST_REASON = 500
"""Characters that the gateway keeps of a reason."""


class DecidingStep(Enum):
    """Where the operator is, with the keys of it."""

    FETCHING = "esc back"
    READING = "a approve  d deny  ↑↓ space scroll  esc back"
    APPROVING = "y approve  n no  ↑↓ space scroll"
    REASONING = "enter deny  esc no"
    DENYING = "y deny  n no  ↑↓ scroll"
    RUNNING = "esc leave it running"
    OVER = "↑↓ space scroll  esc back"


class DecidingScreen(Screen[None]):
    """`gateway`: its name, as questions have it. `is_dev`: denying asks no further question there. `decided` is called
    with the outcome of a decision, also after this screen is closed."""

    CSS = """
    DecidingScreen { layout: vertical; }
    #head, #prompt, #keys { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    #head { background: $panel; text-style: bold; }
    #keys { background: $panel; }
    """
    AUTO_FOCUS = "#plan"

    def __init__(
        self, operator: OperatorClient, approval_id: str, begin: DecidingStep, gateway: str, is_dev: bool
    ) -> None:
        super().__init__()
        self._operator, self._approval_id, self._gateway, self._is_dev = operator, approval_id, gateway, is_dev
        self._begin = begin
        self._step = DecidingStep.FETCHING
        self._detail: ApprovalDetail | None = None
        self._signs: ApprovalDetail | None = None
        self._view: PlanView | None = None
        self._reason: str | None = None
        self._said = ""

    def compose(self) -> ComposeResult:
        """Head, plan, prompt, keys."""
        yield Static(id="head")
        yield ScrolledLines(id="plan")
        yield Static(id="prompt")
        yield Typed(placeholder="reason, which the agent reads", max_length=MOST_REASON)
        yield Static(id="keys")

    def on_mount(self) -> None:
        """Fetch it."""
        self.query_one(Typed).display = False
        self._turn(DecidingStep.FETCHING)
        self.set_interval(1.0, self._draw_head)
        operator, approval_id = self._operator, self._approval_id

        def fetch() -> tuple[ApprovalDetail, ApprovalDetail | None]:
            detail = deciding.undecided(operator, approval_id)
            return deciding.described(operator, detail), deciding.to_sign(detail)

        errand(fetch, lambda found: self.app.call_later(self._fetched, found))

    def _fetched(self, answer: Any) -> None:
        if not self.is_attached:
            return
        if isinstance(answer, GatewayError | Failure):
            self._end([line_of(answer)])
            return
        self._detail, self._signs = answer
        view = self._view = PlanView(answer[0], is_full=True)
        facts = list(view.facts())
        self.query_one(ScrolledLines).restart()
        self.query_one(ScrolledLines).show(lambda width: [line for one in facts for line in fact(*one, width, INDENT)])
        self._turn(DecidingStep.READING if self._begin is DecidingStep.FETCHING else self._begin)

    def on_scrolled_lines_moved(self, event: ScrolledLines.Moved) -> None:
        """More of the plan has been seen."""
        event.stop()
        self._draw_prompt()

    def on_key(self, event: events.Key) -> None:
        """The keys of the step."""
        if self._step is DecidingStep.REASONING:
            if event.key == "escape":
                self._turn(DecidingStep.READING)
                event.stop()
            return
        taken: Callable[[], object] | None = {
            (DecidingStep.READING, "a"): lambda: self._turn(DecidingStep.APPROVING),
            (DecidingStep.READING, "d"): lambda: self._turn(DecidingStep.REASONING),
            (DecidingStep.APPROVING, "y"): self._approve,
            (DecidingStep.APPROVING, "n"): lambda: self._turn(DecidingStep.READING),
            (DecidingStep.APPROVING, "escape"): lambda: self._turn(DecidingStep.READING),
            (DecidingStep.DENYING, "y"): self._deny,
            (DecidingStep.DENYING, "n"): lambda: self._turn(DecidingStep.READING),
            (DecidingStep.DENYING, "escape"): lambda: self._turn(DecidingStep.READING),
        }.get((self._step, event.key))
        if taken is None and event.key == "escape":
            taken = self._leave
        if taken is not None:
            event.stop()
            taken()

    def on_input_submitted(self, event: Typed.Submitted) -> None:
        """The reason stands."""
        event.stop()
        self._reason = event.value.strip() or None
        if self._is_dev:
            self._deny()
        else:
            self._turn(DecidingStep.DENYING)

    def _leave(self) -> None:
        self.dismiss()

    def _approve(self) -> None:
        detail, signs, operator = self._detail, self._signs, self._operator
        if detail is None or not self.query_one(ScrolledLines).is_seen:
            self.app.bell()
            return

        def task() -> Executed:
            done = deciding.approve(operator, detail, signs)
            deciding.require_same_plan(detail, done)
            return done

        self._decide(f"approve {safe(detail.action_id)}", task)

    def _deny(self) -> None:
        detail, signs, operator, reason = self._detail, self._signs, self._operator, self._reason
        if detail is not None:
            self._decide(
                f"deny {safe(detail.action_id)}", lambda: deciding.deny(operator, detail.approval_id, reason, signs)
            )

    def _decide(self, what: str, task: Callable[[], Executed | Denial]) -> None:
        signed = deciding.signed_by(self._signs, self._operator.thumbprint)
        self._said = f"{what}: under way…"
        self._turn(DecidingStep.RUNNING)
        app = self.app

        def told(answer: Any) -> None:
            app.call_later(self._decided, Decided(what, answer, signed))

        errand(task, told)

    def _decided(self, decided: Decided) -> None:
        self.app.post_message(DecisionOver(decided))
        if self.is_attached:
            self._end(decided.lines(), decided)

    def _end(self, lines: Sequence[str], decided: Decided | None = None) -> None:
        is_well = decided is not None and decided.is_well
        self._said = "" if is_well else "this did not go well"
        plan = self.query_one(ScrolledLines)
        plan.restart()
        first = HEADING if is_well else ALARM

        def laid_out(width: int) -> list[Text]:
            return [Text(one.plain, first) for one in folded(lines[:1], width)] + folded(lines[1:], width)

        plan.show(laid_out)
        self._turn(DecidingStep.OVER)

    def _turn(self, step: DecidingStep) -> None:
        self._step = step
        typed, plan = self.query_one(Typed), self.query_one(ScrolledLines)
        is_typing = step is DecidingStep.REASONING
        typed.display = is_typing
        self.query_one("#prompt").display = not is_typing
        self.set_focus(typed if is_typing else plan)
        self.query_one("#keys", Static).update(Text(step.value))
        self._draw_head()
        self._draw_prompt()

    def _draw_head(self) -> None:
        if self._view is None:
            text = Text(f"plan of {safe(self._approval_id)}")
        else:
            state, named, risk, end = self._view.head()
            parts = [named, risk] if self._step is DecidingStep.OVER else [named, risk, end]
            text = Text(DOT).join(word(one) for one in parts)
            if self._step is not DecidingStep.OVER:
                text = Text("  ").join([word(state), text])
        self.query_one("#head", Static).update(text)

    def _draw_prompt(self) -> None:
        lines = self.query_one(ScrolledLines)
        rest = lines.count - lines.last_shown
        below = f"{rest} line{'s' * (rest != 1)} more below" if rest > 0 else ""
        detail, style = self._detail, ""
        if self._step is DecidingStep.FETCHING:
            text = "asking the gateway…"
        elif detail is not None and self._step is DecidingStep.APPROVING and not lines.is_seen:
            text, style = f"NOT ALL OF IT WAS SHOWN: {below}, space goes on", ALARM
        elif detail is not None and self._step is DecidingStep.APPROVING:
            text, style = f"approve {safe(detail.action_id)} for {self._gateway}?", HEADING
        elif detail is not None and self._step is DecidingStep.DENYING:
            text, style = f"deny {safe(detail.action_id)} for {self._gateway}?", HEADING
        elif self._step is DecidingStep.READING:
            text, style = below, FAINT
        else:
            text = self._said or below
        self.query_one("#prompt", Static).update(Text(text, style))
