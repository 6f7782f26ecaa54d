"""The outcome of a decision, for the desk: on one line, and whole."""

from dataclasses import dataclass

from textual.message import Message

from gateway_client.cli.complaints import complaint, line_of
from gateway_client.cli.display.safe import safe
from gateway_client.cli.exits import Failure
from gateway_client.cli.tui.words import CollectedOutput
from gateway_client.cli.views.results import show_executed
from gateway_client.errors import GatewayError
from gateway_client.results import Denial, Executed


@dataclass(frozen=True, slots=True)
class Decided:
    """The outcome of a decision; `what` names the decision, on one line."""

    what: str
    result: Executed | Denial | GatewayError | Failure
    signed: str = ""

    @property
    def line(self) -> str:
        """The whole on one line."""
        match self.result:
            case Executed() as done:
                return f"{self.what}: executed, {safe(done.verification_outcome)}, {safe(done.receipt_id)}"
            case Denial() as denial:
                return f"{self.what}: denied by {safe(denial.denied_by)}"
            case error:
                return f"{self.what}: {line_of(error).removeprefix('gatectl: ')}"

    @property
    def is_well(self) -> bool:
        """It is done, and the effect was as asked for."""
        if isinstance(self.result, Executed):
            return self.result.is_fully_successful and not self.result.learn_error
        return isinstance(self.result, Denial)

    def lines(self) -> list[str]:
        """All that there is to say."""
        if isinstance(self.result, Executed):
            out = CollectedOutput()
            show_executed(out, self.result)
            return [*out.lines, self.signed]
        if isinstance(self.result, Denial):
            why = f": {safe(self.result.deny_reason)}" if self.result.deny_reason else ""
            return [f"{self.line}{why}", f"trace {safe(self.result.trace_id)}", self.signed]
        return [self.line, *(f"  {safe(one)}" for one in complaint(self.result)["violations"])]


class DecisionOver(Message):
    """A decision is over, whatever screen is shown by now."""

    def __init__(self, decided: Decided) -> None:
        super().__init__()
        self.decided = decided
