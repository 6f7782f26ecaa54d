"""How the gateway stands: status, dependencies, workers."""

from rich.text import Text
from textual.app import ComposeResult

from gateway_client.cli.commands.running import show_status
from gateway_client.cli.display.safe import safe
from gateway_client.cli.tui.feed import News
from gateway_client.cli.tui.lines import ScrolledLines
from gateway_client.cli.tui.pane import Pane
from gateway_client.cli.tui.pools import Pool
from gateway_client.cli.tui.words import CollectedOutput, prose
from gateway_client.results import Status

_FACT_INDENT = 22


class StatusPane(Pane):
    """Status, dependencies and workers."""

    def __init__(self, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._status: Status | None = None
        self._pools: tuple[Pool, ...] = ()

    def compose(self) -> ComposeResult:
        """Facts."""
        yield ScrolledLines()

    def begin(self) -> None:
        """Keys scroll."""
        self.screen.set_focus(self.query_one(ScrolledLines))

    def take(self, news: News) -> None:
        """How it stands now."""
        self._status = news.status or self._status
        self._pools = self._pools if news.pools is None else news.pools
        if self._status is None:
            return
        out = CollectedOutput()
        show_status(out, self._status)
        pairs = [line.partition("  ")[::2] for line in out.lines]
        workers = [(f"workers {safe(one.profile)}", _of_pool(one)) for one in self._pools]
        facts = [*pairs[:6], *workers, *pairs[6:]]

        def laid_out(width: int) -> list[Text]:
            return [line for name, text in facts for line in prose(name, text.strip(), width, _FACT_INDENT)]

        self.query_one(ScrolledLines).show(laid_out)


def _of_pool(pool: Pool) -> str:
    states = [f"{count} {safe(state)}" for state, count in sorted(pool.by_state.items(), reverse=True)]
    return ", ".join([*states, f"{pool.waiting} call{'s' * (pool.waiting != 1)} waiting"])
